"""`codex`: OpenAI Codex, headless (`codex exec --json`).

`error` events are mostly announcements of another try; only `turn.failed` and `turn.completed` end a turn. Usage is a
total over the thread, input includes what came from the cache, and it never says what anything cost. Each call's tokens, a
sleep that a retry-after asks for and a refused write stand in its log alone, on its error output, which is read line by line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.agents import events
from agent_orchestrator.agents.adapter import COPIES, AgentTask, Ending
from agent_orchestrator.agents.cli import CLI, CliAgent, StatePlace, flag, outside
from agent_orchestrator.agents.credentials import OPENAI
from agent_orchestrator.agents.environment import SERVER_KEY, SERVER_NAME
from agent_orchestrator.agents.options import AgentSettings
from agent_orchestrator.agents.refusal import find_status
from agent_orchestrator.agents.report import report_schema
from agent_orchestrator.agents.stream import (
    NewLines,
    StreamMeter,
    at,
    bytes_of,
    count_at,
    decode_line,
    read_lines,
    table_at,
    text_at,
)
from agent_orchestrator.beneath import write_plainly
from agent_orchestrator.bounded import store_of
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.limits import NAP_MAX_S
from agent_orchestrator.core.units import US, from_iso, say_duration

SCHEMA = "schema.json"

_TOOLS = ("command_execution", "file_change", "mcp_tool_call", "web_search")
_NAMES = {"command_execution": "exec_command", "file_change": "apply_patch"}
"""Its tools as the model knows them, where an item has another name."""
_ITEMS = (*_TOOLS, "agent_message", "error", "reasoning", "todo_list")
_RECONNECTING = re.compile(r"Reconnecting\.\.\. (\d{1,6})/(\d{1,6})(?: \((.*)\))?", re.S)
_SHELLS = ("-lc", "-c")
_DOES = {"command_execution": events.RUN, "file_change": events.WRITE}
_LIMITED = 429
_RESETS = re.compile(r"usage limit\b.*\btry again at (?:([A-Z][a-z]{2} \d{1,2}[a-z]{2}, \d{4}) )?(\d{1,2}:\d\d [AP]M)", re.S)
_ORDINAL = re.compile(r"(?<=\d)[a-z]{2}")
MINUTE_S = 60

LOGGED = "error,codex_core::responses_retry=warn,codex_otel.trace_safe[{input_token_count}]=info"
"""The RUST_LOG that it gets: its errors as ever, its retries, and one line for each call to the model."""

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


class CodexAgent(CliAgent):
    """The adapter."""

    name = "codex"
    own_vendor = OPENAI
    login = "run `codex login`, or export CODEX_API_KEY (it does not read OPENAI_API_KEY by itself)"
    logins = (("CODEX_HOME", ".codex", "auth.json"),)
    understood = CLI | {"permission_mode", "add_dirs"}
    modes = ("workspace-write", "read-only", "danger-full-access")
    instead = "its sandbox decides: --permission-mode workspace-write or danger-full-access"
    """The advice where a list of tools is given, which it has not."""
    widest = "danger-full-access"
    state = (StatePlace("CODEX_HOME", ".codex"),)
    structured = True
    cumulative = True
    kinds = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed", "error"}) | {
        f"item.{stage} {kind}" for stage in ("started", "updated", "completed") for kind in _ITEMS
    }
    abilities = frozenset({"session", COPIES, "tokens"})
    dead_session = "no rollout found for thread id"
    chatter = CHATTER
    defaults = {"RUST_LOG": LOGGED}  # noqa: RUF012 - a ClassVar of the parent

    def argv(self, task: AgentTask, settings: AgentSettings) -> Iterator[str]:
        """Return the flags; `resume` comes after all flags of `exec`, the prompt from standard input."""
        schema = task.launch_dir / SCHEMA
        write_plainly(store_of(task.launch_dir), schema, msgspec.json.encode(report_schema(task.effect.report, task.form)))
        yield from ("exec", "--json", "--skip-git-repo-check", "-C", str(task.workdir))
        # Its own wall does not stand inside another: with an old bubblewrap on the PATH it could write nothing at all.
        yield from ("--sandbox", self.widest if task.sandboxed else self.mode(settings))
        yield from flag("--model", task.effect.agent.model)
        for folder in (*settings.add_dirs, *outside(task)):
            yield from ("--add-dir", folder)
        yield from ("--output-schema", str(schema))
        if task.server is not None:
            yield from ("-c", f'mcp_servers.{SERVER_NAME}.url="{task.server.url}"')
            yield from ("-c", f'mcp_servers.{SERVER_NAME}.bearer_token_env_var="{SERVER_KEY}"')
        yield from settings.args
        yield from flag("fork" if task.copies_session else "resume", task.effect.session)
        yield "-"

    def interactive(self, task: AgentTask, settings: AgentSettings) -> Iterator[str]:
        """Return the flags for its own screen; the folder is the current one."""
        yield from flag("resume", task.effect.session)
        yield from ("--sandbox", self.widest if task.sandboxed else self.mode(settings))
        yield from flag("--model", task.effect.agent.model)
        for folder in (*settings.add_dirs, *outside(task)):
            yield from ("--add-dir", folder)
        yield from settings.args

    def suggest_flags(self, denied: events.Denied, settings: AgentSettings) -> str:
        """Return the next wider sandbox: that decides what it may do."""
        return f"--permission-mode {'workspace-write' if settings.permission_mode == 'read-only' else 'danger-full-access'}"

    def explain_unwritten(self, task: AgentTask) -> str:
        """Point to its sandbox, which may not work on this machine."""
        name = task.effect.agent.name
        return f'; `orc doctor` tries its sandbox, [agents.{name}] permission_mode = "danger-full-access" does without one'

    def opens(self, document: dict[str, Any]) -> bool:
        """Recognize its stream by the first line."""
        return document.get("type") == "thread.started" and text_at(document, "thread_id") != ""

    def kind_of(self, document: dict[str, Any]) -> str:
        """Name a line by its type, and by that of its item."""
        return f"{text_at(document, 'type')} {text_at(document, 'item', 'type')}".strip()

    def read_log(self, line: bytes) -> Iterator[events.StreamEvent]:
        """Turn one line of the log into events; a line that is written otherwise is passed over."""
        text = line.decode("utf-8", "replace")
        if _CALL.match(text):
            yield events.Consumed(usage=_read_call(text))
        elif nap := _read_nap(text):
            yield events.Limited(retry_at_us=nap[1])
        elif blocked := _BLOCKED.match(text):
            yield events.Denied(tool="apply_patch", why=blocked[1])

    def read(self, document: dict[str, Any]) -> Iterable[events.StreamEvent]:
        """Turn a line into events."""
        match document.get("type"):
            case "thread.started" if text_at(document, "thread_id"):
                return (events.SessionBegan(session=text_at(document, "thread_id")),)
            case "item.started" if text_at(document, "item", "type") in _TOOLS:
                return (_read_tool(document),)
            case "item.completed":
                return _read_item(document)
            case "error" if found := _RECONNECTING.match(text_at(document, "message")):
                return (events.Retried(why=found[3] or "", attempt=int(found[1]), most=int(found[2])),)
            case "turn.completed":
                return _read_end(document)
            case "turn.failed":
                message = text_at(document, "error", "message")
                return (events.Finished(ok=False, message=_read_refusal(message), status=find_status(message)),)
        return ()

    def meter(self, task: AgentTask, out: Path, err: Path) -> StreamMeter:
        """Meter its log: the stream has a total only at the end."""
        return StreamMeter(err, self.read_log, task.effect.agent, totals=False)

    def watch_sleep(self, task: AgentTask, err: Path) -> SleepWatch:
        """Look for a retry-after that it would obey."""
        return SleepWatch(err)

    def transcript(self, ending: Ending) -> events.Transcript:
        """Read its output and what only its log says; a rate limit stands until the next call that is answered."""
        seen = super().transcript(ending)
        for event in (event for line in read_lines(ending.err) if line is not None for event in self.read_log(line)):
            seen.add(event)
            if isinstance(event, events.Consumed):
                seen.limit = None
        if seen.end is not None and seen.end.status != _LIMITED:
            resets_us = _read_reset_us(seen.end.message, ending.ended_us) if not seen.end.ok else None
            seen.limit = events.Limited(retry_at_us=resets_us, window="plan") if resets_us is not None else None
        return seen

    def find_end(self, seen: events.Transcript) -> events.Finished | None:
        """Take the last thing the model said for the report. One that was ended in its sleep was refused."""
        end = seen.end
        if end is None and seen.limit is not None:
            return events.Finished(ok=False, message="It was ended while it waited for its rate limit to pass.", status=_LIMITED)
        if end is None or not end.ok:
            return end
        return msgspec.structs.replace(end, message=seen.text, report=decode_line(seen.text.encode()))


def _read_reset_us(message: str, now_us: int) -> int | None:
    """Return the end of a plan's limit, if it says so: in local time, to the minute, and without the day when that is today."""
    found = _RESETS.search(message)
    if found is None:
        return None
    day = found[1] or f"{datetime.fromtimestamp(now_us // US, UTC).astimezone():%b %d, %Y}"
    try:
        moment = datetime.strptime(f"{_ORDINAL.sub('', day)} {found[2]}", "%b %d, %Y %I:%M %p").astimezone()
    except ValueError:
        return None
    return int(moment.timestamp() + MINUTE_S) * US


def _read_item(document: dict[str, Any]) -> Iterator[events.StreamEvent]:
    kind = text_at(document, "item", "type")
    if kind == "agent_message":
        yield events.Said(text=text_at(document, "item", "text"))
    elif kind == "error":
        yield events.Noted(text=text_at(document, "item", "message"))
    elif kind in _TOOLS:
        yield _read_tool(document)
        yield events.ToolEnded(
            call=text_at(document, "item", "id"),
            ok=text_at(document, "item", "status") == "completed",
            result_bytes=bytes_of(at(document, "item", "aggregated_output")),
        )


def _read_tool(document: dict[str, Any]) -> events.ToolUsed:
    item = table_at(document, "item")
    kind, changes = text_at(item, "type"), item.get("changes")
    given = {"command": _unwrap_command(text_at(item, "command")), "query": text_at(item, "query"), **table_at(item, "arguments")}
    if isinstance(changes, list):
        given = {"path": " ".join(text_at(change, "path") for change in changes)}
    tool = text_at(item, "tool") or _NAMES.get(kind, kind)
    return events.ToolUsed(tool=tool, call=text_at(item, "id"), does=_DOES.get(kind, ""), given=given)


def _unwrap_command(command: str) -> str:
    """Return the command that the model gave, without the shell that runs it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[1] in _SHELLS else command


def _read_end(document: dict[str, Any]) -> Iterator[events.StreamEvent]:
    named = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
    sent, cached, written, output = (count_at(document, "usage", name) for name in named)
    yield events.Consumed(usage=_count_tokens(sent, cached, written, output), total=True)
    yield events.Finished(ok=True)


def _read_refusal(message: str) -> str:
    """Return the message of a refusal, also of one that arrives as the API's raw answer."""
    answer = decode_line(message.encode())
    told = text_at(answer, "error", "message")
    code = text_at(answer, "error", "code") or text_at(answer, "error", "type")
    return f"{told} ({code})" if told and code else told or message


class SleepWatch:
    """A watch on the growing log for a sleep: one that takes longer than NAP_MAX_S is not waited for."""

    def __init__(self, path: Path) -> None:
        self._lines = NewLines(path)

    def __call__(self) -> Failure | None:
        """Return the refusal that it is sleeping out."""
        found: Failure | None = None
        for line in self._lines():
            text = line.decode("utf-8", "replace")
            nap = _read_nap(text)
            if nap is not None and nap[0] > NAP_MAX_S:
                why = f"Stopped: its API refused a call (429), and it would have slept for {say_duration(round(nap[0]))}."
                found = Failure(kind=FailureKind.RATE_LIMITED, message=why, retry_at_us=nap[1])
            elif nap is not None or _CALL.match(text):
                found = None
        return found


def _read_nap(text: str) -> tuple[float, int] | None:
    """Return the seconds that it will sleep, and until when."""
    found = _RETRY.match(text)
    if found is None:
        return None
    sleeps_s = float(found[2]) / (1000 if found[3] == "ms" else 1)
    try:
        return sleeps_s, from_iso(found[1]) + int(sleeps_s * US)
    except ValueError:  # no such day
        return None


def _read_call(text: str) -> Usage:
    counts = {name: int(count) for name, count in _COUNT.findall(text)}
    model = _MODEL.search(text)
    cached, written = counts.get("cached"), counts.get("cache_write")
    return _count_tokens(counts.get("input"), cached, written, counts.get("output"), model[1] if model else None)


def _count_tokens(
    sent: int | None, cached: int | None, written: int | None, output: int | None, model: str | None = None
) -> Usage:
    """Return the tokens as the ledger counts them: what came from the cache or went there is no input."""
    return Usage(
        model=model,
        input_tokens=max(0, sent - (cached or 0) - (written or 0)) if sent is not None else None,
        output_tokens=output,
        cache_read_tokens=cached,
        cache_write_tokens=written,
    )


AGENT = CodexAgent()
