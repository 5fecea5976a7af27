"""`codex`: OpenAI Codex, headless (`codex exec --json`).

`error` events are mostly announcements of another try; only `turn.failed` and `turn.completed` end a turn. Usage is a
total over the thread, input includes what came from the cache, and it never says what anything cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from agent_orchestrator.agents.adapter import Ending, Task, Verdict
from agent_orchestrator.agents.classify import status_in
from agent_orchestrator.agents.cli import CLI, CliAgent, outside
from agent_orchestrator.agents.fields import count_at, text_at
from agent_orchestrator.agents.options import AgentSettings
from agent_orchestrator.agents.output import plain, read_tail
from agent_orchestrator.agents.stream import Consumed, Ended, Said, SessionBegan, StreamEvent, ToolUsed, Transcript, decode_line
from agent_orchestrator.agents.structured import report_schema
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.limits import SLEEPER_IDLE_S

SCHEMA = "schema.json"

_TOOLS = ("command_execution", "file_change", "mcp_tool_call", "web_search")
_BLOCKED = "rejected by user approval settings"


class CodexAgent(CliAgent):
    """The adapter."""

    name = "codex"
    understood = CLI | {"permission_mode", "add_dirs"}
    structured = True
    cumulative = True
    dead_session = "no rollout found for thread id"
    # It obeys a retry-after of hours by sleeping and says nothing: from outside only its silence can be seen.
    idle_timeout_s = SLEEPER_IDLE_S

    def argv(self, task: Task, settings: AgentSettings) -> Iterator[str]:
        """`resume` comes after all flags of `exec`, the prompt from standard input."""
        schema = task.launch_dir / SCHEMA
        schema.write_bytes(msgspec.json.encode(report_schema(task.effect.report)))
        yield from ("exec", "--json", "--skip-git-repo-check", "-C", str(task.workdir))
        yield from ("--sandbox", settings.permission_mode or "workspace-write")
        if task.effect.agent.model is not None:
            yield from ("--model", task.effect.agent.model)
        for folder in (*settings.add_dirs, *outside(task)):
            yield from ("--add-dir", folder)
        yield from ("--output-schema", str(schema))
        yield from settings.args
        if task.effect.session is not None:
            yield from ("resume", task.effect.session)
        yield "-"

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

    def judge(self, task: Task, ending: Ending) -> Verdict:
        """As all others; a write that its sandbox refused is said on the error output only."""
        verdict = super().judge(task, ending)
        err = plain(read_tail(ending.err))
        if verdict.failure is not None or _BLOCKED not in err:
            return verdict
        line = next(line for line in reversed(err.splitlines()) if _BLOCKED in line)
        message = f"The sandbox refused a write: {line.partition('error=')[2] or line}"
        if task.effect.agent.options.get("denials") == "warn":
            return msgspec.structs.replace(verdict, warnings=(*verdict.warnings, message))
        return msgspec.structs.replace(verdict, failure=Failure(kind=FailureKind.DENIED, message=message), report=None)

    def ended(self, seen: Transcript) -> Ended | None:
        """The report is the last thing the model said."""
        end = seen.end
        if end is None or not end.ok:
            return end
        return msgspec.structs.replace(end, message=seen.text, report=decode_line(seen.text.encode()))


def _item(document: dict[str, Any]) -> Iterator[StreamEvent]:
    kind = text_at(document, "item", "type")
    if kind == "agent_message":
        yield Said(text=text_at(document, "item", "text"))
    elif kind in _TOOLS:
        yield ToolUsed(tool=kind)


def _completed(document: dict[str, Any]) -> Iterator[StreamEvent]:
    cached, written = count_at(document, "usage", "cached_input_tokens"), count_at(document, "usage", "cache_write_input_tokens")
    sent = count_at(document, "usage", "input_tokens")
    usage = Usage(
        input_tokens=max(0, sent - (cached or 0) - (written or 0)) if sent is not None else None,
        output_tokens=count_at(document, "usage", "output_tokens"),
        cache_read_tokens=cached,
        cache_write_tokens=written,
    )
    yield Consumed(usage=usage, total=True)
    yield Ended(ok=True)


def _plainly(message: str) -> str:
    """Some refusals arrive as the API's raw answer."""
    answer = decode_line(message.encode())
    told = text_at(answer, "error", "message")
    code = text_at(answer, "error", "code") or text_at(answer, "error", "type")
    return f"{told} ({code})" if told and code else told or message


AGENT = CodexAgent()
