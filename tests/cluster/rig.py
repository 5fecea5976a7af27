"""A cluster on one machine: a real PostgreSQL, a remote on disk, and hosts that are processes with a disk of their own.

A host is a worker behind `bwrap`, which puts a folder of its own at the root that all hosts have, and gives it a name.
Agents are shell programs that append to one log when they begin and when they end, so that doubles and overlaps are seen.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.acceptance.rig import ORC, ROOT, Result, Rig, is_alive, wait_until
from tests.unit.git.test_repository import git

LEASE_S = 6
PATIENCE_S = float(os.environ.get("ORC_PATIENCE_S", "120"))

AGENT = """
cat >/dev/null
step=$STEP_ID
say() { printf '%s %s %s %s\\n' "$1" "$step" "$STEP_ATTEMPT" $$ >>"$SIDE/log"; }
say start
echo "the $step step is at work"
echo "the $step step complains" >&2
trap 'say killed; exit 1' TERM
while [ -e "$SIDE/hold-$step" ]; do sleep 0.05; done
printf '%s by %s\\n' "$step" "$(uname -n)" >>work.txt
echo "the $step step is done"
say end
"""

WORKFLOW = """
name: pair
steps:
  - {id: first, agent: worker, prompt: first.md}
  - {id: second, agent: worker, prompt: second.md, needs: [first]}
"""


class Host:
    """A worker on a host of its own."""

    def __init__(self, farm: Farm, name: str, *arguments: str, program: Sequence[str] = ORC) -> None:
        self.farm, self.name = farm, name
        disk = farm.folder / "hosts" / name
        disk.mkdir(parents=True, exist_ok=True)
        self.said_in = farm.folder / f"said-{name}-{len(list(farm.folder.glob('said-*')))}"
        wall = ["bwrap", "--dev-bind", "/", "/", "--bind", str(disk), str(farm.root), "--unshare-uts", "--hostname", name, "--"]
        words = [
            "worker",
            "--store",
            farm.url_of(name),
            "--name",
            name,
            "--root",
            str(farm.root),
            "--lease",
            f"{LEASE_S}s",
            *arguments,
        ]
        command = [*farm.enter(name), *wall, *program, *words]
        with self.said_in.open("wb") as said:
            self.process = subprocess.Popen(
                command, cwd=farm.folder, env=farm.environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )

    def said(self) -> str:
        return self.said_in.read_text()

    def pid(self) -> int:
        """Return the worker's own process, below the wall's."""
        found = [one["pid"] for one in self.farm.workers() if one["name"] == self.name and one["alive"] and is_alive(one["pid"])]
        return int(found[-1])

    def warden(self) -> int:
        """Return the process of the worker's warden."""
        folder = str(self.farm.root / "workers" / self.name).encode()
        for one in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if one.name.isdigit() and folder in (one / "cmdline").read_bytes().split(b"\0"):
                    return int(one.name)
        raise AssertionError(f"{self.name} has no warden")

    def wait_until_it_says(self, text: str) -> None:
        wait_until(lambda: text in self.said() or self.process.poll() is not None, PATIENCE_S)
        assert text in self.said(), self.said()

    def kill(self, number: signal.Signals) -> int:
        """Send the worker itself a signal; returns its process."""
        pid = self.pid()
        os.kill(pid, number)
        return pid


class Farm(Rig):
    """A repository with a remote, a store, and hosts."""

    def __init__(self, repo: Path, url: str) -> None:
        self.repo, self.url, self.folder = repo, url, repo.parent
        self.side, self.root, self.bare = repo.parent / "side", repo.parent / "root", repo.parent / "remote.git"
        self.side.mkdir()
        self.root.mkdir()
        self.hosts: list[Host] = []
        (self.side / "agent.sh").write_text(AGENT)
        (repo / "workflow.yaml").write_text(WORKFLOW)
        for step in ("first", "second"):
            (repo / f"{step}.md").write_text(f"Do the {step} thing.\n")
        git(repo, "add", "--all")
        git(repo, "commit", "--quiet", "--message", "The workflow")
        git(repo.parent, "clone", "--quiet", "--bare", str(repo), str(self.bare))
        git(repo, "remote", "add", "origin", str(self.bare))

    def environment(self, more: object = None) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "COLUMNS": "80",
            "SIDE": str(self.side),
            "ORC_STORE": self.url,
            "ORC_STORE_ROOT": str(self.root),
        }

    def url_of(self, name: str) -> str:
        """Return the address of the store as a host reaches it."""
        return self.url

    def enter(self, name: str) -> list[str]:
        """Return the words before a command by which it runs on a host's own network; here, all hosts have one."""
        return []

    def host(self, name: str, *arguments: str) -> Host:
        """Start a worker on a host."""
        host = Host(self, name, *arguments)
        self.hosts.append(host)
        host.wait_until_it_says("worker ")
        wait_until(lambda: host.process.poll() is not None or any(one["name"] == name and one["alive"] for one in self.workers()))
        return host

    def submit(self, *arguments: str) -> str:
        """Queue a run of the workflow and return its id."""
        words = ("run", "--workflow", "workflow.yaml", "--agent-command", f"sh {self.side}/agent.sh", "--pass-env", "SIDE")
        done = self.orc(*words, "--queue", *arguments)
        assert done.code == 0, done
        return done.run

    def workers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask_store("workers", "--json").json["workers"]
        return found

    def status(self, run: str) -> str:
        return str(self.ask_store("status", run, "--json").json["status"])

    def ask_store(self, *arguments: str) -> Result:
        """Ask from the repository, which is on no worker's host."""
        return self.ask(*arguments, "--store", self.url)

    def log(self) -> list[list[str]]:
        """Return what agents said: start, end or killed; step; attempt; process."""
        file = self.side / "log"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def started(self, step: str) -> list[list[str]]:
        return [line for line in self.log() if line[:2] == ["start", step]]

    def wait_for(self, step: str, times: int = 1) -> int:
        """Wait until an agent of a step has begun so often; return its process."""
        wait_until(lambda: len(self.started(step)) >= times, PATIENCE_S)
        return int(self.started(step)[times - 1][3])

    def wait_for_status(self, run: str, status: str) -> None:
        wait_until(lambda: self.status(run) == status, PATIENCE_S)

    def hold(self, step: str) -> None:
        (self.side / f"hold-{step}").touch()

    def let_go(self, step: str) -> None:
        (self.side / f"hold-{step}").unlink()

    def close(self) -> None:
        """End every process of this cluster."""
        for host in self.hosts:
            with contextlib.suppress(IndexError, ProcessLookupError):
                host.kill(signal.SIGKILL)
            host.process.kill()
            host.process.wait(30)
        for line in self.log():
            kill_ours(int(line[3]), str(self.folder))


class Clone(Rig):
    """Another clone of the repository, with the same store; on no worker's host."""

    def __init__(self, farm: Farm, name: str) -> None:
        self.farm, self.side, self.repo = farm, farm.side, farm.folder / name
        git(farm.folder, "clone", "--quiet", str(farm.bare), str(self.repo))

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return {**self.farm.environment(), **(more or {})}

    def branches(self) -> list[str]:
        return git(self.repo, "branch", "--format=%(refname:short)").split()


def kill_ours(pid: int, mark: str) -> None:
    """Kill a process if its command line has this mark: its id may be somebody else's by now."""
    with contextlib.suppress(OSError):
        if mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def cluster_of(repo: Path, url: str) -> Iterator[Farm]:
    farm = Farm(repo, url)
    try:
        yield farm
    finally:
        farm.close()
