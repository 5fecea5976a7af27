"""Figures over runs of all modes: how often an agent with a model succeeds at a step, what it costs, how long it takes."""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, datetime
from statistics import quantiles
from typing import Any, NamedTuple

import msgspec

from agent_orchestrator.analysis.figures import Figures, recommend, wilson
from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.ids import EffectId, split_effect_id
from agent_orchestrator.core.launch_events import AgentLaunchFinished
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.journal import begin_fold, decode_events
from agent_orchestrator.errors import OrcError
from agent_orchestrator.runs.hooks import hooks_of
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun, StoredUsage
from agent_orchestrator.surfaces.cli.streams import LAUNCH
from agent_orchestrator.systems import SYSTEMS, find_system

RUNS_MAX = 1_000
"""The newest runs that figures are made of."""


class AgentLaunch(NamedTuple):
    """One launch of an agent that is over."""

    effect: str
    agent: str
    model: str
    step: str
    succeeded: bool
    seconds: float
    at_us: int


class Analytics:
    """The figures of one repository; the journal of a run is read again only when it has grown."""

    def __init__(self) -> None:
        self._launches: OrderedDict[str, tuple[int, list[AgentLaunch]]] = OrderedDict()

    def read(self, orchestrator: Orchestrator, since_us: int, system: str | None) -> dict[str, Any]:
        """Return the figures of launches since a time, of one mode or of all."""
        runs = [run for run in orchestrator.runs() if run.updated_us >= since_us and system in (None, run.system)][:RUNS_MAX]
        usage = {(line.run, line.effect): line for line in orchestrator.ledger() if line.at_us >= since_us and not line.pruned}
        groups: dict[tuple[str, str, str, str], list[tuple[AgentLaunch, StoredUsage | None]]] = {}
        for run in runs:
            for one in self._of_run(orchestrator, run):
                if one.at_us < since_us:
                    continue
                used = usage.get((run.id, EffectId(one.effect)))
                model = used.usage.model if used is not None and used.usage.model else one.model
                groups.setdefault((run.system, one.agent, model, one.step), []).append((one, used))
        rows = [_row(*names, some) for names, some in sorted(groups.items())]
        return {"rows": rows, "days": _days(usage.values()), "runs": len(runs)}

    def _of_run(self, orchestrator: Orchestrator, run: StoredRun) -> list[AgentLaunch]:
        known = self._launches.get(run.id)
        if known is not None and known[0] == run.updated_us:
            self._launches.move_to_end(run.id)
            return known[1]
        try:
            found = list_launches(orchestrator, run)
        except (OrcError, msgspec.MsgspecError):  # Its journal cannot be read: `orc doctor` says so.
            found = []
        self._launches[run.id] = (run.updated_us, found)
        while len(self._launches) > RUNS_MAX:
            self._launches.popitem(last=False)
        return found


def count_outcomes(orchestrator: Orchestrator, since_us: int) -> list[dict[str, Any]]:
    """Return the figures of units by their records and the advice that they suggest, for each mode that keeps any."""
    found = []
    for system in SYSTEMS:
        figures = Figures().count(hooks_of(system).outcomes(orchestrator), since_us / US)
        if figures.all.total:
            found.append({"system": system, **figures.facts(), "recommendations": recommend(figures)})
    return found


def list_launches(orchestrator: Orchestrator, run: StoredRun) -> list[AgentLaunch]:
    """Return the launches of agents that a journal has the end of."""
    system, hooks = find_system(run.system), hooks_of(run.system)
    folded = begin_fold(orchestrator.store, system, run)
    found: list[AgentLaunch] = []
    for seq, at_us, body in orchestrator.store.rows(run.id):
        events = decode_events(system, body)
        for event in events:
            if isinstance(event, AgentLaunchFinished):
                _, unit, name = split_effect_id(event.effect)
                match, effect = LAUNCH.search(name), folded.state.doing.of(unit)
                agent, model = (effect.agent.name, effect.agent.model or "") if isinstance(effect, RunAgent) else ("", "")
                step = hooks.step_of(folded.state, unit, match[4] if match is not None else "agent")
                seconds = (event.ended_us - event.started_us) / US
                found.append(AgentLaunch(event.effect, agent, model, step, event.failure is None, seconds, event.ended_us))
        folded.add(seq, at_us, events)
    return found


def _row(system: str, agent: str, model: str, step: str, some: list[tuple[AgentLaunch, StoredUsage | None]]) -> dict[str, Any]:
    succeeded = sum(one.succeeded for one, _ in some)
    low, high = wilson(succeeded, len(some))
    costs = [used.usage.cost_usd for _, used in some if used is not None and used.usage.cost_usd is not None]
    tokens = [used.usage.tokens for _, used in some if used is not None and used.usage.tokens is not None]
    seconds = sorted(one.seconds for one, _ in some)
    return {
        "system": system,
        "agent": agent,
        "model": model,
        "step": step,
        "launches": len(some),
        "succeeded": succeeded,
        "failed": len(some) - succeeded,
        "rate": round(succeeded / len(some), 4),
        "low": round(low, 4) if low is not None else None,
        "high": round(high, 4) if high is not None else None,
        "cost_usd": round(sum(costs), 6) if costs else None,
        "cost_each_usd": round(sum(costs) / len(costs), 6) if costs else None,
        "cost_known_for": len(costs),
        "tokens": sum(tokens) if tokens else None,
        "seconds": [round(one, 3) for one in (quantiles(seconds, n=4) if len(seconds) > 1 else seconds * 3)],
    }


def _days(lines: Any) -> list[dict[str, Any]]:
    """Return what was spent on each day, by agent."""
    days: dict[tuple[str, str], list[StoredUsage]] = {}
    for line in lines:
        day = datetime.fromtimestamp(line.at_us / US, UTC).date().isoformat()
        days.setdefault((day, line.agent), []).append(line)
    return [
        {
            "day": day,
            "agent": agent,
            "launches": len(some),
            "cost_usd": round(sum(known), 6) if (known := [c for one in some if (c := one.usage.cost_usd) is not None]) else None,
            "tokens": sum(one.usage.tokens or 0 for one in some),
        }
        for (day, agent), some in sorted(days.items())
    ]
