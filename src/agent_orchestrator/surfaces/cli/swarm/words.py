"""A swarm run's events in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_orchestrator.core.units import say_count
from agent_orchestrator.surfaces.cli.phrases import clock_time, names, say_check, say_end, say_limits
from agent_orchestrator.surfaces.cli.words import Phrase, Phrases, Words
from agent_orchestrator.systems.swarm import events as swarm

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.start import Change
    from agent_orchestrator.store.port import StoredRun


def _attempt_ended(event: swarm.AttemptEnded) -> Phrase:
    verdict = event.verdict
    why = f" ({verdict.failure_reason})" if verdict.failure_reason is not None else ""
    return Phrase(event.bead, f"{verdict.status.value}{why}: {verdict.reason}")


def _closed(event: swarm.ClosingFinished) -> Phrase:
    return Phrase(event.bead, f"was not closed: {event.problem}" if event.problem else "closed in its tracker")


_PHRASES: Phrases = {
    swarm.Imported: lambda event: Phrase(event.run.bead, f"taken over: attempt {event.run.attempt} {event.run.status}"),
    swarm.SwarmBegan: lambda event: Phrase("", f"{say_count(event.beads, 'bead')}, at most {event.max_agents} at once"),
    swarm.BeadQueued: lambda event: Phrase(event.bead, f"waits for the working tree, {event.behind} is in it"),
    swarm.AttemptStarted: lambda event: Phrase(event.bead, f"started (attempt {event.attempt})"),
    swarm.AgentFinished: lambda event: Phrase(event.bead, say_end("agent", event), quiet=True),
    swarm.LaunchInterrupted: lambda event: Phrase(event.bead, f"interrupted: {event.why}"),
    swarm.VerificationQueued: lambda event: Phrase(event.bead, "verification is next", quiet=True),
    swarm.VerificationStarted: lambda event: Phrase(event.bead, "verification started", quiet=True),
    swarm.VerificationFinished: lambda event: Phrase(event.bead, say_check("verification", event)),
    swarm.AttemptEnded: _attempt_ended,
    swarm.WaitStarted: lambda event: Phrase(event.bead, f"continues at {clock_time(event.until_us)}"),
    swarm.WaitEnded: lambda event: Phrase(event.bead, "may continue", quiet=True),
    swarm.ClosingStarted: lambda event: Phrase(event.bead, "is closed in its tracker", quiet=True),
    swarm.ClosingFinished: _closed,
    swarm.StopAsked: lambda event: Phrase(event.bead, f"is being stopped: {event.reason}"),
    swarm.BeadDropped: lambda event: Phrase(event.bead, f"is not tried any more: {event.reason}"),
    swarm.MergeAsked: lambda event: Phrase("", f"to be merged into {event.into}: {names(event.beads)}"),
    swarm.SavingStarted: lambda event: Phrase(event.bead, "its work is committed", quiet=True),
    swarm.SavingFinished: lambda event: Phrase(event.bead, f"cannot be merged: {event.problem}", quiet=not event.problem),
    swarm.MergeStarted: lambda event: Phrase(event.bead, "is being merged", quiet=True),
    swarm.MergeFinished: lambda event: Phrase(event.bead, f"merge {event.verdict}{f': {event.detail}' if event.detail else ''}"),
    swarm.BeadsReset: lambda event: Phrase("", f"to be tried again: {names(event.beads)}"),
    swarm.BeadsReleased: lambda event: Phrase("", f"taken over by a newer run: {names(event.beads)}"),
    swarm.OptionsChanged: say_limits,
    swarm.EditRefused: lambda event: Phrase("", f"the edit of {event.path} was refused: records are what happened"),
}


def try_again(orchestrator: Orchestrator, run: StoredRun, change: Change, given: dict[str, Any]) -> int:
    """Try the failed beads of a run again."""
    from agent_orchestrator.surfaces.cli.swarm.retry import retry

    return retry(orchestrator, run, None, change, given)


WORDS = Words(phrases=_PHRASES, try_again=try_again)
