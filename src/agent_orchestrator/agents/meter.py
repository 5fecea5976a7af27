"""Reads what an agent consumes from its growing output, call by call, while it works.

Whole lines only, each once, a bounded part at a look; what is still unread is read at the next. Nothing is judged here.
"""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.agents.adapter import Reading
from agent_orchestrator.agents.options import priced
from agent_orchestrator.agents.stream import COUNTED, Consumed, LineReader, NewLines, Transcript
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.inputs import Usage


class StreamMeter:
    """What a stream says was consumed up to now."""

    def __init__(self, path: Path, reader: LineReader, choice: AgentChoice, *, totals: bool) -> None:
        self._lines, self._reader, self._choice = NewLines(path), reader, choice
        self._totals = totals
        """Whether a total is this launch's own; one that counts a whole session says nothing of a single call."""
        self._seen = Transcript()

    def __call__(self) -> Reading:
        """What was consumed by now."""
        for line in self._lines():
            for event in self._reader(line):
                if isinstance(event, Consumed):
                    self._take(event)
        return self._reading()

    def _take(self, event: Consumed) -> None:
        if not event.total:
            self._seen.add(event)
        elif self._totals:
            self._seen.add(Consumed(usage=_rest_of(event.usage, self._seen.usage)))

    def _reading(self) -> Reading:
        calls = [priced(call, self._choice) for call in self._seen.calls.values()]
        costs = [call.cost_usd for call in calls if call.cost_usd is not None]
        tokens = [call.tokens for call in calls if call.tokens is not None]
        return Reading(
            calls=len(calls),
            cost_usd=sum(costs) if len(costs) == len(calls) else None,
            tokens=sum(tokens) if len(tokens) == len(calls) else None,
            largest_usd=max(costs, default=None),
            largest_tokens=max(tokens, default=None),
        )


def _rest_of(total: Usage, known: Usage | None) -> Usage:
    """What a new total adds to what was known: one call more."""
    if known is None:
        return total
    more = {name: max(0, value - (getattr(known, name) or 0)) for name in COUNTED if (value := getattr(total, name)) is not None}
    return Usage(model=total.model, **more)
