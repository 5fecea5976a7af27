"""Events in words, for progress lines and `orc history`. An event without a phrase here is told by its name and fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from agent_orchestrator.core import events as common
from agent_orchestrator.core.budget import say_amount
from agent_orchestrator.core.hold import say_parked
from agent_orchestrator.core.ids import split_effect_id
from agent_orchestrator.core.units import US, say_count, say_duration
from agent_orchestrator.core.who import Surface
from agent_orchestrator.surfaces.cli.loop.phrases import LOOP_PHRASES
from agent_orchestrator.surfaces.cli.phases.phrases import PHASES_PHRASES
from agent_orchestrator.surfaces.cli.phrase import Phrase, clock_time, date_time
from agent_orchestrator.surfaces.cli.swarm.phrases import SWARM_PHRASES
from agent_orchestrator.surfaces.cli.team.phrases import TEAM_PHRASES
from agent_orchestrator.systems.workflow import events as workflow

__all__ = ["Phrase", "clock_time", "date_time", "names", "phrase"]

NAMES_SHOWN = 8

SOMEBODY = "by a person"
"""How phrases name a person who is not known."""


def phrase(event: Any) -> Phrase:
    """The event in words, with who said so."""
    told = _phrase(event)
    if event.who is None or event.who.surface is Surface.ORC:
        return told
    words = told.words.replace(SOMEBODY, f"by {event.who}", 1) if SOMEBODY in told.words else f"{told.words}, by {event.who}"
    return told._replace(words=words)


def _phrase(event: Any) -> Phrase:
    say = _PHRASES.get(type(event))
    if say is not None:
        return say(event)
    fields = msgspec.to_builtins(event)
    fields.pop("who", None)
    name = str(fields.pop("event", type(event).__name__)).replace("_", " ")
    unit = str(fields.pop("step", ""))
    said = ", ".join(f"{key} {value}" for key, value in fields.items() if key != "effect")
    return Phrase(unit, f"{name}: {said}" if said else name)


def names(units: Sequence[str]) -> str:
    """A few names and how many more."""
    more = f" and {len(units) - NAMES_SHOWN} more" if len(units) > NAMES_SHOWN else ""
    return ", ".join(units[:NAMES_SHOWN]) + more


def _iteration(effect: str) -> int:
    digits = effect.rsplit("/", 1)[-1].split(".", 1)[0].lstrip("i")
    return int(digits) if digits.isdigit() else 0


def _because(text: str) -> str:
    return f": {text}" if text else ""


def _taken_up(event: common.TakenUp) -> Phrase:
    return Phrase("", f"taken up by process {event.pid} on {event.host}", quiet=True)


def _paused(event: common.Paused) -> Phrase:
    return Phrase("", f"paused, {'stopping what runs' if event.now else 'draining'} ({event.reason})")


def _limits(event: common.LimitsSet) -> Phrase:
    told = [
        f"{say_amount(kind, amount)} per {level}"
        for level in ("attempt", "step", "run", "day")
        for kind in ("cost_usd", "tokens", "wall_s")
        if (amount := getattr(getattr(event.limits, level), kind)) is not None
    ]
    return Phrase("", f"may spend {', '.join(told)}" if told else "has no limits on what it spends")


def _agents(event: common.AgentsSet) -> Phrase:
    return Phrase("", f"settings of agents changed: {'; '.join(event.changes) or names(list(event.agents))}", quiet=True)


def _warned(event: common.BudgetWarned) -> Phrase:
    level, _, kind = event.what.rpartition(".")
    unit = level.partition(":")[2]
    spent, limit = say_amount(kind, event.spent), say_amount(kind, event.limit)
    share = max(event.percent, int(100 * event.spent / event.limit + 1e-6))
    part = "all" if share >= 100 else f"{share} %"  # The percent is that of the mark that was passed.
    return Phrase(unit, f"{part} of the {level.partition(':')[0]}'s budget is spent ({spent} of {limit})")


def _held(event: common.UnitHeld) -> Phrase:
    hold = event.hold
    words = say_parked(hold, clock_time(hold.until_us)) if hold.until_us is not None else f"has to wait: {hold.reason}"
    return Phrase(event.unit, words)


def _refused(event: common.ToolRefused) -> Phrase:
    asked = f" ({event.asked})" if event.asked else ""
    way = f"; to allow it: orc resume {split_effect_id(event.effect)[0]} {event.allow}" if event.allow else ""
    return Phrase(event.unit, f"{event.agent} was refused {event.tool}{asked}{way}")


def _ended(event: common.Ended) -> Phrase:
    return Phrase("", f"ended, {event.stop.value.replace('_', ' ')}{_because(event.detail)}")


def _started(event: workflow.StepStarted) -> Phrase:
    told = [f"attempt {event.attempt}"]
    if iteration := _iteration(event.effect):
        told.append(f"iteration {iteration}")
    if event.item is not None:
        told.append(f"item {event.item + 1}")
    return Phrase(event.step, f"started ({', '.join(told)})")


def _agent_finished(event: workflow.AgentFinished) -> Phrase:
    took = say_duration((event.ended_us - event.started_us) / US)
    why = _because(event.failure.message) if event.failure is not None else ""
    warned = "".join(f"; warning: {text}" for text in event.warnings)
    return Phrase(event.step, f"agent ended after {took}{why}{warned}", quiet=not warned)


def _check_finished(event: workflow.CheckFinished) -> Phrase:
    took = say_duration((event.ended_us - event.started_us) / US)
    if event.failure is not None:
        return Phrase(event.step, f"check ended after {took}: {event.failure.message}")
    if event.moved:
        return Phrase(event.step, f"check is void, the working tree changed while it ran ({took})")
    said = "passed" if event.exit_code == 0 else f"failed with exit code {event.exit_code}"
    return Phrase(event.step, f"check {said} ({took})")


def _judged(event: workflow.HumanJudged) -> Phrase:
    return Phrase(event.step, f"{'approved' if event.approved else 'rejected'} by a person{_because(event.comments)}")


def _options(event: workflow.OptionsChanged) -> Phrase:
    given = {key: value for key in event.__struct_fields__ if key != "who" and (value := getattr(event, key)) is not None}
    return Phrase("", "limits changed: " + ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in given.items()))


def _spec(event: workflow.SpecReplaced) -> Phrase:
    told = [f"changed: {names(event.changed)}"] if event.changed else []
    told += [f"new: {names(event.added)}"] if event.added else []
    told += [f"dropped: {names(event.removed)}"] if event.removed else []
    return Phrase("", "the workflow file was read again" + _because("; ".join(told)))


_PHRASES: dict[type, Callable[[Any], Phrase]] = {
    common.TakenUp: _taken_up,
    common.ToolRefused: _refused,
    common.Paused: _paused,
    common.Resumed: lambda event: Phrase("", "resumed"),
    common.Aborted: lambda event: Phrase("", f"aborting ({event.reason})"),
    common.Ended: _ended,
    common.DirectiveRefused: lambda event: Phrase("", f"a directive was refused: {event.why}"),
    common.LimitsSet: _limits,
    common.AgentsSet: _agents,
    common.BudgetWarned: _warned,
    common.UnitHeld: _held,
    common.HoldEnded: lambda event: Phrase(event.unit, "goes on"),
    common.CameLate: lambda event: Phrase(event.effect.split("/")[1], "an outcome came too late and changed nothing", quiet=True),
    workflow.RunBegan: lambda event: Phrase("", f"workflow {event.workflow}, {say_count(event.steps, 'step')}"),
    workflow.StepStarted: _started,
    workflow.AgentFinished: _agent_finished,
    workflow.RetryScheduled: lambda event: Phrase(event.step, f"tries again at {clock_time(event.until_us)}: {event.error}"),
    workflow.BackoffEnded: lambda event: Phrase(event.step, "may try again", quiet=True),
    workflow.StepInterrupted: lambda event: Phrase(event.step, event.error),
    workflow.CheckQueued: lambda event: Phrase(event.step, f"check is next{' (again)' if event.again else ''}", quiet=True),
    workflow.CheckStarted: lambda event: Phrase(event.step, "check started"),
    workflow.CheckFinished: _check_finished,
    workflow.HumanAsked: lambda event: Phrase(event.step, "waits for a person"),
    workflow.HumanJudged: _judged,
    workflow.GatesAwaited: lambda event: Phrase(event.step, "waits for its gates"),
    workflow.GatesPassed: lambda event: Phrase(event.step, "gates are open"),
    workflow.ItemsAsked: lambda event: Phrase(event.step, "reads its items", quiet=True),
    workflow.ItemsListed: lambda event: Phrase(event.step, f"has {len(event.items)} items"),
    workflow.ItemCompleted: lambda event: Phrase(event.step, f"item {event.item + 1} completed"),
    workflow.StepCompleted: lambda event: Phrase(event.step, "completed"),
    workflow.StepSkipped: lambda event: Phrase(event.step, "skipped (its condition is false)"),
    workflow.StepFailed: lambda event: Phrase(event.step, f"failed: {event.error}"),
    workflow.GateFailed: lambda event: Phrase(event.step, event.error),
    workflow.LoopedBack: lambda event: Phrase(event.step, f"loops back to {event.target}"),
    workflow.StepsReset: lambda event: Phrase("", f"to be done again: {names(event.steps)}"),
    workflow.OptionsChanged: _options,
    workflow.SpecReplaced: _spec,
    workflow.StateEdited: lambda event: Phrase("", f"edits adopted: {names(list(event.changes))}"),
    **LOOP_PHRASES,
    **SWARM_PHRASES,
    **PHASES_PHRASES,
    **TEAM_PHRASES,
    workflow.EditRefused: lambda event: Phrase("", f"edits refused: {'; '.join(event.problems[:3])}"),
}
