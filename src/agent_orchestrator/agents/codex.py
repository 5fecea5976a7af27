"""`codex`: OpenAI Codex, headless (`codex exec --json`).

`error` events are mostly announcements of another try; only `turn.failed` and `turn.completed` end a turn. Usage is a
total over the thread, input includes what came from the cache, and it never says what anything cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.agents.adapter import Ending, Task
from agent_orchestrator.agents.classify import status_in
from agent_orchestrator.agents.cli import CLI, CliAgent, outside
from agent_orchestrator.agents.codex_log import CHATTER, LOGGED, SleepWatch, read_log, usage_of
from agent_orchestrator.agents.credentials import OPENAI, Vendor
from agent_orchestrator.agents.fields import count_at, text_at
from agent_orchestrator.agents.meter import StreamMeter
from agent_orchestrator.agents.options import AgentSettings
from agent_orchestrator.agents.stream import (
    RUN,
    WRITE,
    Consumed,
    Denied,
    Ended,
    Limited,
    Noted,
    Said,
    SessionBegan,
    StreamEvent,
    ToolEnded,
    ToolUsed,
    Transcript,
    decode_line,
    read_lines,
)
from agent_orchestrator.agents.structured import report_schema
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.units import US

SCHEMA = "schema.json"

_TOOLS = ("command_execution", "file_change", "mcp_tool_call", "web_search")
_DOES = {"command_execution": RUN, "file_change": WRITE}
_LIMITED = 429
_RESETS = re.compile(r"usage limit\b.*\btry again at (?:([A-Z][a-z]{2} \d{1,2}[a-z]{2}, \d{4}) )?(\d{1,2}:\d\d [AP]M)", re.S)
_ORDINAL = re.compile(r"(?<=\d)[a-z]{2}")
MINUTE_S = 60


class CodexAgent(CliAgent):
    """The adapter."""

    name = "codex"
    login = "run `codex login`, or export CODEX_API_KEY (it does not read OPENAI_API_KEY by itself)"
    understood = CLI | {"permission_mode", "add_dirs"}
    modes = ("workspace-write", "read-only", "danger-full-access")
    instead = "its sandbox decides: --permission-mode workspace-write or danger-full-access"
    """What to do where a list of tools is given, which it has not."""
    structured = True
    cumulative = True
    dead_session = "no rollout found for thread id"
    chatter = CHATTER
    defaults = {"RUST_LOG": LOGGED}  # noqa: RUF012 - a ClassVar of the parent

    def vendor(self, choice: AgentChoice) -> Vendor:
        """OpenAI."""
        return OPENAI

    def argv(self, task: Task, settings: AgentSettings) -> Iterator[str]:
        """`resume` comes after all flags of `exec`, the prompt from standard input."""
        schema = task.launch_dir / SCHEMA
        schema.write_bytes(msgspec.json.encode(report_schema(task.effect.report, task.form)))
        yield from ("exec", "--json", "--skip-git-repo-check", "-C", str(task.workdir))
        yield from ("--sandbox", settings.permission_mode or self.modes[0])
        if task.effect.agent.model is not None:
            yield from ("--model", task.effect.agent.model)
        for folder in (*settings.add_dirs, *outside(task)):
            yield from ("--add-dir", folder)
        yield from ("--output-schema", str(schema))
        yield from settings.args
        if task.effect.session is not None:
            yield from ("resume", task.effect.session)
        yield "-"

    def allowing(self, denied: Denied, settings: AgentSettings) -> str:
        """Its sandbox decides what it may do, and there is a wider one but for the widest."""
        return f"--permission-mode {'workspace-write' if settings.permission_mode == 'read-only' else 'danger-full-access'}"

    def unwritable(self, task: Task) -> str:
        """Its sandbox may not work on this machine."""
        name = task.effect.agent.name
        return f'; `orc doctor` tries its sandbox, [agents.{name}] permission_mode = "danger-full-access" does without one'

    def read(self, document: dict[str, Any]) -> Iterable[StreamEvent]:
        """What a line means."""
        match document.get("type"):
            case "thread.started" if text_at(document, "thread_id"):
                return (SessionBegan(session=text_at(document, "thread_id")),)
            case "item.completed":
                return _item(document)
            case "turn.completed":
                return _completed(document)
            case "turn.failed":
                message = text_at(document, "error", "message")
                return (Ended(ok=False, message=_plainly(message), status=status_in(message)),)
        return ()

    def meter(self, task: Task, out: Path, err: Path) -> StreamMeter:
        """By its log: the stream has a total at the end."""
        return StreamMeter(err, read_log, task.effect.agent, totals=False)

    def asleep(self, task: Task, err: Path) -> SleepWatch:
        """Looks for a retry-after that it would obey."""
        return SleepWatch(err)

    def transcript(self, ending: Ending) -> Transcript:
        """With what only its log says; a rate limit stands until the next call that is answered."""
        seen = super().transcript(ending)
        for event in (event for line in read_lines(ending.err) if line is not None for event in read_log(line)):
            seen.add(event)
            if isinstance(event, Consumed):
                seen.limit = None
        if seen.end is not None and seen.end.status != _LIMITED:
            resets_us = _resets_us(seen.end.message, ending.ended_us) if not seen.end.ok else None
            seen.limit = Limited(retry_at_us=resets_us, window="plan") if resets_us is not None else None
        return seen

    def ended(self, seen: Transcript) -> Ended | None:
        """The report is the last thing the model said. One that was ended in its sleep was refused."""
        end = seen.end
        if end is None and seen.limit is not None:
            return Ended(ok=False, message="It was ended while it waited for its rate limit to pass.", status=_LIMITED)
        if end is None or not end.ok:
            return end
        return msgspec.structs.replace(end, message=seen.text, report=decode_line(seen.text.encode()))


def _resets_us(message: str, now_us: int) -> int | None:
    """When a plan's limit is over, where it says so: in local time, to the minute, and without the day when that is today."""
    found = _RESETS.search(message)
    if found is None:
        return None
    day = found[1] or f"{datetime.fromtimestamp(now_us // US, UTC).astimezone():%b %d, %Y}"
    try:
        moment = datetime.strptime(f"{_ORDINAL.sub('', day)} {found[2]}", "%b %d, %Y %I:%M %p").astimezone()
    except ValueError:
        return None
    return int(moment.timestamp() + MINUTE_S) * US


def _item(document: dict[str, Any]) -> Iterator[StreamEvent]:
    kind = text_at(document, "item", "type")
    if kind == "agent_message":
        yield Said(text=text_at(document, "item", "text"))
    elif kind == "error":
        yield Noted(text=text_at(document, "item", "message"))
    elif kind in _TOOLS:
        call = text_at(document, "item", "id")
        yield ToolUsed(tool=kind, call=call, does=_DOES.get(kind, ""))
        yield ToolEnded(call=call, ok=text_at(document, "item", "status") == "completed")


def _completed(document: dict[str, Any]) -> Iterator[StreamEvent]:
    named = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
    sent, cached, written, output = (count_at(document, "usage", name) for name in named)
    yield Consumed(usage=usage_of(sent, cached, written, output), total=True)
    yield Ended(ok=True)


def _plainly(message: str) -> str:
    """Some refusals arrive as the API's raw answer."""
    answer = decode_line(message.encode())
    told = text_at(answer, "error", "message")
    code = text_at(answer, "error", "code") or text_at(answer, "error", "type")
    return f"{told} ({code})" if told and code else told or message


AGENT = CodexAgent()
