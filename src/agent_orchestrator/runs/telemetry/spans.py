"""The spans of a run: of itself, of its units, and of the launches of agents and checks, once each has ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from agent_orchestrator.core.events import Ended, Event, StopReason
from agent_orchestrator.core.ids import EffectId, launch_of, run_of, unit_of
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.launch_events import AgentLaunchFinished, LaunchFinished
from agent_orchestrator.engine.journal import decode_events
from agent_orchestrator.errors import UsageError
from agent_orchestrator.runs.telemetry.trace import span_id, trace_id
from agent_orchestrator.store.port import Store, StoredRun, StoredUsage
from agent_orchestrator.systems import find_system

PROVIDERS = {"claude": "anthropic", "codex": "openai", "gemini": "gcp.gemini"}
"""The vendors of models, by agent, as the conventions call them."""

Value = str | int | float


class SpanFact(msgspec.Struct, frozen=True, kw_only=True):
    """A span that has ended."""

    name: str
    trace: int
    id: int
    parent: int | None
    start_us: int
    end_us: int
    attributes: dict[str, Value]
    error: str | None = None
    """The kind of failure."""
    closes: bool = False
    """True for the run's own and for those of its units, which come with its end."""


class EndedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """An ended launch, with who worked and what it took."""

    event: LaunchFinished
    agent: str | None = None
    usage: Usage = Usage()


def read_events(run: StoredRun, body: bytes) -> list[Event]:
    """Read the events of a row; none of one that another version has written, and this one cannot read."""
    try:
        return decode_events(find_system(run.system), body)
    except (msgspec.MsgspecError, UsageError):
        return []


Ledger = Mapping[EffectId, Sequence[StoredUsage]]


def read_ledger(store: Store, run: StoredRun) -> Ledger:
    """Return what each launch of a run took."""
    found: dict[EffectId, list[StoredUsage]] = {}
    for line in store.usage(run.id):
        found.setdefault(line.effect, []).append(line)
    return found


def read_launches(run: StoredRun, events: Iterable[Event], ledger: Ledger) -> Iterator[EndedLaunch]:
    """Yield the launches that ended with some events; those that a fork took over are another run's."""
    for event in events:
        if isinstance(event, LaunchFinished) and run_of(event.effect) == run.context.run:
            lines = ledger.get(event.effect, ())
            usage = lines[0].usage if len(lines) == 1 else _sum([one.usage for one in lines])
            yield EndedLaunch(event=event, agent=lines[0].agent if lines else None, usage=usage)


def launch_span(run: StoredRun, launch: EndedLaunch) -> SpanFact:
    """Return the span of a launch."""
    event = launch.event
    unit, of = unit_of(event.effect), launch_of(event.effect)
    attributes: dict[str, Value] = {"orc.run.id": run.context.run, "orc.unit": unit, "orc.launch": of}
    kind = of.split(".")[3] if of.count(".") >= 3 else "launch"
    if isinstance(event, AgentLaunchFinished):
        kind = f"invoke_agent {launch.agent}" if launch.agent else "invoke_agent"
        session = event.session or launch.usage.session
        attributes |= {"gen_ai.operation.name": "invoke_agent", **agent_attributes(launch), **usage_attributes(launch.usage)}
        attributes |= {"gen_ai.conversation.id": session} if session else {}
    if event.exit_code is not None:
        attributes["process.exit.code"] = event.exit_code
    return SpanFact(
        name=kind,
        trace=trace_id(run.context),
        id=span_id(run.context, event.effect),
        parent=span_id(run.context, "unit", unit),
        start_us=event.started_us,
        end_us=max(event.started_us, event.ended_us),
        attributes=attributes,
        error=event.failure.kind.value if event.failure is not None else None,
    )


def agent_attributes(launch: EndedLaunch) -> dict[str, Value]:
    """Return who worked, with which model, as the conventions name it."""
    found = {
        "gen_ai.agent.name": launch.agent,
        "gen_ai.provider.name": PROVIDERS.get(launch.agent or ""),
        "gen_ai.request.model": launch.usage.model,
    }
    return {name: value for name, value in found.items() if value}


def usage_attributes(usage: Usage) -> dict[str, Value]:
    """Return what a launch took; what is not known is not there. The tokens read have those of the cache in them."""
    found = {
        "gen_ai.usage.input_tokens": input_tokens(usage),
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "orc.cost.usd": usage.cost_usd,
    }
    return {name: value for name, value in found.items() if value is not None}


def input_tokens(usage: Usage) -> int | None:
    """Return all tokens that the model read, cached or not; None if that is unknown."""
    known = [one for one in (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) if one is not None]
    return sum(known) if known else None


def closing_spans(run: StoredRun, launches: Sequence[EndedLaunch], end: Ended, at_us: int) -> Iterator[SpanFact]:
    """Yield the spans of a run that has ended, and of its units."""
    context, root = run.context, span_id(run.context, "run")
    units: dict[str, list[LaunchFinished]] = {}
    for one in launches:
        units.setdefault(unit_of(one.event.effect), []).append(one.event)
    for unit, own in units.items():
        yield SpanFact(
            name=f"step {unit}",
            trace=trace_id(context),
            closes=True,
            id=span_id(context, "unit", unit),
            parent=root,
            start_us=min(each.started_us for each in own),
            end_us=max(max(each.started_us, each.ended_us) for each in own),
            attributes={"orc.run.id": context.run, "orc.unit": unit},
        )
    attributes: dict[str, Value] = {"orc.run.id": context.run, "orc.system": run.system, "orc.status": end.stop.value}
    attributes |= {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": run.name}
    yield SpanFact(
        name=f"invoke_workflow {run.name}",
        trace=trace_id(context),
        closes=True,
        id=root,
        parent=None,
        start_us=context.created_us,
        end_us=max(context.created_us, at_us),
        attributes=attributes,
        error=None if end.stop is StopReason.COMPLETED else end.stop.value,
    )


def read_spans(store: Store, run: StoredRun) -> list[SpanFact]:
    """Read every span of a run that has ended by now; the run's own and those of its units come with its end."""
    return read_trace(store, run)[0]


def read_trace(store: Store, run: StoredRun) -> tuple[list[SpanFact], list[EndedLaunch]]:
    """Read the same, and the launches of agents, which metrics count."""
    ledger = read_ledger(store, run)
    launches: list[EndedLaunch] = []
    end: tuple[Ended, int] | None = None
    for _, at_us, body in store.rows(run.id):
        events = read_events(run, body)
        launches += read_launches(run, events, ledger)
        end = next(((one, at_us) for one in events if isinstance(one, Ended)), end)
    spans = [launch_span(run, one) for one in launches]
    if end is not None and run.summary.ended:
        spans += closing_spans(run, launches, *end)
    return spans, [one for one in launches if isinstance(one.event, AgentLaunchFinished)]


def _sum(some: Sequence[Usage]) -> Usage:
    """Sum what several lines of the ledger say of one launch."""
    if not some:
        return Usage()
    sums = {
        name: sum(known) if (known := [value for one in some if (value := getattr(one, name)) is not None]) else None
        for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd")
    }
    return msgspec.structs.replace(some[-1], **sums)
