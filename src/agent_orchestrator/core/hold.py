"""A unit whose agent may not start yet: why, and until when. The engine holds units, the same way for every system.

Holds stand in `state.doing` and change with common events; a system only shows them.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.text import stamp

UNKNOWN_WINDOW = "unknown"
"""The window of a rate limit whose agent does not say which one it hit."""


class HoldReason(StrEnum):
    """The reason why a unit is held."""

    RATE_LIMIT = "rate_limit"
    BUDGET = "budget"
    SHORTAGE = "shortage"
    """The machine has too few processes or descriptors, or no room on its disk."""
    PERSON = "person"
    """A person has taken the agent's session over."""
    ACCOUNT = "account"
    """As many agents of its account work at once as may, on all hosts together."""


class Hold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A unit whose agent may not start yet."""

    effect: EffectId
    why: HoldReason
    reason: str
    """For people, in a few words."""
    until_us: int | None = None
    account: str = ""
    window: str = ""

    @property
    def told(self) -> str:
        """As documents show it."""
        return say_parked(self, stamp(self.until_us)) if self.until_us is not None else self.reason


def say_parked(hold: Hold, until: str) -> str:
    """`parked until 14:05 (claude, 5-hour window)`; `until` is the time as it is to be read."""
    window = f"{hold.window} window" if hold.window not in ("", UNKNOWN_WINDOW) else "rate limit"
    return f"parked until {until} ({hold.account}, {window})"
