"""A connection that waits for an answer only so long.

A server that is frozen, or a proxy that swallows, takes a request and says nothing; the kernel of its host still answers for the
connection, so that no time-out of TCP ever comes. So silence is bounded here; as long as something arrives, it is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import psycopg

LONGER = 1.2
"""The server says itself that a statement takes too long (`set_up`), if it can; silence is given up when it has had time to."""
ANSWER_S = 36.0
LOOP_ANSWER_S = 5.0
"""An event loop looks after agents, and waits no longer for anybody."""
PARTING_S = 2.0
"""Whoever leaves waits so long for an answer that is on its way."""
TICK_S = 0.1


class NoAnswer(psycopg.OperationalError):
    """Nothing was heard from the server for too long; whether the statement was carried out is not known."""


class PatientConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed when its server is silent for longer than it may be."""

    answer_s = ANSWER_S
    """The longest silence, by what its server lets a statement take."""
    silence_s: Callable[[float], float]
    """The longest silence as things are for whoever waits; asked again and again."""

    def wait(self, gen: Generator[Any, Any, Any], *how: Any, **named: Any) -> Any:
        """Let a statement go its way as psycopg does, and close the connection if nothing is heard for too long."""
        try:
            return super().wait(
                self._bounded(gen), TICK_S, *how[1:], **{name: named[name] for name in named if name != "interval"}
            )
        except NoAnswer:
            self.close()
            raise

    def _bounded(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Hand on what the waiting one says, who tells with every tick, by an empty word, that nothing has come."""
        ticks = 0
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                ticks = 0 if ready else ticks + 1
                if ticks * TICK_S > (most_s := self.silence_s(self.answer_s)):
                    raise NoAnswer(f"it took a request and has not answered for {most_s:g} s")
                wanted = gen.send(ready)
        except StopIteration as over:
            return over.value
