"""The subscribers that a command of `orc notify` is about."""

from __future__ import annotations

from collections.abc import Sequence

from agent_orchestrator.config.subscribers import Subscriber
from agent_orchestrator.errors import Refused


def choose(subscribers: Sequence[Subscriber], name: str | None) -> list[Subscriber]:
    """Return all subscribers, or the one of a name; raise Refused where there is none."""
    if not subscribers:
        raise Refused(why="There is no [[notify]] in the configuration; `orc help notifications` shows how to write one.")
    found = [one for one in subscribers if name in (None, one.name)]
    if not found:
        raise Refused(why=f"There is no subscriber {name!r}; there are {', '.join(one.name for one in subscribers)}.")
    return found
