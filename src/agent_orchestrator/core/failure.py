"""Why an attempt failed, as a closed set of kinds, and which of them a retry can mend."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class FailureKind(StrEnum):
    """What went wrong with one launch."""

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
    STOPPED = "stopped"
    """Ended because the engine was asked to stop it; the attempt goes on with a new launch when the run does."""


DETERMINISTIC = frozenset({FailureKind.LAUNCH, FailureKind.SPEC, FailureKind.AUTH, FailureKind.PROMPT_TOO_LONG})
"""Failures that would only happen again: never retried."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A failed launch: its kind and the sentence that goes into `last_error`."""

    kind: FailureKind
    message: str

    @property
    def retryable(self) -> bool:
        """Whether another attempt may end differently."""
        return self.kind not in DETERMINISTIC
