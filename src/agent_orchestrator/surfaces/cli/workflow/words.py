"""A workflow run's events in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_orchestrator.core.events import BackoffEnded, EditRefused
from agent_orchestrator.core.ids import EffectId, launch_of
from agent_orchestrator.core.units import say_count
from agent_orchestrator.errors import InvalidSpec, Problem
from agent_orchestrator.surfaces.cli.phrases import because, clock_time, names, say_check, say_end, say_limits
from agent_orchestrator.surfaces.cli.words import Phrase, Phrases, Words
from agent_orchestrator.systems.workflow import events as workflow


def _iteration(effect: EffectId) -> int:
    digits = launch_of(effect).split(".", 1)[0].lstrip("i")
    return int(digits) if digits.isdigit() else 0


def _started(event: workflow.StepStarted) -> Phrase:
    told = [f"attempt {event.attempt}"]
    if iteration := _iteration(event.effect):
        told.append(f"iteration {iteration}")
    if event.item is not None:
        told.append(f"item {event.item + 1}")
    return Phrase(event.step, f"started ({', '.join(told)})")


def _agent_finished(event: workflow.AgentFinished) -> Phrase:
    warned = "".join(f"; warning: {text}" for text in event.warnings)
    return Phrase(event.step, f"{say_end('agent', event)}{warned}", quiet=not warned)


def _listed(event: workflow.ItemsListed) -> Phrase:
    count = len(event.items)
    if event.left_out:
        return Phrase(event.step, f"takes the first {count} of {count + event.left_out} items: that is its max_iterations")
    return Phrase(event.step, f"has {say_count(count, 'item')}" if count else "has no items: nothing to do")


def _judged(event: workflow.HumanJudged) -> Phrase:
    return Phrase(event.step, f"{'approved' if event.approved else 'rejected'} by a person{because(event.comments)}")


def _spec(event: workflow.SpecReplaced) -> Phrase:
    told = [f"changed: {names(event.changed)}"] if event.changed else []
    told += [f"new: {names(event.added)}"] if event.added else []
    told += [f"dropped: {names(event.removed)}"] if event.removed else []
    return Phrase("", "the workflow file was read again" + because("; ".join(told)))


_PHRASES: Phrases = {
    workflow.RunBegan: lambda event: Phrase("", f"workflow {event.workflow}, {say_count(event.steps, 'step')}"),
    workflow.StepStarted: _started,
    workflow.AgentFinished: _agent_finished,
    workflow.RetryScheduled: lambda event: Phrase(event.step, f"tries again at {clock_time(event.until_us)}: {event.error}"),
    BackoffEnded: lambda event: Phrase(event.step, "may try again", quiet=True),
    workflow.StepInterrupted: lambda event: Phrase(event.step, event.error),
    workflow.CheckQueued: lambda event: Phrase(event.step, f"check is next{' (again)' if event.again else ''}", quiet=True),
    workflow.CheckStarted: lambda event: Phrase(event.step, "check started"),
    workflow.CheckFinished: lambda event: Phrase(event.step, say_check("check", event)),
    workflow.HumanAsked: lambda event: Phrase(event.step, "waiting for approval"),
    workflow.HumanJudged: _judged,
    workflow.GatesAwaited: lambda event: Phrase(event.step, "waiting for its gates"),
    workflow.GatesPassed: lambda event: Phrase(event.step, "gates are open"),
    workflow.ItemsAsked: lambda event: Phrase(event.step, "reads its items", quiet=True),
    workflow.ItemsListed: _listed,
    workflow.ItemCompleted: lambda event: Phrase(event.step, f"item {event.item + 1} completed"),
    workflow.StepCompleted: lambda event: Phrase(event.step, "completed"),
    workflow.StepSkipped: lambda event: Phrase(event.step, "skipped (its condition is false)"),
    workflow.StepFailed: lambda event: Phrase(event.step, f"failed: {event.error}"),
    workflow.GateFailed: lambda event: Phrase(event.step, event.error),
    workflow.LoopedBack: lambda event: Phrase(event.step, f"loops back to {event.target}"),
    workflow.StepsReset: lambda event: Phrase("", f"to be done again: {names(event.steps)}"),
    workflow.OptionsChanged: say_limits,
    workflow.SpecReplaced: _spec,
    workflow.StateEdited: lambda event: Phrase("", f"edits adopted: {names(list(event.changes))}"),
    EditRefused: lambda event: Phrase("", f"edits refused: {'; '.join(event.problems[:3])}"),
}


def check_source(text: str, path: Path, home: Path | None) -> tuple[str, tuple[str, ...]]:
    """Check a workflow file, and with a home that its prompts are found there."""
    from agent_orchestrator.runs.workflow.options import find_prompts
    from agent_orchestrator.systems.workflow.parse import parse

    parsed = parse(text, str(path))
    if home is not None:
        try:
            find_prompts(parsed.spec, path, home)
        except InvalidSpec as error:
            lines = _prompt_lines(text, str(path))
            raise InvalidSpec(str(path), [_placed(one, lines) for one in error.problems]) from None
    return f"workflow {parsed.spec.name}, {say_count(len(parsed.spec.steps), 'step')}", parsed.warnings


def _placed(problem: Problem, lines: dict[str, tuple[int, int]]) -> Problem:
    place = next((lines[unit] for unit in lines if problem.message.startswith(f"step {unit}: ")), (None, None))
    return Problem(problem.message, *place)


def _prompt_lines(text: str, file: str) -> dict[str, tuple[int, int]]:
    """Say where each step's prompt stands in a valid workflow file."""
    from agent_orchestrator.surfaces.cli.commands.validate import children
    from agent_orchestrator.systems.workflow.nodes import compose

    found: dict[str, tuple[int, int]] = {}
    for step in children(children(compose(text, file)).get("steps")).values():
        keys = children(step)
        mark = keys["prompt"].start_mark
        found[str(keys["id"].value)] = (mark.line + 1, mark.column + 1)
    return found


def check_state(file: str, document: Any) -> str | list[str]:
    """Check a run_state.json; any document that is no other system's is taken for one."""
    from agent_orchestrator.systems.workflow.decide.edits import check_state_document

    if faults := check_state_document(document):
        return faults
    return f"the state of run {document['run_id']}, {say_count(len(document['steps']), 'step')}"


WORDS = Words(phrases=_PHRASES, check_source=check_source, check_state=check_state)
