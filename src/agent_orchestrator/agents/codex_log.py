"""What codex says in its log, on its error output, and nowhere else: each call's tokens, its sleep, a refused write.

Its JSON lines have a total at the end of the turn only, and a retry-after of hours is slept out behind them. The log is
read line by line, at the line's beginning; what is not written like this is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from agent_orchestrator.agents.stream import Consumed, Denied, Limited, NewLines, StreamEvent
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.limits import NAP_MAX_S
from agent_orchestrator.core.units import US, from_iso, say_duration

LOGGED = "error,codex_core::responses_retry=warn,codex_otel.trace_safe[{input_token_count}]=info"
"""What RUST_LOG asks for: its errors as ever, its retries, and one line for each call to the model."""

CHATTER = re.compile(r"Reading additional input from stdin|\S+Z +(?:INFO codex_otel\.|WARN codex_core::responses_retry:)")
"""Lines that are there for us alone or say nothing: no reason for anything."""

_CALL = re.compile(r"\S+Z +INFO codex_otel\.trace_safe: .*\bevent\.kind=response\.completed ")
_COUNT = re.compile(r"\b(input|cached|cache_write|output)_token_count=(\d{1,15})\b")
_MODEL = re.compile(r' model="?([^\s"]+)')
_RETRY = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z) +WARN codex_core::responses_retry: "
    r".*? in (\d{1,9}(?:\.\d+)?)(ms|s)\).*\bstatus:? 429\b"
)
_BLOCKED = re.compile(r"\S+Z +ERROR codex_core::tools::router: (?:error=)?(.*rejected by user approval settings.*)")


def read_log(line: bytes) -> Iterator[StreamEvent]:
    """What one line of the log means."""
    text = line.decode("utf-8", "replace")
    if _CALL.match(text):
        yield Consumed(usage=_usage(text))
    elif nap := _nap(text):
        yield Limited(retry_at_us=nap[1])
    elif blocked := _BLOCKED.match(text):
        yield Denied(tool="apply_patch", why=blocked[1])


class SleepWatch:
    """Looks for a sleep in the log while it grows: one that takes longer than NAP_MAX_S is not waited for."""

    def __init__(self, path: Path) -> None:
        self._lines = NewLines(path)

    def __call__(self) -> Failure | None:
        """The refusal that it is sleeping out."""
        found: Failure | None = None
        for line in self._lines():
            text = line.decode("utf-8", "replace")
            nap = _nap(text)
            if nap is not None and nap[0] > NAP_MAX_S:
                why = f"Stopped: its API refused a call (429), and it would have slept for {say_duration(round(nap[0]))}."
                found = Failure(kind=FailureKind.RATE_LIMITED, message=why, retry_at_us=nap[1])
            elif nap is not None or _CALL.match(text):
                found = None
        return found


def _nap(text: str) -> tuple[float, int] | None:
    """How many seconds it will sleep, and until when."""
    found = _RETRY.match(text)
    if found is None:
        return None
    sleeps_s = float(found[2]) / (1000 if found[3] == "ms" else 1)
    try:
        return sleeps_s, from_iso(found[1]) + int(sleeps_s * US)
    except ValueError:  # no such day
        return None


def _usage(text: str) -> Usage:
    counts = {name: int(count) for name, count in _COUNT.findall(text)}
    model = _MODEL.search(text)
    cached, written = counts.get("cached"), counts.get("cache_write")
    return usage_of(counts.get("input"), cached, written, counts.get("output"), model[1] if model else None)


def usage_of(sent: int | None, cached: int | None, written: int | None, output: int | None, model: str | None = None) -> Usage:
    """The tokens as the ledger counts them: what came from the cache or went there is no input."""
    return Usage(
        model=model,
        input_tokens=max(0, sent - (cached or 0) - (written or 0)) if sent is not None else None,
        output_tokens=output,
        cache_read_tokens=cached,
        cache_write_tokens=written,
    )
