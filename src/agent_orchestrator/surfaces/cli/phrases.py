"""Events in words, for progress lines and `orc history`. An event without a phrase is told by its name and fields."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from agent_orchestrator.core import events as common
from agent_orchestrator.core.budget import say_amount
from agent_orchestrator.core.hold import say_parked
from agent_orchestrator.core.ids import run_of, unit_of
from agent_orchestrator.core.inputs import Saying
from agent_orchestrator.core.launch_events import CheckLaunchFinished, LaunchFinished
from agent_orchestrator.core.units import US, say_count, say_duration
from agent_orchestrator.core.who import Surface
from agent_orchestrator.surfaces.cli.words import Phrase, Phrases, words_of

NAMES_SHOWN = 8

SOMEBODY = "by a person"
"""The words of phrases for a person who is not known."""


def say_event(system: str, event: Any) -> Phrase:
    """Return an event of a system's run in words, with who said so."""
    told = _phrase(system, event)
    if event.who is None or event.who.surface is Surface.ORC:
        return told
    if SOMEBODY in told.words:
        return told._replace(words=told.words.replace(SOMEBODY, f"by {event.who}", 1))
    ends = told.words.endswith((".", "!", "?"))  # The words of a person, mostly.
    return told._replace(words=f"{told.words} (by {event.who})" if ends else f"{told.words}, by {event.who}")


def _phrase(system: str, event: Any) -> Phrase:
    say = _COMMON.get(type(event)) or words_of(system).phrases.get(type(event))
    if say is not None:
        return say(event)
    fields = msgspec.to_builtins(event)
    fields.pop("who", None)
    name = str(fields.pop("event", type(event).__name__)).replace("_", " ")
    unit = str(fields.pop("step", ""))
    said = ", ".join(f"{key} {value}" for key, value in fields.items() if key != "effect")
    return Phrase(unit, f"{name}: {said}" if said else name)


def names(units: Sequence[str]) -> str:
    """Return a few names, and how many more there are."""
    more = f" and {len(units) - NAMES_SHOWN} more" if len(units) > NAMES_SHOWN else ""
    return ", ".join(units[:NAMES_SHOWN]) + more


def _local(at_us: int) -> datetime:
    return datetime.fromtimestamp(at_us / US, UTC).astimezone()


def clock_time(at_us: int) -> str:
    """Return the local time, as in 12:03:04."""
    return f"{_local(at_us):%H:%M:%S}"


def date_time(at_us: int) -> str:
    """Return the local date and time, as in 2025-01-15 12:03:04."""
    return f"{_local(at_us):%Y-%m-%d %H:%M:%S}"


def because(text: str) -> str:
    """Return a reason to put behind a phrase; nothing for none."""
    return f": {text}" if text else ""


def say_end(name: str, event: LaunchFinished, else_said: str = "") -> str:
    """Say that a program ended: after how long, and why it failed or what it said."""
    said = event.failure.message if event.failure is not None else else_said
    return f"{name} ended after {say_time(event)}{because(said)}"


def say_check(name: str, event: CheckLaunchFinished) -> str:
    """Say how a check ended."""
    if event.failure is not None:
        return say_end(name, event)
    if event.moved:
        return f"{name} is void, the working tree changed while it ran ({say_time(event)})"
    said = "passed" if event.exit_code == 0 else f"failed with exit code {event.exit_code}"
    return f"{name} {said} ({say_time(event)})"


def say_time(event: LaunchFinished) -> str:
    """Say how long a program ran."""
    return say_duration((event.ended_us - event.started_us) / US)


def say_limits(event: common.Event) -> Phrase:
    """Say which limits an event of a system changed: each of its fields that is set."""
    given = {key: value for key in event.__struct_fields__ if key != "who" and (value := getattr(event, key)) is not None}
    return Phrase("", "limits changed: " + ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in given.items()))


def _taken_up(event: common.TakenUp) -> Phrase:
    lost = f"; what lost agents had written is kept: {', '.join(event.lost)}" if event.lost else ""
    return Phrase("", f"resumed by process {event.pid} on {event.host}{lost}", quiet=not lost)


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
    way = f"; to allow it: orc resume {run_of(event.effect)} {event.allow}" if event.allow else ""
    return Phrase(event.unit, f"{event.agent} was refused {event.tool}{asked}{way}")


def _weighed(event: common.EvidenceWeighed) -> Phrase:
    if event.doubts:
        return Phrase(event.unit, f"doubtful evidence: the check passed, but {'; '.join(event.doubts)}")
    return Phrase(event.unit, f"{say_count(event.tests or 0, 'test')} ran", quiet=True)


def _spoke(event: common.AgentSpoke) -> Phrase:
    if event.saying is Saying.HEARD:
        return Phrase(event.unit, "read the words of people", quiet=True)
    return Phrase(event.unit, f"{'asks' if event.saying is Saying.QUESTION else 'notes'}: {event.text}")


def _kept(event: common.TreeKept) -> Phrase:
    kept = event.kept
    where = f"branch {kept.tree.branch}" if kept.tree is not None and kept.tree.branch else "the working tree"
    if not kept.commit:
        return Phrase(event.unit, f"{where} could not be kept: {kept.problem}")
    return Phrase(event.unit, f"{where} was kept as {kept.commit[:12]}", quiet=True)


def _say_kept(refs: tuple[str, ...]) -> str:
    return f"; what was there is kept as {', '.join(refs)}" if refs else ""


def _ended(event: common.Ended) -> Phrase:
    return Phrase("", f"{event.stop.value.replace('_', ' ')}{because(event.detail)}")


def _landings(event: common.LandingsAsked) -> Phrase:
    return Phrase("", f"to be merged into {event.landings[0].into}: {names([one.branch for one in event.landings])}")


def _landing(event: common.LandingEnded) -> Phrase:
    if event.verdict == "landed":
        return Phrase(event.unit, f"merged{f' as {event.commit[:12]}' if event.commit else ''}")
    return Phrase(event.unit, f"not merged, {event.verdict}{because(event.detail)}")


def _discarded(event: common.WorkDiscarded) -> Phrase:
    return Phrase("", f"its work was discarded, kept as {names(list(event.kept.values())) or 'nothing'}")


_COMMON: Phrases = {
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
    common.HoldEnded: lambda event: Phrase(event.unit, "continues"),
    common.LandingsAsked: _landings,
    common.LandingStarted: lambda event: Phrase(event.unit, "is being merged", quiet=True),
    common.LandingEnded: _landing,
    common.LandingsDropped: lambda event: Phrase("", f"merging was stopped ({event.reason})"),
    common.WorkDiscarded: _discarded,
    common.WorkPublished: lambda event: Phrase(event.unit, f"pull request {event.url}"),
    common.UnitSteered: lambda event: Phrase(event.unit, f"steered{' now' if event.now else ''}: {event.text}"),
    common.UnitTakenOver: lambda event: Phrase(event.unit, f"taken over {SOMEBODY}"),
    common.UnitHandedBack: lambda event: Phrase(event.unit, f"handed back {SOMEBODY}"),
    common.AgentSpoke: _spoke,
    common.TreeKept: _kept,
    common.EvidenceWeighed: _weighed,
    common.WentBack: lambda event: Phrase("", f"went back to {event.point} (row {event.to})"),
    common.Forked: lambda event: Phrase("", f"forked from {event.of} at {event.point} (row {event.at})"),
    common.TreesReturned: lambda event: Phrase("", f"the working tree is that of then{_say_kept(event.kept)}"),
    common.CameLate: lambda event: Phrase(unit_of(event.effect), "an outcome came too late and changed nothing", quiet=True),
}
