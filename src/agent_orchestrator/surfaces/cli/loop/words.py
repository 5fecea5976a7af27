"""A loop's events in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_orchestrator.core.events import EditRefused
from agent_orchestrator.core.units import say_cost, say_count
from agent_orchestrator.surfaces.cli.phrases import because, clock_time, say_check, say_end
from agent_orchestrator.surfaces.cli.words import Phrase, Phrases, Words
from agent_orchestrator.systems.loop import events as loop
from agent_orchestrator.systems.loop.state import LoopState

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.start import Change
    from agent_orchestrator.store.port import StoredRun

FILES_SHOWN = 10

_PURPOSES = {"before": "check before the first iteration", "check": "check", "criterion": "verification", "tests": "tests"}


def _tree_saved(event: loop.TreeSaved) -> Phrase:
    if event.unavailable:
        return Phrase("loop", f"the tree is not kept, and there are no diffs: {event.unavailable}")
    if not event.iteration:
        return Phrase("loop", "the tree is kept as it was found")
    words = f"{say_count(event.files_changed or 0, 'file')} changed, +{event.lines_added} -{event.lines_removed}"
    return Phrase("loop", words if event.files_changed else "changed nothing")


def _check_finished(event: loop.CheckFinished) -> Phrase:
    again = ", it is run once more" if event.again else ""
    return Phrase("loop", f"{say_check(_PURPOSES[event.purpose], event)}{again}")


def _finished(event: loop.IterationFinished) -> Phrase:
    if event.blocked:
        return Phrase("loop", f"iteration {event.iteration} passes, but {'; '.join(event.blocked)}: this does not count")
    said = "met the criterion" if event.passed else f"did not meet the criterion{because(event.error)}"
    return Phrase("loop", f"iteration {event.iteration} {said}")


def _judged(event: loop.HumanJudged) -> Phrase:
    return Phrase("loop", f"{'confirmed' if event.approved else 'not confirmed'}{because(event.comments)}")


_PHRASES: Phrases = {
    loop.LoopBegan: lambda event: Phrase("", f"a loop{because(event.task)}"),
    loop.SavingStarted: lambda event: Phrase("loop", "saves the tree", quiet=True),
    loop.TreeSaved: _tree_saved,
    loop.IterationStarted: lambda event: Phrase("loop", f"iteration {event.iteration} started"),
    loop.AgentFinished: lambda event: Phrase("loop", say_end("agent", event, event.summary)),
    loop.BudgetNeared: lambda event: Phrase("loop", f"{event.percent} % of the budget are spent (${event.spent_usd:.2f})"),
    loop.LaunchInterrupted: lambda event: Phrase("loop", f"interrupted ({event.what})"),
    loop.CheckStarted: lambda event: Phrase("loop", f"{_PURPOSES[event.purpose]} started", quiet=True),
    loop.CheckFinished: _check_finished,
    loop.ConfirmationStarted: lambda event: Phrase("loop", "another agent is asked to confirm"),
    loop.HumanAsked: lambda event: Phrase("loop", f"waiting for an answer: {event.question}"),
    loop.HumanJudged: _judged,
    loop.IterationFinished: _finished,
    loop.StuckNoticed: lambda event: Phrase("loop", f"seems stuck: {'; '.join(event.evidence)}"),
    loop.Steered: lambda event: Phrase("loop", f"steered: {event.text}"),
    loop.CompletionBegan: lambda event: Phrase("loop", f"completing, {event.why}"),
    loop.BackoffStarted: lambda event: Phrase("loop", f"continues at {clock_time(event.until_us)}: {event.reason}"),
    loop.BackoffEnded: lambda event: Phrase("loop", "may continue", quiet=True),
    loop.PauseAsked: lambda event: Phrase("", f"pauses when this iteration ends ({event.reason})"),
    loop.PauseCancelled: lambda event: Phrase("", "continues instead of pausing"),
    loop.Concluded: lambda event: Phrase("", f"{'crashed' if event.crashed else 'ended'}{because(event.detail)}"),
    loop.OptionsChanged: lambda event: Phrase("", f"options changed: {', '.join(event.changes) or 'agent'}"),
    loop.Recovered: lambda event: Phrase("", f"{event.by} continues its work"),
    loop.Imported: lambda event: Phrase("", f"imported at iteration {event.iteration}"),
    EditRefused: lambda event: Phrase("", f"edits refused: {'; '.join(event.problems[:3])}"),
}


def closing_lines(state: LoopState) -> list[str]:
    """Say what changed, what it cost, and why it stopped."""
    lines = []
    if state.untracked:
        lines.append(f"changed: not known, {state.untracked}")
    elif state.changed:
        names = ", ".join(f"{change.status} {change.path}" for change in state.changed[:FILES_SHOWN])
        more = f" and {len(state.changed) - FILES_SHOWN} more" if len(state.changed) > FILES_SHOWN else ""
        lines.append(f"changed since the start: {say_count(len(state.changed), 'file')} ({names}{more})")
    elif state.iterations:
        lines.append("changed since the start: nothing")
    tokens = f", {say_count(state.tokens, 'token')}" if state.tokens is not None else ""
    lines.append(f"cost: {say_cost(state.cost_usd)}{tokens}")
    if state.best is not None and state.best.saved is not None and state.best.score and not state.best.passed:
        lines.append(f"best iteration: {state.best.number} (score {state.best.score:g}): orc loop best {state.context.run}")
    if state.plateau is not None and not state.lifecycle.ended:
        lines.append("the last iterations brought little; steer it or stop it")
    return lines


def try_again(orchestrator: Orchestrator, run: StoredRun, change: Change, given: dict[str, Any]) -> int:
    """Start a successor of a loop that ended."""
    from agent_orchestrator.surfaces.cli.loop.resume import start_successor

    return start_successor(orchestrator, run, change, given)


def check_state(file: str, document: Any) -> str | list[str] | None:
    """Check a loop's state.json."""
    from agent_orchestrator.systems.loop.decide.edits import check_state_document

    if not isinstance(document, dict) or "loop_id" not in document:
        return None
    if faults := check_state_document(document):
        return faults
    made = say_count(document["iteration"], "iteration")
    return f"the state of loop {document['loop_id']}, {document['status']} after {made}"


WORDS = Words(phrases=_PHRASES, closing_lines=closing_lines, check_state=check_state, try_again=try_again)
