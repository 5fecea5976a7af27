"""A repository in which a mode is run from its first command to its end, with real clients and a model that knows its parts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_orchestrator.testing.model_cast import Cast, Part
from agent_orchestrator.testing.model_server import ModelServer
from tests.clients.rig import Rig, charged, clients_of, counts, until

CLIENTS = ("claude", "codex")
OTHERS = ("gemini", "opencode")
IDENTITY = "[user]\n\tname = Ada\n\temail = ada@localhost\n[init]\n\tdefaultBranch = main\n"


class ModeRig(Rig):
    """A user's repository: one commit, a clean tree, the configuration in it."""

    def __init__(self, folder: Path, model: ModelServer) -> None:
        (folder / "home").mkdir(parents=True)
        (folder / "home" / ".gitconfig").write_text(IDENTITY)
        super().__init__(folder, model)
        for name in ("workflow.yaml", "prompt.md"):
            (self.repo / name).unlink()

    def begin(self, client: str, *parts: Part, files: dict[str, str]) -> Cast:
        """The client's model, and the first commit with these files."""
        cast = self.cast(client, *parts)
        for name, text in files.items():
            (self.repo / name).parent.mkdir(parents=True, exist_ok=True)
            (self.repo / name).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", "first")
        return cast

    def kill_in(self, cast: Cast, names: Sequence[str], *arguments: str) -> str:
        """Starts `orc`, kills it with -9 while these parts are held, lets them go, and returns what it had printed."""
        process = self.start(*arguments)
        parts = [cast[name] for name in names]
        with suppress(TimeoutError):
            until(
                lambda: (
                    process.poll() is not None or cast.strangers or cast.faults or all(part.is_held.is_set() for part in parts)
                )
            )
        lives = process.poll() is None
        process.send_signal(signal.SIGKILL)
        said, _ = process.communicate()
        assert all(part.is_held.is_set() for part in parts) or cast.strangers or cast.faults, f"it never came to {names}:\n{said}"
        assert lives, said
        assert (cast.strangers, cast.faults) == ([], []), f"{said}\n{cast.strangers}\n{cast.faults}"
        assert len(clients_of(self.repo.parent)) >= len(parts), "the agents live on"
        for part in parts:
            part.let_go.set()
        return said

    def close(self) -> None:
        """Ends what a test that failed has left behind."""
        for lane in self.lanes.values():
            lane.release()
        for pid in clients_of(self.repo.parent):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.check_answers()

    def check_books(self, cast: Cast, *runs: str) -> None:
        """Every part was played, none twice, nobody else came, and every token is in the ledger."""
        assert cast.strangers == []
        assert cast.left() == []
        assert sorted(cast.played) == sorted(part.name for part in cast.parts)
        rows = [usage for run in runs for usage in self.usage(run)]
        assert len(rows) == len(cast.parts), "one launch for each part"
        assert counts(rows) == charged(cast)
        self.check_journal(cast, *runs)

    def check_journal(self, cast: Cast, *runs: str) -> None:
        """As many agents ended as there are parts, and nothing ended twice."""
        facts = [json.loads(line)["event"] for run in runs for line in self.orc("history", run, "--json").splitlines()]
        for tag in ("agent_finished", "check_finished"):
            ended = [fact["effect"] for fact in facts if fact["event"] == tag]
            assert len(ended) == len(set(ended)), f"{tag} is there twice of one launch"
            assert tag != "agent_finished" or len(ended) == len(cast.parts)

    def git(self, *arguments: str) -> str:
        """Git in the repository, as its user."""
        done = subprocess.run(["git", *arguments], cwd=self.repo, env=self.environ, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def document(self, name: str) -> Any:
        """A JSON file of the repository."""
        return json.loads((self.repo / name).read_text())
