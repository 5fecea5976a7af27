"""The reasons why an attempt fails, as a closed set of kinds, and which of them a retry can mend."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class FailureKind(StrEnum):
    """The kind of thing that went wrong with one launch."""

    EXIT = "exit"
    REPORTED = "reported"
    REPORT_MISSING = "report_missing"
    REPORT_INVALID = "report_invalid"
    TIMEOUT = "timeout"
    IDLE = "idle"
    OUTPUT_LIMIT = "output_limit"
    LOST = "lost"
    LAUNCH = "launch"
    SPEC = "spec"
    AUTH = "auth"
    PROMPT_TOO_LONG = "prompt_too_long"
    OVERLOADED = "overloaded"
    RATE_LIMITED = "rate_limited"
    """The account may not ask the model for a while; `retry_at_us` says until when, where the agent knows."""
    DENIED = "denied"
    """The agent was refused a tool and gave up, or was to fail for it; the next one is told to do without the tool."""
    UNWRITTEN = "unwritten"
    """The agent says that it is done, and every change of a file that it tried failed."""
    AGENT_LIMIT = "agent_limit"
    """The agent stopped at a limit of its own: turns, money, a loop it noticed."""
    SESSION_LOST = "session_lost"
    """The session to go on with does not exist any more; the attempt goes on in a fresh one."""
    BUDGET = "budget"
    """Stopped because another call to the model might have passed what it was allowed to spend."""
    STOPPED = "stopped"
    """Ended because the engine was asked to stop it; the attempt goes on with a new launch when the run does."""


DETERMINISTIC = frozenset({FailureKind.LAUNCH, FailureKind.SPEC, FailureKind.AUTH, FailureKind.PROMPT_TOO_LONG})
"""Failures that would only happen again: never retried."""

GOES_ON = frozenset({FailureKind.STOPPED, FailureKind.SESSION_LOST, FailureKind.RATE_LIMITED, FailureKind.BUDGET})
"""Ends of a launch that are no end of its attempt."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failed launch: its kind and the sentence that goes into `last_error`."""

    kind: FailureKind
    message: str
    retry_at_us: int | None = None
    """Before this wall-clock time it would only fail again."""
    window: str = ""
    """Which of the account's rate limits it was, where the agent says."""

    @property
    def retryable(self) -> bool:
        """True when another attempt may end differently."""
        return self.kind not in DETERMINISTIC

    @property
    def goes_on(self) -> bool:
        """True when the attempt goes on with a new launch, as soon as it may, instead of counting as failed."""
        return self.kind in GOES_ON


def invalid_report(message: str) -> Failure:
    """Fail a launch whose report cannot be used."""
    return Failure(kind=FailureKind.REPORT_INVALID, message=message)
