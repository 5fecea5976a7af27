"""Composes the prompt of an iteration from what the loop knows: pure text, at most PROMPT_CHARS_MAX characters.

The task comes verbatim and is never cut; what a person or the loop itself has to say comes first; the diff gives way
when there is too much.
"""

from __future__ import annotations

from agent_orchestrator.core.markdown import fenced, section
from agent_orchestrator.core.units import say_count
from agent_orchestrator.systems.loop.state import LoopState

PROMPT_CHARS_MAX = 60_000
TRIED_SHOWN = 10


def compose(state: LoopState, told: tuple[str, ...]) -> str:
    """The prompt for the iteration at work."""
    spec = state.spec
    head = [*(section("First of all", text) for text in told), *_notices(state)]
    head.append(section("Task", spec.task))
    head.append(section("When it is done", _criterion(state)))
    tail = [*_tried(state), *_learnings(state), *_remembered(state), *_last_check(state)]
    room = PROMPT_CHARS_MAX - sum(map(len, [*head, *tail])) - 500
    return "\n".join([*head, *_diff(state, room), *tail, _frame(state)])


def compose_confirmation(state: LoopState) -> str:
    """The prompt for the agent that confirms a prose criterion."""
    spec, current = state.spec, state.current
    said = current.summary if current is not None else ""
    ask = (
        "Look at the working tree and judge whether the criterion is met. Change nothing. Report PASS when it is met, else FAIL, "
        "and say in `summary` why.\n"
    )
    parts = [
        section("Task", spec.task),
        section("Criterion", spec.completion),
        section("What the agent says", said or "It says that the criterion is met."),
        *_diff(state, PROMPT_CHARS_MAX - len(spec.task) - len(spec.completion) - 2_000),
        ask,
    ]
    return "\n".join(parts)


def _criterion(state: LoopState) -> str:
    spec = state.spec
    if spec.command is None:
        return (
            f"{spec.completion}\n\nWhen you are sure that this is so, say it in your report: `done` is true, and `summary` says "
            "why you are sure. It will be confirmed by somebody else."
        )
    return (
        f"The command `{spec.command}` exits with 0 in this directory. It is run for you after you end; "
        "saying that you are done ends nothing. Do not delete, skip or weaken tests."
    )


def _notices(state: LoopState) -> list[str]:
    return [section("Attention", "\n".join(f"- {text}" for text in state.notices))] if state.notices else []


def _tried(state: LoopState) -> list[str]:
    if not state.tried:
        return []
    lines = []
    for one in state.tried[-TRIED_SHOWN:]:
        files = "" if one.files_changed is None else f", {say_count(one.files_changed, 'file')} changed"
        said = f": {one.summary}" if one.summary else ""
        failed = f"the check failed: {one.error}" if one.error else "the check failed"
        ended = one.error or "its check is not known" if one.passed is None else "the check passed" if one.passed else failed
        lines.append(f"- iteration {one.iteration}{said} ({ended}{files})")
    return [section("What was tried", "\n".join(lines))]


def _learnings(state: LoopState) -> list[str]:
    return [section("Learned so far", "\n".join(f"- {text}" for text in state.learnings))] if state.learnings else []


def _remembered(state: LoopState) -> list[str]:
    lessons = [f"- {text}" for text in state.spec.remembered if text not in state.learnings]
    told = "They may be out of date: what you find in the working tree counts."
    return [section("Learned by earlier loops here", "\n".join([*lessons, "", told]))] if lessons else []


def _last_check(state: LoopState) -> list[str]:
    if not state.check_output.strip():
        return []
    return [section("What the last check said (its end)", fenced(state.check_output))]


def _diff(state: LoopState, room: int) -> list[str]:
    if not state.diff or room < 500:
        return []
    text = state.diff if len(state.diff) <= room else state.diff[:room] + "\n… (cut)"
    return [section("What was changed since the start", fenced(text, "diff"))]


def _frame(state: LoopState) -> str:
    return f"This is iteration {state.number} of at most {state.spec.max_iterations}. Work in the current directory.\n"
