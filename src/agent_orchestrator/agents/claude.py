"""`claude`: Claude Code, headless (`claude -p --output-format stream-json`).

Its `subtype` says "success" for API errors too: only `is_error` counts. Denied tools leave exit code 0. Money is a total
over the session, tokens of `modelUsage` too; prices of models it does not know are made up by it and not believed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from agent_orchestrator import typed
from agent_orchestrator.agents import events
from agent_orchestrator.agents.adapter import COPIES, AgentTask
from agent_orchestrator.agents.cli import CLI, CliAgent, StatePlace, allow_tool, flag, outside
from agent_orchestrator.agents.credentials import ANTHROPIC
from agent_orchestrator.agents.environment import SERVER_KEY, SERVER_NAME, SERVER_TOOLS, SERVER_URL
from agent_orchestrator.agents.options import AgentSettings
from agent_orchestrator.agents.report import report_schema
from agent_orchestrator.agents.stream import at, bytes_of, count_at, money_at, table_at, text_at, time_at
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.units import US

BUDGET_FLAG = "--max-budget-usd"
SHELL = "Bash"
RULE_CHARS_MAX = 1000

SERVER = {
    "mcpServers": {
        SERVER_NAME: {"type": "http", "url": f"${{{SERVER_URL}}}", "headers": {"Authorization": f"Bearer ${{{SERVER_KEY}}}"}}
    }
}
"""The run's MCP server; claude fills in the variables, so that no list of processes shows the key."""

_EDITS = ("Write", "Edit", "MultiEdit", "NotebookEdit")
_SUBCOMMAND = re.compile(r"[a-z][a-z-]*\Z")

_REASONS = {"max_turns": "limit", "budget_exhausted": "budget", "structured_output_retry_exhausted": "report"}
_TOKENS = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_tokens": "cacheReadInputTokens",
    "cache_write_tokens": "cacheCreationInputTokens",
}
CHARS_PER_TOKEN = 3
"""For estimates: code has fewer characters to a token than prose."""

_WINDOWS = {"five_hour": "5-hour", "seven_day": "weekly", "seven_day_opus": "weekly Opus", "seven_day_sonnet": "weekly Sonnet"}
"""Its names for the windows of a rate limit, as people say them."""

_SYSTEM = frozenset(
    f"system {one}"
    for one in ("init", "status", "api_retry", "permission_denied", "task_started", "task_progress", "task_notification")
)

_ABSENT = ("failed", "needs-auth")
"""The statuses of an MCP server whose tools it does without."""

_RESET = re.compile(r"limit reached\|(\d{10})\b")


class ClaudeAgent(CliAgent):
    """The adapter."""

    name = "claude"
    own_vendor = ANTHROPIC
    login = "run `claude` once and log in, or export ANTHROPIC_API_KEY"
    logins = (("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),)
    understood = CLI | {"permission_mode", "allowed_tools", "add_dirs", "mcp_config", "system_prompt", "max_turns"}
    modes = ("acceptEdits", "default", "plan", "dontAsk", "auto", "bypassPermissions")
    widest = "bypassPermissions"
    state = (StatePlace("CLAUDE_CONFIG_DIR", ".claude"), StatePlace("CLAUDE_CONFIG_DIR", "", ".claude.json"))
    structured = True
    cumulative = True
    bounds_itself = True
    """It keeps to `--max-budget-usd`, after the call that passes it: a second fence, and the only one without prices."""
    abilities = frozenset({"session", COPIES, "tokens", "cost"})
    kinds = frozenset({"assistant", "user", "result", "stream_event", "rate_limit_event"}) | _SYSTEM
    dead_session = "No conversation found with session ID"
    # It would retry a refused key ten times over minutes; retrying is the orchestrator's business.
    defaults = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_MAX_RETRIES": "2"}  # noqa: RUF012 - a ClassVar of the parent

    def argv(self, task: AgentTask, settings: AgentSettings) -> Iterator[str]:
        """Return the flags; those that take several values come first, so that none of them swallows another."""
        yield "-p"
        yield from self._tools(task, settings)
        yield from flag("--max-turns", settings.max_turns)
        if task.budget_usd is not None and BUDGET_FLAG not in settings.args:
            yield from (BUDGET_FLAG, f"{task.budget_usd:.4f}")
        yield from self._session(task, settings)
        yield from ("--json-schema", json.dumps(report_schema(task.effect.report, task.form)))
        yield from ("--output-format", "stream-json", "--verbose")
        yield from settings.args

    def interactive(self, task: AgentTask, settings: AgentSettings) -> Iterator[str]:
        """Return the flags for its own screen."""
        yield from self._tools(task, settings)
        yield from self._session(task, settings)
        yield from settings.args

    def _tools(self, task: AgentTask, settings: AgentSettings) -> Iterator[str]:
        for folder in (*settings.add_dirs, *outside(task)):
            yield from ("--add-dir", folder)
        checks = (f"Bash({one})" for one in task.effect.allowed_commands if _is_plain(one))
        ours = (f"mcp__{SERVER_NAME}__{tool}" for tool in SERVER_TOOLS) if task.server is not None else ()
        for tool in dict.fromkeys((*settings.allowed_tools, *checks, *ours)):
            yield from ("--allowedTools", tool)
        yield from flag("--mcp-config", settings.mcp_config)
        yield from flag("--mcp-config", json.dumps(SERVER) if task.server is not None else None)
        yield from flag("--append-system-prompt", settings.system_prompt)

    def _session(self, task: AgentTask, settings: AgentSettings) -> Iterator[str]:
        yield from flag("--model", task.effect.agent.model)
        yield from flag("--resume", task.effect.session)
        if task.copies_session:
            yield "--fork-session"
        yield from ("--permission-mode", self.mode(settings))

    def environment(self, task: AgentTask, settings: AgentSettings) -> dict[str, str]:
        """As root it skips its questions only where it is told that a wall stands around it."""
        return {"IS_SANDBOX": "1"} if task.sandboxed else {}

    def suggest_flags(self, denied: events.Denied, settings: AgentSettings) -> str:
        """Return a rule for its list of tools; where it may not write at all, the mode in which it may."""
        if denied.tool in _EDITS and self.mode(settings) != self.modes[0]:
            return f"--permission-mode {self.modes[0]}"
        if denied.tool in _EDITS and denied.asked.startswith("/"):
            return allow_tool(f"Edit(/{denied.asked})")
        return allow_tool(_rule(denied.asked) if denied.tool == SHELL else denied.tool)

    def opens(self, document: dict[str, Any]) -> bool:
        """Recognize its stream by the session that all its lines name."""
        return document.get("type") in ("system", "assistant", "result") and text_at(document, "session_id") != ""

    def kind_of(self, document: dict[str, Any]) -> str:
        """Name a line by its type, and one of the system's by its subtype."""
        kind = text_at(document, "type")
        return f"{kind} {text_at(document, 'subtype')}" if kind == "system" else kind

    def read(self, document: dict[str, Any]) -> Iterable[events.StreamEvent]:
        """Read a line; types not listed here carry nothing that we need."""
        kind, subtype = document.get("type"), document.get("subtype")
        if kind == "result":
            return _read_result(document)
        if kind == "assistant":
            return _read_message(document)
        if kind == "user":
            return _read_results(document)
        if kind == "system" and subtype == "init" and text_at(document, "session_id"):
            return _read_begin(document)
        if kind == "system" and subtype == "permission_denied":
            call = text_at(document, "tool_use_id")
            return (events.Denied(tool=text_at(document, "tool_name"), why=text_at(document, "message"), call=call),)
        if kind == "system" and subtype == "api_retry":
            return (_read_retry(document),)
        if kind == "rate_limit_event" and text_at(document, "rate_limit_info", "status") == "rejected":
            resets_s = count_at(document, "rate_limit_info", "resetsAt")
            window = text_at(document, "rate_limit_info", "rateLimitType")
            retry_at_us = resets_s * US if resets_s is not None else None
            return (events.Limited(retry_at_us=retry_at_us, window=_WINDOWS.get(window, window.replace("_", " "))),)
        return ()


def _is_plain(command: str) -> bool:
    """Return True if a rule can say just this command: `*` stands for anything, and a rule ends with its parenthesis."""
    return (
        0 < len(command.strip()) <= RULE_CHARS_MAX
        and not set(command) & set("*\\\n")
        and command.count("(") == command.count(")")
    )


def _rule(command: str) -> str:
    """Return the rule that lets a command be run with other arguments too; one of several parts, as it is."""
    words = command.split()
    if not words or not _is_plain(command):
        return SHELL
    if set(command) & set(";&|<>$`(){}\"'"):
        return f"{SHELL}({command})"
    head = words[:2] if len(words) > 1 and _SUBCOMMAND.match(words[1]) else words[:1]
    return f"{SHELL}({' '.join(head)}:*)"


def _read_begin(document: dict[str, Any]) -> Iterator[events.StreamEvent]:
    yield events.SessionBegan(session=text_at(document, "session_id"), model=text_at(document, "model") or None)
    servers = document.get("mcp_servers")
    for server in servers if isinstance(servers, list) else ():
        if text_at(server, "status") in _ABSENT:
            yield events.Noted(text=f"the MCP server {text_at(server, 'name')} is not there ({text_at(server, 'status')})")


def _read_retry(document: dict[str, Any]) -> events.Retried:
    status, delay_ms = count_at(document, "error_status"), money_at(document, "retry_delay_ms")
    why = text_at(document, "error").replace("_", " ")
    return events.Retried(
        why=f"{why} ({status})" if status is not None else why,
        attempt=count_at(document, "attempt"),
        most=count_at(document, "max_retries"),
        wait_s=delay_ms / 1000 if delay_ms is not None else None,
    )


def _read_message(document: dict[str, Any]) -> Iterator[events.StreamEvent]:
    content = at(document, "message", "content")
    blocks = content if isinstance(content, list) else []
    if (usage := _estimate_usage(document, blocks)) is not None:
        yield events.Consumed(usage=usage, call=text_at(document, "message", "id"))
    for block in blocks:
        if at(block, "type") == "tool_use":
            tool = text_at(block, "name")
            does = events.WRITE if tool in _EDITS else events.RUN if tool == SHELL else ""
            used_us = time_at(document, "timestamp")
            yield events.ToolUsed(tool=tool, call=text_at(block, "id"), does=does, given=table_at(block, "input"), at_us=used_us)
        elif at(block, "type") == "text":
            yield events.Said(text=text_at(block, "text"))


def _read_results(document: dict[str, Any]) -> Iterator[events.StreamEvent]:
    content = at(document, "message", "content")
    for block in content if isinstance(content, list) else ():
        if at(block, "type") == "tool_result":
            yield events.ToolEnded(
                call=text_at(block, "tool_use_id"),
                ok=at(block, "is_error") is not True,
                at_us=time_at(document, "timestamp"),
                result_bytes=bytes_of(at(block, "content")),
            )


def _estimate_usage(document: dict[str, Any], blocks: list[Any]) -> Usage | None:
    """Return the usage of one piece of an answer, its output estimated; the result counts it all exactly."""
    used, model = at(document, "message", "usage"), text_at(document, "message", "model")
    if not isinstance(used, dict) or model in ("", "<synthetic>"):
        return None
    written = sum(len(text_at(block, "text")) or len(json.dumps(at(block, "input") or "")) for block in blocks)
    return Usage(
        model=model,
        input_tokens=count_at(used, "input_tokens"),
        output_tokens=math.ceil(written / CHARS_PER_TOKEN),
        cache_read_tokens=count_at(used, "cache_read_input_tokens"),
        cache_write_tokens=count_at(used, "cache_creation_input_tokens"),
    )


def _read_result(document: dict[str, Any]) -> Iterator[events.StreamEvent]:
    usage = _sum_models(document)
    if usage is not None:
        yield events.Consumed(usage=usage, total=True)
    denials = document.get("permission_denials")
    for denial in denials if isinstance(denials, list) else ():
        yield events.Denied(tool=text_at(denial, "tool_name"), asked=_find_asked(denial), call=text_at(denial, "tool_use_id"))
    errors = document.get("errors")
    said = text_at(document, "result")
    if isinstance(errors, list) and errors:
        said = "; ".join(str(error) for error in errors)
    if reset := _RESET.search(said):
        yield events.Limited(retry_at_us=int(reset[1]) * US)
    reason = text_at(document, "terminal_reason")
    report = document.get("structured_output")
    yield events.Finished(
        ok=document.get("is_error") is False and document.get("subtype") == "success",
        message=said or reason,
        status=count_at(document, "api_error_status"),
        reason=_REASONS.get(reason, ""),
        report=report if isinstance(report, dict) else None,
    )


def _sum_models(document: dict[str, Any]) -> Usage | None:
    """Sum up all models, side calls too: `usage` beside it leaves out the last call of a stopped session."""
    models = document.get("modelUsage")
    if not isinstance(models, dict) or not models:
        cost = money_at(document, "total_cost_usd")
        return typed.convert({"cost_usd": cost, **dict.fromkeys(_TOKENS, 0)}, Usage) if cost == 0 else None
    counts = {ours: sum(count_at(used, theirs) or 0 for used in models.values()) for ours, theirs in _TOKENS.items()}
    main = max(models, key=lambda model: count_at(models[model], "outputTokens") or 0)
    guessed = any(at(used, "costBasis") == "unknown" for used in models.values())
    cost = None if guessed else money_at(document, "total_cost_usd")
    return typed.convert({"model": main, "cost_usd": cost, "calls": count_at(document, "num_turns"), **counts}, Usage)


def _find_asked(denial: object) -> str:
    """Return the command, path or address that the tool was called with."""
    for key in ("command", "file_path", "url"):
        if told := text_at(denial, "tool_input", key):
            return told
    return ""


AGENT = ClaudeAgent()
