"""The kinds of failure that an API's refusal can be: by its HTTP status, else by the words of the terminal event.

Only typed terminal events and a CLI's own error output come here, never what a model said or a file holds.
"""

from __future__ import annotations

import re

from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.units import read_duration_s
from agent_orchestrator.errors import InvalidValue

_BY_STATUS = {
    400: FailureKind.SPEC,
    401: FailureKind.AUTH,
    402: FailureKind.AUTH,
    403: FailureKind.AUTH,
    404: FailureKind.SPEC,
    408: FailureKind.OVERLOADED,
    413: FailureKind.PROMPT_TOO_LONG,
    422: FailureKind.SPEC,
    429: FailureKind.RATE_LIMITED,
}

_TELLING = (
    (FailureKind.PROMPT_TOO_LONG, r"prompt is too long|prompt_too_long|context_length_exceeded|exceeds the context window"),
    (FailureKind.AUTH, r"quota exceeded for metric: [^\s,]+, limit: 0\b"),
    (FailureKind.RATE_LIMITED, r"quota exceeded for (quota )?metric|resource.?exhausted|daily quota|quota will reset after"),
    (FailureKind.AUTH, r"credit balance is too low|quota exceeded|insufficient_quota|billing"),
)
"""Words that say more than the status that comes with them; the first that fit count. An empty account is a 400 with one
vendor and a 429 with another, and a third speaks of plan and billing when it means the requests of this minute."""

_BY_WORDS = (
    (FailureKind.AUTH, r"not logged in|please run /login|invalid api key|failed to authenticate|unauthenticated|unauthorized"),
    (FailureKind.AUTH, r"missing environment variable|permission_denied"),
    (FailureKind.RATE_LIMITED, r"rate.?limit|usage limit|too many requests|resource_exhausted|request a quota increase"),
    (FailureKind.OVERLOADED, r"overloaded|high demand|timed? ?out|disconnected|connection|ECONN\w+|network|terminated|socket"),
    (FailureKind.OVERLOADED, r"malformed|empty response|unterminated|unexpected end|in JSON at position|server.?error"),
    (FailureKind.SPEC, r"invalid_request_error|invalid_argument"),
)

_WAIT = re.compile(r"\b(?:retry|try again|reset) (?:in|after) ((?:\d+h)?(?:\d+m)?(?:\d+(?:\.\d+)?s)?)(?![\w.]*\d)", re.I)

BAD_START = re.compile(
    r"unknown (option|argument)|unexpected argument|requires --|cannot be used with|not inside a trusted directory"
    r"|not running in a trusted directory|invalid value .* for|^usage:|already in use|input must be provided|^positionals:",
    re.I | re.M,
)
"""The error output of a CLI that was started wrongly: the same would happen again."""

_STATUS = re.compile(r"\bstatus(?: code)?:? (\d{3})\b|\"code\": ?(\d{3})\b|API Error: (\d{3})\b|\((\d{3})\)")


def find_status(message: str) -> int | None:
    """Return the HTTP status that an error message of a CLI names."""
    found = _STATUS.search(message)
    return int(next(group for group in found.groups() if group)) if found else None


def find_wait_s(message: str) -> float | None:
    """Return the seconds to wait, if an error message of a CLI says so: `retry in 34.07s`, `reset after 8h44m7s`."""
    found = _WAIT.search(message)
    try:
        return read_duration_s(found[1], "the wait") if found else None
    except InvalidValue:  # 0s
        return None


def is_unpaid(message: str) -> bool:
    """Return True if the account is known and has nothing left to spend: no login would change that."""
    return any(kind is FailureKind.AUTH and re.search(words, message, re.I) for kind, words in _TELLING)


def classify(status: int | None, message: str) -> FailureKind:
    """Classify a refusal; EXIT, which is tried again, when nothing is known."""
    for kind, words in _TELLING:
        if re.search(words, message, re.I):
            return kind
    if status is not None:
        kind_by_status = FailureKind.OVERLOADED if status >= 500 else _BY_STATUS.get(status)
        if kind_by_status is not None:
            return kind_by_status
    for kind, words in _BY_WORDS:
        if re.search(words, message, re.I):
            return kind
    return FailureKind.EXIT
