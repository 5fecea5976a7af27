"""A person with a configuration of their own, who is told what happens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.acceptance.rig import HUMAN, Rig
from tests.notify.receiver import SECRET


class NotifyRig(Rig):
    """The rig of acceptance tests, with a home, a workflow that asks a person, and the secret of a webhook."""

    def __init__(self, repo: Path) -> None:
        super().__init__(repo)
        self.home = repo.parent / "home"
        self.home.mkdir()
        self.workflow(HUMAN)

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return super().environment({"HOME": str(self.home), "XDG_CONFIG_HOME": "", "HOOK_SECRET": SECRET, **(more or {})})

    def configure(self, *tables: str) -> None:
        """Write the person's own file, a `[[notify]]` table each."""
        file = self.home / ".config" / "orc" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"[[notify]]\n{table}\n" for table in tables))
