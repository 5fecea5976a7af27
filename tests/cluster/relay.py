"""A run that goes from worker to worker, because each freezes or is cut off on its way, at a chosen place.

Whoever is frozen thaws when the next one has the run, and may then try what it was about to do. Nobody here believes a worker: a
trigger of the database says who wrote each row of the journal and who drove the run at that moment, the remote logs every move
of a ref, and the agents write down themselves where and when they begin.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from agent_orchestrator.store.postgres import install
from tests.acceptance.rig import ORC, is_alive, wait_until
from tests.cluster.judges import judge_pushes
from tests.cluster.rig import PATIENCE_S, Farm, Host, kill_ours
from tests.cluster.wire import Wire
from tests.postgres.server import PostgresServer
from tests.unit.git.test_repository import git

STEPS = 12
WITNESS = """
CREATE TABLE public.written (run text, seq bigint, who text, driver text, at_s double precision);
CREATE FUNCTION public.witness() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.written
    SELECT r.id, NEW.seq, current_setting('application_name'), w.name, extract(epoch FROM clock_timestamp())
    FROM orc.runs r LEFT JOIN orc.workers w ON w.key = r.worker WHERE r.key = NEW.run;
    RETURN NEW;
END $$;
CREATE FUNCTION public.witness_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.written
    SELECT NEW.id, 0, w.name, w.name, extract(epoch FROM clock_timestamp()) FROM orc.workers w WHERE w.key = NEW.worker;
    RETURN NEW;
END $$;
CREATE TRIGGER witness_epoch AFTER UPDATE OF epoch ON orc.runs FOR EACH ROW EXECUTE FUNCTION public.witness_epoch();
CREATE TRIGGER witness AFTER INSERT ON orc.events FOR EACH ROW EXECUTE FUNCTION public.witness();
"""
AGENT = """
cat >/dev/null
say() { printf '%s %s %s %s %s %s\\n' "$1" "$STEP_ID" "$STEP_ATTEMPT" $$ "$(uname -n)" "$(date +%s.%N)" >>"$SIDE/log"; }
say start
trap 'say killed; exit 1' TERM
echo "$STEP_ID" >>work.txt
say end
"""


class Fault(NamedTuple):
    """The end of one worker's part of the relay."""

    place: str
    time: int
    how: str
    """`alone`: only the worker faults, and its warden ends it. `whole`: the warden and the agents freeze with it, and it thaws.
    `cut`: it is cut off from the store."""


class Relay(Farm):
    """A farm whose workers freeze or are cut off, one after the other."""

    def __init__(self, repo: Path, server: PostgresServer) -> None:
        url = server.make_database()
        install(url)
        self._server, self._database = server, url.rpartition("/")[2]
        server.execute(WITNESS, self._database)
        super().__init__(repo, url)
        git(self.bare, "config", "core.logAllRefUpdates", "always")
        (self.side / "agent.sh").write_text(AGENT)
        steps = [f"  - {{id: s{number}, agent: worker, prompt: first.md" for number in range(STEPS)]
        needs = [f", needs: [s{number - 1}]}}" if number else "}" for number in range(STEPS)]
        (repo / "workflow.yaml").write_text("name: relay\nsteps:\n" + "".join(map("{}{}\n".format, steps, needs)))
        git(repo, "commit", "--quiet", "--all", "--message", "Many steps")
        self._made = 0
        self._wires: dict[str, Wire] = {}
        self._faults: dict[str, Fault | None] = {}

    def url_of(self, name: str) -> str:
        """Let the server know a host by its name, over a wire of its own."""
        wire = self._wires.setdefault(name, Wire(self._server.port))
        return f"{wire.through(self.url)}?application_name={name}"

    def pass_on(self, faults: Sequence[Fault]) -> int:
        """Fault one worker after the other until the run is completed; returns how many froze while they had it."""
        current, mark = self._join(faults[0])
        run, count = self.submit("--max-attempts", "99"), 0
        for later in (*faults[1:], None):
            following = self._join(later)
            self._wait_for_stop(current, mark, run)
            if _has_line(mark):
                count += 1
                self._replace(current, mark, following[0], run)
            current, mark = following
        self.wait_for_status(run, "completed")
        wait_until(lambda: git(self.bare, "branch", "--list", f"orc/{run}"), PATIENCE_S)
        wrong = self.judge(run)
        assert not wrong, "\n".join(wrong)
        return count

    def _join(self, fault: Fault | None) -> tuple[Host, Path]:
        """Start a worker that a fault waits for, or one that is left in peace."""
        self._made += 1
        name = f"host{self._made}"
        mark = self.side / f"mark-{name}"
        stops = [sys.executable, "-m", "tests.cluster.stops"]
        program = ORC if fault is None else [*stops, fault.place, str(fault.time), fault.how, str(mark)]
        host = Host(self, name, program=program)
        self.hosts.append(host)
        host.wait_until_it_says("worker ")
        self._faults[name] = fault
        return host, mark

    def _wait_for_stop(self, host: Host, mark: Path, run: str) -> None:
        """Wait until a worker has stopped, or will not any more: it was too slow to keep its lease, or the run is over."""
        wait_until(lambda: _has_line(mark) or host.process.poll() is not None or self.status(run) == "completed", PATIENCE_S)

    def _replace(self, host: Host, mark: Path, following: Host, run: str) -> None:
        """Wait until the next worker has taken the run over, then let everything of this one go on, its warden last."""
        pid, *others = map(int, mark.read_text().splitlines()[0].split()[1:])
        fault, wire = self._faults[host.name], self._wires[host.name]
        if fault is not None and fault.how == "cut":
            wire.cut()
        try:
            wait_until(lambda: self._has_taken(following.name, run) or following.process.poll() is not None, PATIENCE_S)
            # Thawed, it shall try what it was about to do, and not take the run back when the next one freezes.
            self._server.execute(f"SELECT orc.drain('{host.name}', true)", self._database)
            wire.mend()
            _signal(pid, signal.SIGCONT)
            wait_until(lambda: not is_alive(pid) or "lease/after" in mark.read_text(), PATIENCE_S)
        finally:
            for one in others:
                _signal(one, signal.SIGCONT)
        wait_until(lambda: not is_alive(pid), PATIENCE_S)

    def close(self) -> None:
        """End every process, also those that are still frozen."""
        for mark in self.side.glob("mark-*"):
            for pid in mark.read_text().partition("\n")[0].split()[1:]:
                kill_ours(int(pid), str(self.folder))
        super().close()

    def _has_taken(self, name: str, run: str) -> bool:
        return self._server.execute(f"SELECT count(*) FROM written WHERE run = '{run}' AND who = '{name}'", self._database) != "0"

    def judge(self, run: str) -> list[str]:
        """Return everything that ought not to be: stale rows, starts and pushes, doubled starts, a journal with gaps."""
        asked = f"SELECT seq, who, driver FROM written WHERE run = '{run}' AND who LIKE 'host%' AND who <> driver"
        wrong = [f"a stale row: {row}" for row in self._server.execute(asked, self._database).split()]
        first = f"SELECT who, min(at_s) FROM written WHERE run = '{run}' AND who LIKE 'host%' GROUP BY who ORDER BY 2"
        drivers = [line.split("|") for line in self._server.execute(first, self._database).split()]
        over = {one[0]: float(after[1]) for one, after in pairwise(drivers)}
        starts = [line for line in self.log() if line[0] == "start"]
        wrong += [f"a stale start: {line}" for line in starts if float(line[5]) > over.get(line[4], float("inf"))]
        wrong += [f"started twice: {what}" for what, many in Counter(tuple(line[1:3]) for line in starts).items() if many > 1]
        gaps = "SELECT id FROM orc.runs r WHERE seq <> (SELECT count(*) FROM orc.events WHERE run = r.key)"
        faults = self._server.execute(gaps, self._database)
        wrong += [f"the journal of run {name} is not whole" for name in faults.split()]
        return wrong + judge_pushes(self.bare, run)


def _has_line(mark: Path) -> bool:
    return mark.exists() and "\n" in mark.read_text()


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
