"""`make cluster`: PostgreSQL, a remote and four workers on networks of their own, and everything that goes wrong there.

The workflow of `make demo`, many times over. Workers are killed, frozen and cut off, the server crashes, restarts and freezes,
answers get lost on their way, and the runs go on. What the agents themselves wrote down, and the remote's log of its refs, are
compared with what ought to be: nothing ran twice, nothing beside itself, nothing is lost.
With `--faults 100 --seed 7` the faults are drawn by chance, one after the other, until there were so many, and runs are added
as long as there are faults to come: none of them meets workers with nothing to do.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from agent_orchestrator.config import load_settings
from agent_orchestrator.errors import OrcError
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.postgres import install
from agent_orchestrator.store.postgres.cluster import Cluster
from tests.acceptance.rig import ROOT
from tests.cluster.faults import HOSTS, Chance, Faults, Plan, Story
from tests.cluster.judges import judge_pushes
from tests.cluster.network import Network, bridged
from tests.cluster.rig import LEASE_S, Farm, Host, kill_ours
from tests.conftest import GIT_ENVIRONMENT
from tests.postgres.proxy import Proxy
from tests.postgres.server import PostgresServer, find_free_port

CAPACITY = "2"
LOOK_S = 0.5
PATIENCE_S = 3_600
UNDER_WAY = 12
"""While there are faults to come, so many runs are queued or driven: all that four workers have room for, and some."""

WITNESS = """
say() { printf '%s %s %s %s %s %s\\n' "$1" "$RUN_ID" "$STEP_ID" "$ITERATION" "$STEP_ATTEMPT" $$ >>"$SIDE/log"; }
lives() {
    for mark in "RUN_ID=$1" "STEP_ID=$2" "ITERATION=$3" "STEP_ATTEMPT=$4"; do
        grep -qxz "$mark" "/proc/$5/environ" || return 1
    done
}
grep "^start $RUN_ID " "$SIDE/log" 2>/dev/null | while read -r word run step iteration attempt pid; do
    [ "$pid" != $$ ] && lives "$run" "$step" "$iteration" "$attempt" "$pid" 2>/dev/null && say beside
done
say start
"$@" &
trap 'kill $! 2>/dev/null; say ended; exit 143' TERM
wait $!
code=$?
say end
exit $code
"""


class Show(Farm):
    """The demonstration's project with a remote that is reached over the network."""

    def __init__(self, folder: Path, network: Network, server: PostgresServer) -> None:
        self.folder, self.network, self.server = folder, network, server
        self.repo, self.side, self.root = folder / "project", folder / "side", folder / "root"
        database = server.make_database().rpartition("/")[2]
        self.url = f"postgresql://orc@{network.address}:{server.port}/{database}"
        install(self.url)
        shutil.copytree(ROOT / "examples" / "demo" / "project", self.repo)
        shutil.copytree(ROOT / "examples" / "demo" / "agents", folder / "agents")
        (folder / "enough-thought").touch()
        self.side.mkdir()
        self.root.mkdir()
        (self.side / "witness.sh").write_text(WITNESS)
        self.hosts: list[Host] = []
        self.proxies = {name: Proxy(server.port, network.address) for name in HOSTS}
        self._serve_git()
        self._orchestrator = Orchestrator(settings=load_settings(str(self.repo), self.environment()))
        self._cluster = Cluster(self.url)
        self._approved: set[str] = set()

    def _serve_git(self) -> None:
        port, bare = find_free_port(), self.folder / "git" / "project.git"
        for words in (["init", "--quiet", "--initial-branch=main"], ["add", "--all"], ["commit", "--quiet", "-m", "A bug"]):
            subprocess.run(["git", *words], cwd=self.repo, check=True)
        subprocess.run(["git", "clone", "--quiet", "--bare", self.repo, bare], check=True)
        subprocess.run(["git", "config", "core.logAllRefUpdates", "always"], cwd=bare, check=True)  # every move is judged
        url = f"git://{self.network.address}:{port}/project.git"
        subprocess.run(["git", "remote", "add", "origin", url], cwd=self.repo, check=True)
        words = ["--reuseaddr", "--export-all", "--enable=receive-pack", f"--base-path={bare.parent}"]
        where = [f"--listen={self.network.address}", f"--port={port}"]
        self._git = subprocess.Popen(["git", "daemon", *words, *where], stderr=subprocess.DEVNULL)
        self.bare = bare

    def environment(self, more: object = None) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {**super().environment(), **GIT_ENVIRONMENT, "PATH": path, "ORC_TRUSTED_PATHS": str(self.folder)}

    def enter(self, name: str) -> list[str]:
        """Run on the network of a host."""
        return self.network.enter(name)

    def url_of(self, name: str) -> str:
        """Let each host reach the server through a proxy of its own."""
        return self.url.replace(f":{self.server.port}/", f":{self.proxies[name].port}/")

    def start(self, name: str) -> Host:  # type: ignore[override]
        """Start the worker of a host, or start it again."""
        self.hosts[:] = [host for host in self.hosts if host.name != name]
        self.hosts.append(Host(self, name, "--capacity", CAPACITY))
        return self.hosts[-1]

    def find(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    def submit(self, *arguments: str) -> str:
        """Queue a run of the demonstration's workflow, however often the server goes away meanwhile."""
        agent = f"sh {self.side}/witness.sh python3 {self.folder}/agents"
        words = ("run", "--workflow", "workflow.yaml", "--agent-command", agent, "--pass-env", "SIDE", "--queue", *arguments)
        words = (*words, "--max-attempts", "20")  # An attempt that is lost with its host counts, and many are.
        tries = 60
        while True:
            done, tries = self.orc(*words), tries - 1
            if done.code == 0 or "already" in done.err:
                return arguments[-1]
            assert tries, done
            time.sleep(1)

    def look(self) -> Counter[str]:
        """Count runs by their status; whoever waits for a person is answered."""
        counts: Counter[str] = Counter()
        for run in self._orchestrator.runs():
            counts[run.summary.status] += 1
            if run.summary.asks and run.id not in self._approved:
                self._orchestrator.approve(run.id)
                self._approved.add(run.id)
        return counts

    def describe(self) -> str:
        """Return the workers in one line, with the runs that each drives."""
        known = {one.name: len(one.runs) for one in self._cluster.list_workers() if one.lease_s > 0}
        return "  ".join(f"{name} {known.get(name, 'gone')}" for name in HOSTS)

    def is_idle(self) -> bool:
        """Tell whether no worker has a run: one that has just ended is pushed before it is let go of."""
        return not any(one.runs for one in self._cluster.list_workers())

    def judge(self, runs: list[str]) -> list[str]:
        """Return everything that ought not to be."""
        wrong = [
            f"run {run.id} is {run.summary.status}" for run in self._orchestrator.runs() if run.summary.status != "completed"
        ]
        wrong += [f"run {run} is not there" for run in set(runs) - {run.id for run in self._orchestrator.runs()}]
        log = self.log()
        starts = Counter(tuple(line[1:5]) for line in log if line[0] == "start")
        wrong += [f"started {count} times: {' '.join(what)}" for what, count in starts.items() if count > 1]
        wrong += [f"side by side: {' '.join(line[1:])}" for line in log if line[0] == "beside"]
        wrong += self._orchestrator.store.health()[1]
        return wrong + [text for run in runs for text in judge_pushes(self.bare, run)]

    def end(self) -> None:
        """End everything that was started."""
        for host in self.hosts:
            host.process.kill()
            host.process.wait()
        workers = [one.pid for one in self._cluster.list_workers() if one.name in HOSTS]
        agents = [int(line[-1]) for line in self.log()]
        for pid in (*workers, *agents):
            kill_ours(pid, str(self.folder))
        for proxy in self.proxies.values():
            proxy.close()
        self._cluster.close()
        self._orchestrator.close()
        self._git.terminate()
        self._git.wait()


def play(show: Show, runs: int, count: int, seed: int) -> int:
    """Play it, and return the exit code."""
    began_s, said = time.monotonic(), [""]

    def say(text: str) -> None:
        print(f"{time.monotonic() - began_s:6.1f} s  {text}", flush=True)

    faults = Faults(show, say)
    for name in HOSTS:
        show.host(name, "--capacity", CAPACITY)
    say(f"PostgreSQL at {show.url}, four workers, a lease of {LEASE_S} s; {runs} runs of the demo's workflow are queued")
    names: list[str] = []
    submitted: list[Future[str]] = []
    plan: Plan = Chance(faults, count, seed) if count else Story(faults, runs)
    with ThreadPoolExecutor(2) as pool:

        def queue(more: int) -> None:
            for _ in range(more):
                names.append(f"run-{len(names) + 1:03}")
                submitted.append(pool.submit(show.submit, "--run-id", names[-1]))

        queue(runs)
        while time.monotonic() - began_s < PATIENCE_S:
            time.sleep(LOOK_S)
            faults.look()
            try:
                counts, where = show.look(), show.describe()
            except OrcError:
                continue  # The server is away; so is everybody's.
            completed = counts.pop("completed", 0)
            words = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
            if (line := f"{completed:3} of {len(names)} completed  |  {where}  |  {words}") != said[0]:
                said[0] = line
                say(line)
            plan.go_on(completed)
            if count and not plan.over:
                queue(max(0, UNDER_WAY - (len(names) - completed)))
            over = completed == len(names) and plan.over and not faults.pending and all(one.done() for one in submitted)
            if over and show.is_idle():
                break
        for one in submitted:
            one.result()
    return report(show, names, faults, time.monotonic() - began_s)


def report(show: Show, names: list[str], faults: Faults, seconds: float) -> int:
    """Print what was and what ought not to have been."""
    wrong = show.judge(names)
    log = Counter(line[0] for line in show.log())
    told = ", ".join(f"{number} × {kind}" for kind, number in sorted(faults.done.items()))
    print(f"\n{len(names)} runs in {seconds:.0f} s through {sum(faults.done.values())} faults ({told}).")
    print(
        f"{log['start']} agents started, {log['start'] - log['end']} of them ended with their worker and started again elsewhere."
    )
    lost = sum(proxy.cuts for proxy in show.proxies.values())
    if lost:
        print(f"{lost} requests or answers between workers and server were cut off on their way.")
    for line in wrong:
        print(f"WRONG: {line}")
    if not wrong:
        print("Every run completed, nothing ran twice or side by side, every journal is whole, every branch came back once.")
    return 1 if wrong else 0


def main() -> int:
    """Play the demonstration in a scratch folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--faults", type=int, default=0, help="so many, drawn by chance, instead of the story")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if os.getuid() != 0:
        print("make cluster: network namespaces need root; run it as root, in a container or a virtual machine.", file=sys.stderr)
        return 3
    os.environ.update(GIT_ENVIRONMENT)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="orc-cluster-", dir="/tmp"))
    server = PostgresServer(listen="*")
    try:
        with bridged() as network:
            show = Show(folder, network, server)
            try:
                return play(show, given.runs, given.faults, given.seed)
            finally:
                show.end()
    finally:
        server.remove()
        print(f"What the workers and agents said is in {folder}.")


if __name__ == "__main__":
    sys.exit(main())
