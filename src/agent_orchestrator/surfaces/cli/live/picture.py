"""Makes the picture of a run from its state, the launches at work and the money: the same for every system."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from agent_orchestrator.core.budget import say_amount
from agent_orchestrator.core.effects import (
    ACTIVE,
    AskHuman,
    AwaitGates,
    Checkpoint,
    Effect,
    Merge,
    ReadFile,
    RunAgent,
    RunCheck,
    Wait,
)
from agent_orchestrator.core.events import StopReason
from agent_orchestrator.core.hold import Hold, say_parked
from agent_orchestrator.core.ids import EffectId, launch_of
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.text import clip_line
from agent_orchestrator.core.units import US, say_cost
from agent_orchestrator.runs.facts import say_idle
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.live.activity import LaunchActivity
from agent_orchestrator.surfaces.cli.live.frame import Asked, Frame, UnitRow
from agent_orchestrator.surfaces.cli.phrases import clock_time
from agent_orchestrator.surfaces.cli.screen import plain, tone_of
from agent_orchestrator.surfaces.transcript import Span
from agent_orchestrator.systems import about

ROWS_MAX = 30
"""The most units that are looked at."""


def choose_units(state: Any) -> tuple[list[Effect], int]:
    """Return the units to show, those that run a program first, and how many there are; questions stand elsewhere."""
    doing = state.doing
    busy = [effect for effect in doing if not isinstance(effect, AskHuman)]
    first = [effect for effect in busy if isinstance(effect, ACTIVE) and effect.unit not in doing.holds]
    others = (effect for effect in busy if not isinstance(effect, ACTIVE) or effect.unit in doing.holds)
    shown = first[:ROWS_MAX]
    return [*shown, *islice(others, ROWS_MAX - len(shown))], len(busy)


def make_frame(
    run: StoredRun,
    state: Any,
    summary: Summary,
    now_us: int,
    *,
    launches: Mapping[EffectId, LaunchActivity],
    since: Mapping[EffectId, int],
    money: Mapping[str, Any] | None,
    asked: Asked | None,
    driven: bool = True,
) -> Frame:
    """Return the picture of a run at this moment."""
    words = about(run.system)
    shown, busy = choose_units(state)
    live = [
        (usage.cost_usd, usage.tokens)
        for effect in shown
        if effect.id in launches and (usage := launches[effect.id].usage) is not None and not getattr(effect, "session", None)
    ]
    notes = [] if driven else [Span(say_idle(run), "yellow")]
    if summary.detail and summary.status in ("waiting", "paused") and asked is None:
        notes.append(Span(plain(summary.detail), "yellow"))
    asking = len(state.doing) - busy
    to_come = 0 if words.iterates else max(0, summary.total - summary.done - summary.failed - busy - asking)
    return Frame(
        noun=words.noun,
        run=run.id,
        name=plain(run.name),
        unit=words.unit,
        done=summary.done,
        total=summary.total,
        failed=summary.failed,
        status=summary.status.replace("_", " ") if not _parked(summary) else "parked",
        tone=tone_of(summary.status),
        took_s=max(0, now_us - run.context.created_us) / US,
        notes=tuple(notes),
        money=say_money(money, live) if money is not None else (),
        asked=asked,
        rows=tuple(_row(state, effect, words.unit if words.iterates else "", launches, since, now_us) for effect in shown),
        busy=busy,
        to_come=to_come,
    )


def _parked(summary: Summary) -> bool:
    return summary.status == "waiting" and summary.stop is StopReason.RATE_LIMITED


def _row(
    state: Any,
    effect: Effect,
    iterates: str,
    launches: Mapping[EffectId, LaunchActivity],
    since: Mapping[EffectId, int],
    now_us: int,
) -> UnitRow:
    launch, hold = launches.get(effect.id), state.doing.holds.get(effect.unit)
    status, tone, said = _say_doing(effect, hold)
    started_us = launch.started_us if launch is not None else since.get(effect.id)
    usage = launch.usage if launch is not None else None
    now = launch.now if launch is not None and hold is None else ()
    if (asked := state.doing.spoken.get(effect.unit)) is not None:
        status, tone, now = "asks", "yellow", (Span(f"you, and works on: {clip_line(plain(asked.text))}", "yellow"),)
    if isinstance(effect, RunCheck) and now:
        now = (Span(f"{said} · ", "dim"), *now)
    role = plain(effect.role) if isinstance(effect, RunAgent) and effect.role != effect.unit else ""
    return UnitRow(
        label=f"{iterates} {_iteration(effect.id)}" if iterates else plain(effect.unit),
        status=status,
        tone=tone,
        who=role if hold is None else "",
        now=now or ((Span(said, "dim"),) if said else ()),
        took_s=max(0, now_us - started_us) / US if started_us is not None else None,
        tokens=usage.tokens if usage is not None else None,
        cost_usd=usage.cost_usd if usage is not None else None,
    )


def _iteration(effect: EffectId) -> str:
    return launch_of(effect).partition(".")[0].removeprefix("i")


def _say_doing(effect: Effect, hold: Hold | None) -> tuple[str, str, str]:
    """Return what a unit does: the word, its colour, and more words."""
    if hold is not None and hold.until_us is not None:
        return "parked", "yellow", plain(say_parked(hold, clock_time(hold.until_us)[:5]).removeprefix("parked "))
    if hold is not None:
        return "held", "yellow", plain(hold.reason)
    match effect:
        case RunAgent():
            more = f"attempt {effect.attempt}" + (f", iteration {effect.iteration}" if effect.iteration else "")
            return "working", "blue", more
        case RunCheck():
            return "checking", "cyan", clip_line(plain(effect.command))
        case Wait():
            return "retrying", "yellow", f"at {clock_time(effect.until_us)}: {plain(effect.reason)}"
        case AwaitGates():
            return "gated", "yellow", f"until open: {', '.join(map(plain, effect.names))}"
        case ReadFile():
            return "reading", "", plain(effect.path)
        case Checkpoint():
            return "saving", "", "the working tree"
        case Merge():
            return "merging", "blue", f"{plain(effect.branch)} into {plain(effect.into)}"
        case _:
            return "waiting", "yellow", ""


def say_money(facts: Mapping[str, Any], live: list[tuple[float | None, int | None]]) -> tuple[str, ...]:
    """Return what is spent, set aside and left, in the longest words first; launches at work count by what they say now."""
    spent, limits = facts["spent"], facts["limits"].get("run", {})
    used = {
        "cost_usd": _sum(spent["cost_usd"], [cost for cost, _ in live]),
        "tokens": _sum(spent["tokens"], [tokens for _, tokens in live]),
        "wall_s": spent["wall_s"],
    }
    parts = []
    for kind in limits:
        now = used[kind] or 0
        aside = max(0, facts["reserved"].get(kind, 0) - (now - (spent[kind] or 0)))
        said = f"{say_amount(kind, now)} of {say_amount(kind, limits[kind])} spent"
        more = f", {say_amount(kind, aside)} set aside" if aside > 1e-9 else ""
        parts.append((said, more, f", {say_amount(kind, max(0, limits[kind] - now - aside))} left"))
    day = facts["limits"].get("day", {}).get("cost_usd")
    today = f" · today {say_cost(facts['day']['spent']['cost_usd'])} of {say_cost(day)}" if day is not None else ""
    if parts:
        longest = " · ".join("".join(part) for part in parts)
        return (f"{longest}{today}", longest, "".join(parts[0]), f"{parts[0][0]}{parts[0][2]}", parts[0][0])
    known = [say_amount(kind, amount) for kind in ("cost_usd", "tokens") if (amount := used[kind]) is not None]
    if not known and not today:
        return ()
    return (f"{', '.join(known) or 'nothing known'} spent{today}", f"{known[0] if known else 'nothing known'} spent")


def _sum(known: float | None, more: list[Any]) -> Any:
    """Return the sum of what is known; None where nothing is."""
    amounts = [one for one in (known, *more) if one is not None]
    return sum(amounts) if amounts else None
