"""Faults of hosts, networks and the server for `make cluster`, and in which order they come: as a story, or by chance."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from agent_orchestrator.errors import OrcError
from tests.acceptance.rig import is_alive
from tests.cluster.rig import LEASE_S
from tests.postgres.server import frozen

if TYPE_CHECKING:
    from tests.cluster.show import Show

HOSTS = ("anna", "bert", "cora", "dora")
SHORT_S, LONG_S = LEASE_S / 3, LEASE_S + 4.0
"""A fault that a lease outlasts, and one after which another host has the runs."""
PAUSE_S = 3.0
"""Between two faults by chance, on average: runs have to get on, or nothing is in the way of the next one."""


class Faults:
    """The faults of hosts and of the server, each with what makes it good again."""

    def __init__(self, show: Show, say: Callable[[str], None]) -> None:
        self._show, self._say = show, say
        self._due: list[tuple[float, Callable[[], None]]] = []
        self.done: Counter[str] = Counter()
        self._busy: set[str] = set()

    @property
    def of_hosts(self) -> list[Callable[[str, float], None]]:
        """The faults of one host, twice as likely as those of the server, which are everybody's."""
        return [self.kill, self.freeze, self.cut_off, self.lose_answers] * 2

    @property
    def of_the_server(self) -> list[Callable[[str, float], None]]:
        """The faults of the server."""
        return [self.crash_server, self.restart_server, self.freeze_server]

    def free(self) -> list[str]:
        """Return the hosts that nothing is wrong with."""
        return [name for name in HOSTS if name not in self._busy]

    def kill(self, name: str, seconds: float) -> None:
        """Kill a worker with -9, and start it again later."""
        pid = self._find_process(name)
        if pid is not None:
            self._tell("kill -9", name, f"kill -9 {pid}, the worker on {name}")
            os.kill(pid, signal.SIGKILL)
            self._later(seconds, lambda: self._restart(name))

    def freeze(self, name: str, seconds: float) -> None:
        """Stop a worker's process, and let it go on later, if its warden has left it alive."""
        pid = self._find_process(name)
        if pid is not None:
            self._tell("freeze", name, f"freeze process {pid}, the worker on {name}, for {seconds:.0f} s")
            os.kill(pid, signal.SIGSTOP)
            self._later(seconds, lambda: self._thaw(name, pid))

    def cut_off(self, name: str, seconds: float) -> None:
        """Pull a host's wire."""
        self._tell("cut off", name, f"cut {name} off the network for {seconds:.0f} s")
        self._show.network.cut_off(name)
        self._later(seconds, lambda: self._heal(name))

    def lose_answers(self, name: str, seconds: float) -> None:
        """Cut off one in ten of a host's requests to the server, before, during or after them."""
        self._tell("lost answers", name, f"lose requests and answers of {name} for {seconds:.0f} s")
        self._show.proxies[name].cut_by_chance(sum(self.done.values()))
        self._later(seconds, lambda: self._lose_no_more(name))

    def crash_server(self, name: str, seconds: float) -> None:
        """Crash PostgreSQL and start it again."""
        self._tell("server crash", "", "crash PostgreSQL and start it again")
        self._show.server.stop(signal.SIGQUIT)
        self._show.server.start()

    def restart_server(self, name: str, seconds: float) -> None:
        """Restart PostgreSQL in order."""
        self._tell("server restart", "", "restart PostgreSQL")
        self._show.server.stop(signal.SIGINT)
        self._show.server.start()

    def freeze_server(self, name: str, seconds: float) -> None:
        """Stop PostgreSQL for everybody: it takes requests and answers none."""
        self._tell("server freeze", "", f"freeze PostgreSQL for {SHORT_S:.0f} s")
        with frozen(self._show.server.list_processes()):
            signal.sigtimedwait((), SHORT_S)

    def look(self) -> None:
        """Make good what is due, and start workers again that have ended."""
        now_s = time.monotonic()
        due = [one for one in self._due if one[0] <= now_s]
        self._due = [one for one in self._due if one[0] > now_s]
        for _, heal in due:
            heal()
        for name in self.free():
            if self._show.find(name).process.poll() is not None:
                self._restart(name)

    @property
    def pending(self) -> bool:
        return bool(self._due)

    def _find_process(self, name: str) -> int | None:
        with contextlib.suppress(
            OrcError, IndexError, ValueError, KeyError
        ):  # The server may be away, or the worker not there yet.
            return self._show.find(name).pid()
        return None

    def _tell(self, kind: str, name: str, text: str) -> None:
        self.done[kind] += 1
        self._say(text)
        if name:
            self._busy.add(name)

    def _later(self, seconds: float, heal: Callable[[], None]) -> None:
        self._due.append((time.monotonic() + seconds, heal))

    def _restart(self, name: str) -> None:
        self._busy.discard(name)
        self._show.start(name)
        self._say(f"the worker on {name} is started again")

    def _thaw(self, name: str, pid: int) -> None:
        self._busy.discard(name)
        if is_alive(pid):
            os.kill(pid, signal.SIGCONT)
            self._say(f"the worker on {name} thaws")
        else:
            self._restart(name)

    def _heal(self, name: str) -> None:
        self._busy.discard(name)
        self._show.network.heal(name)
        self._say(f"{name} is back on the network")

    def _lose_no_more(self, name: str) -> None:
        self._busy.discard(name)
        self._show.proxies[name].cut_no_more()
        self._say(f"the line of {name} is good again")


class Plan(Protocol):
    """The order in which faults come."""

    @property
    def over(self) -> bool:
        """Return True when there are no more."""

    def go_on(self, completed: int) -> None:
        """Let the next one happen if it is its time; so many runs are completed."""


class Story:
    """One of each, when so many runs are completed."""

    def __init__(self, faults: Faults, total: int) -> None:
        self._parts: Iterator[tuple[int, Callable[[], None]]] = iter(
            (
                (total // 10, lambda: faults.kill("anna", LONG_S)),
                (total // 4, lambda: faults.freeze("bert", LONG_S)),
                (total // 2, lambda: faults.cut_off("cora", LONG_S)),
                (total * 5 // 8, lambda: faults.lose_answers("dora", LONG_S)),
                (total * 3 // 4, lambda: faults.crash_server("", 0)),
            )
        )
        self._next = next(self._parts, None)

    @property
    def over(self) -> bool:
        return self._next is None

    def go_on(self, completed: int) -> None:
        if self._next is not None and completed >= self._next[0]:
            self._next[1]()
            self._next = next(self._parts, None)


class Chance:
    """So many faults, drawn by chance; at least one host is left in peace."""

    def __init__(self, faults: Faults, count: int, seed: int) -> None:
        self._faults, self._count, self._chance = faults, count, random.Random(seed)
        self._next_s = 0.0

    @property
    def over(self) -> bool:
        return sum(self._faults.done.values()) >= self._count

    def go_on(self, completed: int) -> None:
        if self.over or time.monotonic() < self._next_s:
            return
        faults, chance = self._faults, self._chance
        free = faults.free()
        kind = chance.choice([*faults.of_the_server, *(faults.of_hosts if len(free) > 1 else ())])
        if len(free) > 1 or kind in faults.of_the_server:
            kind(chance.choice(free) if free else "", chance.choice((SHORT_S, LONG_S)))
            self._next_s = time.monotonic() + chance.uniform(0, 2 * PAUSE_S)
