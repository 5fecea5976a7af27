"""`gemini`: Gemini CLI, headless (`gemini --output-format stream-json`).

An API error's exit code is its HTTP status modulo 256. A loop it detects ends with status success and a warning.
It has no schema flag: the prompt asks for the report file. It reports tokens, never money.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from agent_orchestrator.agents import events
from agent_orchestrator.agents.adapter import AgentTask, Ending
from agent_orchestrator.agents.cli import CLI, CliAgent, StatePlace, allow_tool, flag, outside
from agent_orchestrator.agents.credentials import GOOGLE
from agent_orchestrator.agents.options import AgentSettings
from agent_orchestrator.agents.refusal import classify, find_status, find_wait_s
from agent_orchestrator.agents.stream import at, bytes_of, count_at, table_at, text_at, time_at
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.units import US

_EXITS = {41: FailureKind.AUTH, 42: FailureKind.LAUNCH, 52: FailureKind.LAUNCH, 55: FailureKind.LAUNCH}
"""Authentication, bad input, bad configuration, a folder that is not trusted."""

_STATUSES = {status % 256: status for status in (400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529)}
"""HTTP statuses by the exit code that an API error leaves: the message has one only where the API answers as Google's does."""

_REFUSED = re.compile("path not in workspace", re.I)
_DENIED = ("policy_violation", "tool_not_registered")
"""Its types of errors by which it refuses a tool: by a rule, or by not having one that every client has."""

_RETRY = re.compile(r"Attempt (\d{1,6}) failed with status (\d{3})\. Retrying")

SHELL = "run_shell_command"
_DOES = {"write_file": events.WRITE, "replace": events.WRITE, SHELL: events.RUN}
READ_ONLY = ("git status", "git ls-files", "git blame")
"""Its rules are beginnings of commands; `git diff` and its like write a file with --output."""
_PLAIN = re.compile(r"[\w./@=:+-]+(?: [\w./@=:+-]+)*\Z")
"""Commands that its list of tools, with commas between them, can say as they are."""


class GeminiAgent(CliAgent):
    """The adapter."""

    name = "gemini"
    own_vendor = GOOGLE
    login = "run `gemini` once and log in, or export GEMINI_API_KEY"
    logins = (("", ".gemini", "oauth_creds.json"),)
    understood = CLI | {"permission_mode", "allowed_tools", "add_dirs"}
    modes = ("auto_edit", "default", "yolo", "plan")
    widest = "yolo"
    state = (StatePlace("GEMINI_CLI_HOME", "", ".gemini"),)
    kinds = frozenset({"init", "message", "tool_use", "tool_result", "error", "result"})
    dead_session = "Error resuming session"

    def argv(self, task: AgentTask, settings: AgentSettings) -> Iterator[str]:
        """Return the flags, for a stream of JSON."""
        yield from ("--output-format", "stream-json")
        yield from self.interactive(task, settings)

    def interactive(self, task: AgentTask, settings: AgentSettings) -> Iterator[str]:
        """Return the flags; folders beside the tree have to be named, or it refuses to touch them."""
        yield "--skip-trust"
        yield from ("--approval-mode", self.mode(settings))
        if folders := (*settings.add_dirs, *outside(task)):
            yield from ("--include-directories", ",".join(folders))
        tools = settings.allowed_tools
        if self.mode(settings) == self.modes[0]:
            plain = (*READ_ONLY, *(one for one in task.effect.allowed_commands if _PLAIN.match(one)))
            tools = (*tools, *(f"{SHELL}({one})" for one in plain))
        if tools:
            yield from ("--allowed-tools", ",".join(dict.fromkeys(tools)))
        yield from flag("--model", task.effect.agent.model)
        yield from flag("--resume", task.effect.session)
        yield from settings.args

    def suggest_flags(self, denied: events.Denied, settings: AgentSettings) -> str:
        """Return a rule for its list of tools; what lies outside the tree is opened by `add_dirs` alone."""
        if denied.tool != SHELL:
            return ""
        return allow_tool(f"{SHELL}({denied.asked})") if _PLAIN.match(denied.asked) else "--permission-mode yolo"

    def opens(self, document: dict[str, Any]) -> bool:
        """Recognize its stream by the first line."""
        return document.get("type") == "init" and text_at(document, "session_id") != ""

    def read_log(self, line: bytes) -> Iterable[events.StreamEvent]:
        """Read the retries that its error output alone tells of."""
        if found := _RETRY.match(line.decode("utf-8", "replace")):
            yield events.Retried(why=f"status {found[2]}", attempt=int(found[1]))

    def read(self, document: dict[str, Any]) -> Iterable[events.StreamEvent]:
        """Turn a line into events."""
        match document.get("type"):
            case "init" if text_at(document, "session_id"):
                return (events.SessionBegan(session=text_at(document, "session_id"), model=text_at(document, "model") or None),)
            case "tool_use":
                asked = text_at(document, "parameters", "command") or text_at(document, "parameters", "file_path")
                tool, call = text_at(document, "tool_name"), text_at(document, "tool_id")
                given, used_us = table_at(document, "parameters"), time_at(document, "timestamp")
                return (events.ToolUsed(tool=tool, call=call, asked=asked, does=_DOES.get(tool, ""), given=given, at_us=used_us),)
            case "tool_result" if _is_refusal(document):
                call = text_at(document, "tool_id")
                return (events.Denied(tool=call.partition("__")[0], why=text_at(document, "error", "message"), call=call),)
            case "tool_result":
                return (_read_tool_end(document),)
            case "message" if document.get("role") == "assistant":
                return (events.Said(text=text_at(document, "content"), piece=document.get("delta") is True),)
            case "error" if "loop detected" in text_at(document, "message").lower():
                return (events.Finished(ok=False, message=text_at(document, "message"), reason="limit"),)
            case "result":
                return _read_result(document)
        return ()

    def transcript(self, ending: Ending) -> events.Transcript:
        """Read its output; an error whose message does not name its status has it in the exit code."""
        seen = super().transcript(ending)
        end, code = seen.end, ending.exit_code
        if end is not None and not end.ok and not end.reason and end.status is None and code is not None:
            seen.end = msgspec.structs.replace(end, status=_STATUSES.get(code))
        return seen

    def classify_exit(self, exit_code: int, err: str) -> FailureKind | None:
        """Classify by its own exit codes."""
        return _EXITS.get(exit_code)


def _read_tool_end(document: dict[str, Any]) -> events.ToolEnded:
    return events.ToolEnded(
        call=text_at(document, "tool_id"),
        ok=document.get("status") == "success",
        at_us=time_at(document, "timestamp"),
        result_bytes=bytes_of(document.get("output") or at(document, "error", "message")),
    )


def _is_refusal(document: dict[str, Any]) -> bool:
    kind, tool = text_at(document, "error", "type"), text_at(document, "tool_id").partition("__")[0]
    if kind == "tool_not_registered":
        return tool == SHELL  # any other that it does not have, the model made up
    return kind in _DENIED or _REFUSED.search(text_at(document, "error", "message")) is not None


def _read_result(document: dict[str, Any]) -> Iterator[events.StreamEvent]:
    models = at(document, "stats", "models")
    usage = Usage(
        model=next(iter(models)) if isinstance(models, dict) and len(models) == 1 else None,
        input_tokens=count_at(document, "stats", "input"),
        output_tokens=count_at(document, "stats", "output_tokens"),
        cache_read_tokens=count_at(document, "stats", "cached"),
    )
    yield events.Consumed(usage=usage, total=True)
    message = text_at(document, "error", "message")
    status, wait_s, now_us = find_status(message), find_wait_s(message), time_at(document, "timestamp")
    if classify(status, message) is FailureKind.RATE_LIMITED and wait_s is not None and now_us is not None:
        yield events.Limited(retry_at_us=now_us + int(wait_s * US))
    limited = text_at(document, "error", "type") == "FatalTurnLimitedError"
    yield events.Finished(
        ok=document.get("status") == "success",
        message=message,
        status=status,
        reason="limit" if limited else "",
    )


AGENT = GeminiAgent()
