"""`opencode`: opencode, headless (`opencode run --format json`).

There is no terminal event: the last step that finishes with reason `stop` ends the work, and a run that ends after
`tool-calls` was cut short by a refused permission. A session that grew too long is summed up by a step of its own, and then
goes on. Tokens and cost are per step and add up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from agent_orchestrator.agents import events
from agent_orchestrator.agents.adapter import COPIES, AgentTask
from agent_orchestrator.agents.cli import CLI, UNAUTHORIZED, CliAgent, StatePlace, allow_tool, flag
from agent_orchestrator.agents.credentials import Vendor, provider_of
from agent_orchestrator.agents.environment import SERVER_KEY, SERVER_NAME, SERVER_URL
from agent_orchestrator.agents.options import AgentSettings
from agent_orchestrator.agents.stream import at, bytes_of, count_at, money_at, table_at, text_at
from agent_orchestrator.beneath import write_plainly
from agent_orchestrator.bounded import store_of
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.units import US

SHELL = "bash"
EDIT, OUTSIDE = "edit", "external_directory"
"""Its permissions for any change of a file, and for whatever lies outside the tree."""
_DOES = {"write": events.WRITE, "edit": events.WRITE, "patch": events.WRITE, "apply_patch": events.WRITE, SHELL: events.RUN}
READ_ONLY = ("git status", "git diff", "git log", "git show HEAD", "git ls-files")
_REJECTED = "rejected permission"
_OVERFLOW, _TOO_LARGE = "ContextOverflowError", 413
"""The error that it mends by summing the session up, and the HTTP status that this stands for, whatever the API's own was."""
_STATUSES = {_OVERFLOW: _TOO_LARGE, "ProviderAuthError": UNAUTHORIZED}
"""Errors of its own that no HTTP status comes with, and the one that they mean."""


class OpencodeAgent(CliAgent):
    """The adapter."""

    name = "opencode"
    understood = CLI | {"permission_mode", "allowed_tools"}
    modes = ("auto", "ask")
    widest = "auto"
    state = (
        StatePlace("XDG_DATA_HOME", ".local/share", "opencode"),
        StatePlace("XDG_STATE_HOME", ".local/state", "opencode"),
        StatePlace("XDG_CONFIG_HOME", ".config", "opencode"),
    )
    abilities = frozenset({"session", COPIES, "tokens", "cost"})
    kinds = frozenset({"step_start", "step_finish", "text", "reasoning", "tool_use", "error"})
    dead_session = "Session not found"
    logins = (("XDG_DATA_HOME", ".local/share", "opencode/auth.json"),)

    def vendor(self, choice: AgentChoice) -> Vendor:
        """Return the provider of the chosen model: it serves many, and one's key is none of the others' business."""
        return provider_of(choice.model)

    def how_to_log_in(self, choice: AgentChoice) -> str:
        """Name its provider's key, if the provider is known."""
        keys = self.vendor(choice).keys
        way = f"export {keys[0]}" if keys else "name a model as PROVIDER/MODEL and export its provider's key"
        return f"run `opencode auth login`, or {way}"

    def argv(self, task: AgentTask, settings: AgentSettings) -> Iterator[str]:
        """Return the flags. Without `--auto` it refuses what it would ask, and it always asks about files outside the tree."""
        yield from ("run", "--format", "json", "--dir", str(task.workdir))
        yield from self.interactive(task, settings)

    def interactive(self, task: AgentTask, settings: AgentSettings) -> Iterator[str]:
        """Return the flags for its own screen; the folder is the current one."""
        if self.mode(settings) == self.modes[0]:
            yield "--auto"
        yield from flag("--model", task.effect.agent.model)
        yield from flag("--session", task.effect.session)
        if task.copies_session:
            yield "--fork"
        yield from settings.args

    def environment(self, task: AgentTask, settings: AgentSettings) -> dict[str, str]:
        """Return the rules that `ask` leaves room for, in the words of its configuration, and the file with the run's server."""
        served = _serve(task) if task.server is not None else {}
        if self.mode(settings) == self.modes[0]:
            return served
        rules: dict[str, Any] = {f"{SERVER_NAME}_*": "allow"} if served else {}
        commands = [f"{SHELL}({one})" for one in (*READ_ONLY, *task.effect.allowed_commands) if "*" not in one]
        for rule in (*settings.allowed_tools, *commands):
            tool, opened, inner = rule.partition("(")
            if opened and inner.endswith(")"):
                rules.setdefault(tool.lower(), {"*": "ask"})
                if isinstance(rules[tool.lower()], dict):
                    rules[tool.lower()][inner[:-1]] = "allow"
            else:
                rules[tool.lower()] = "allow"
        return {**served, "OPENCODE_PERMISSION": json.dumps(rules)}

    def suggest_flags(self, denied: events.Denied, settings: AgentSettings) -> str:
        """Return rules for its permissions: a command as it was; else the tool, and the folder, which has a rule of its own."""
        plain = denied.tool == SHELL and denied.asked and "*" not in denied.asked and "\n" not in denied.asked
        if plain or denied.tool == SHELL:
            return allow_tool(f"{SHELL}({denied.asked})" if plain else SHELL)
        told = allow_tool(EDIT if _DOES.get(denied.tool) == events.WRITE else denied.tool)
        folder = denied.asked.rpartition("/")[0] if denied.asked.startswith("/") else None
        return told if folder is None else f"{told} {allow_tool(f'{OUTSIDE}({folder}/*)')}"

    def opens(self, document: dict[str, Any]) -> bool:
        """Recognize its stream by the session that every line names."""
        return text_at(document, "sessionID").startswith("ses_") and text_at(document, "type") != ""

    def read(self, document: dict[str, Any]) -> Iterator[events.StreamEvent]:
        """Turn a line into events."""
        if session := text_at(document, "sessionID"):
            yield events.SessionBegan(session=session)
        match document.get("type"):
            case "step_start":
                yield events.WentOn()
            case "text" if at(document, "part", "synthetic") is True:  # its own words to the model
                yield events.WentOn()
            case "text":
                yield events.Said(text=text_at(document, "part", "text"))
            case "tool_use":
                yield from _read_tool(document)
            case "step_finish":
                yield from _read_step(document)
            case "error":
                yield from _read_error(document)


def _read_tool(document: dict[str, Any]) -> Iterable[events.StreamEvent]:
    tool, why = text_at(document, "part", "tool"), text_at(document, "part", "state", "error")
    call, state = text_at(document, "part", "callID"), at(document, "part", "state")
    began_ms, ended_ms = (count_at(state, "time", name) for name in ("start", "end"))
    given, began_us = table_at(state, "input"), began_ms * 1000 if began_ms is not None else None
    yield events.ToolUsed(tool=tool, call=call, does=_DOES.get(tool, ""), given=given, at_us=began_us)
    if _REJECTED in why:
        yield events.Denied(tool=tool, asked=text_at(given, "command") or text_at(given, "filePath"), call=call)
    if text_at(state, "status") in ("completed", "error"):
        ok = text_at(state, "status") == "completed" and count_at(state, "metadata", "exit") in (None, 0)
        ended_us = ended_ms * 1000 if ended_ms is not None else None
        yield events.ToolEnded(call=call, ok=ok, at_us=ended_us, result_bytes=bytes_of(at(state, "output") or why))


def _read_step(document: dict[str, Any]) -> Iterator[events.StreamEvent]:
    tokens = at(document, "part", "tokens")
    said, thought = count_at(tokens, "output"), count_at(tokens, "reasoning") or 0
    usage = Usage(
        input_tokens=count_at(tokens, "input"),
        output_tokens=said + thought if said is not None else None,
        cache_read_tokens=count_at(tokens, "cache", "read"),
        cache_write_tokens=count_at(tokens, "cache", "write"),
        cost_usd=money_at(document, "part", "cost") or None,  # 0 is what it says of a model without a price
    )
    yield events.Consumed(usage=usage)
    if text_at(document, "part", "reason") == "stop":
        yield events.Finished(ok=True)


def _read_error(document: dict[str, Any]) -> Iterator[events.StreamEvent]:
    data = at(document, "error", "data")
    wait = text_at(data, "responseHeaders", "retry-after")
    stamp = count_at(document, "timestamp")
    if wait.isdecimal() and len(wait) < 9 and stamp is not None:
        yield events.Limited(retry_at_us=stamp * 1000 + int(wait) * US)
    name = text_at(document, "error", "name")
    too_long = name == _OVERFLOW
    status = _STATUSES.get(name) or count_at(data, "statusCode")
    yield events.Finished(ok=False, message=text_at(data, "message") or name, status=status, final=not too_long)


def _serve(task: AgentTask) -> dict[str, str]:
    """Name the run's MCP server in a file of configuration; it fills in the variables."""
    headers = {"Authorization": f"Bearer {{env:{SERVER_KEY}}}"}
    server = {"type": "remote", "url": f"{{env:{SERVER_URL}}}", "headers": headers, "enabled": True}
    file = task.launch_dir / "opencode.json"
    write_plainly(store_of(task.launch_dir), file, json.dumps({"mcp": {SERVER_NAME: server}}).encode())
    return {"OPENCODE_CONFIG": str(file)}


AGENT = OpencodeAgent()
