"""Real clients on a worker: a queued run is driven there, with keys that nobody else has, and merged in another clone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.store.postgres import install
from agent_orchestrator.testing.model_server import Reply, Write
from tests.clients.rig import ALONE, ROOT, Rig, charged, report, until
from tests.postgres.server import shared_server
from tests.unit.git.test_repository import git

ORC = [sys.executable, "-m", "agent_orchestrator.cli"]
KEYS = {name for name in ALONE if name.endswith(("_KEY", "_TOKEN"))}


class Office:
    """The repository of a rig with a remote and a shared store; a worker that has keys, and people who have none."""

    def __init__(self, rig: Rig, folder: Path) -> None:
        self.rig, self.folder, self.url = rig, folder, shared_server().make_database()
        install(self.url)
        git(rig.repo, "add", "--all")
        git(rig.repo, "commit", "--quiet", "--message", "The workflow")
        git(folder, "clone", "--quiet", "--bare", str(rig.repo), str(folder / "remote.git"))
        git(rig.repo, "remote", "add", "origin", str(folder / "remote.git"))
        git(folder, "clone", "--quiet", str(folder / "remote.git"), str(folder / "clone"))
        more = {"PYTHONPATH": str(ROOT / "src"), "ORC_STORE": self.url, "ORC_STORE_ROOT": str(folder / "root")}
        self.environ = {**{name: value for name, value in rig.environ.items() if name not in KEYS}, **more}
        with (folder / "said").open("wb") as said:
            self.worker = subprocess.Popen(
                [*ORC, "worker", "--name", "ada"], cwd=folder, env={**rig.environ, **more}, stdout=said, stderr=said
            )

    def orc(self, where: Path, *arguments: str) -> str:
        """Run `orc` as a person without keys."""
        done = subprocess.run(
            [*ORC, *arguments], cwd=where, env=self.environ, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, (done.stdout, done.stderr, (self.folder / "said").read_text())
        return done.stdout

    def show(self, run: str) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self.orc(self.folder / "clone", "show", run, "--json"))
        return shown

    def close(self) -> None:
        """Let the worker end its agents and leave."""
        for _ in range(2):
            self.worker.send_signal(signal.SIGTERM)
        self.worker.wait(60)


@pytest.fixture
def office(rig: Rig, tmp_path: Path) -> Iterator[Any]:
    made: list[Office] = []

    def open_office() -> Office:
        made.append(Office(rig, tmp_path))
        return made[-1]

    yield open_office
    for one in made:
        one.close()


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_a_real_client_on_a_worker_does_what_is_merged_in_another_clone(client: str, rig: Rig, office: Any) -> None:
    lane = rig.lane(client, [Write("made.txt", f"by {client}\n"), Reply(report(artifacts=["made.txt"]))])
    one: Office = office()
    clone = one.folder / "clone"
    said = one.orc(rig.repo, "run", "--workflow", "workflow.yaml", "--agent", client, "--max-attempts", "1", "--queue")
    run = said.split()[1]
    until(lambda: one.show(run)["status"] in ("completed", "failed"))
    assert one.show(run)["status"] == "completed", one.orc(clone, "history", run)
    assert f"+by {client}" in one.orc(clone, "diff", run)
    assert f"merged orc/{run} into" in one.orc(clone, "merge", run, "--check", "test -f made.txt")
    assert (clone / "made.txt").read_text().strip() == f"by {client}"
    used = json.loads(one.orc(clone, "usage", run, "--json"))["total"]
    assert {name: used[name] for name in charged(lane)} == charged(lane)
    seen = one.orc(clone, "logs", run, "--raw") + one.orc(clone, "history", run) + json.dumps(one.show(run))
    assert not any(ALONE[name] in seen for name in KEYS)
    assert not KEYS & {*one.environ}, "only the worker has keys"
