"""The errand system: a specification, three events, a state, and the functions over it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from agent_orchestrator.core import inputs as i
from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.effects import AgentChoice, RunCheck
from agent_orchestrator.core.events import CommonEvent, DirectiveRefused, Ended, Event, Resumed, StopReason
from agent_orchestrator.core.files import beside
from agent_orchestrator.core.ids import EffectId, UnitId, effect_id
from agent_orchestrator.core.judging import Worth, judge_check, say_check_failure
from agent_orchestrator.core.launch_events import JudgedCheckFinished, check_fields
from agent_orchestrator.core.lifecycle import Facts, Lifecycle, Phase, apply_event
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Context, Document, System
from agent_orchestrator.core.unit import UnitNeeds, UnitRecord, UnitView
from agent_orchestrator.core.units import iso

UNIT = UnitId("command")
FOLDER = ".agents/errands"


class ErrandSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The command. Nobody is chosen for it: a system without agents says so here."""

    command: str
    choices: tuple[AgentChoice, ...] = ()
    assigned: dict[str, AgentChoice] = {}


class ErrandBegan(Event, frozen=True, kw_only=True, tag="errand_began"):
    """The errand exists."""

    command: str


class CommandStarted(Event, frozen=True, kw_only=True, tag="command_started"):
    """The command is to run."""

    effect: EffectId


class CommandFinished(JudgedCheckFinished, frozen=True, kw_only=True, tag="command_finished"):
    """The command is over."""

    error: str = ""


class EditRefused(Event, frozen=True, kw_only=True, tag="edit_refused"):
    """Somebody edited the state file, which says what happened."""


ErrandEvent = CommonEvent | ErrandBegan | CommandStarted | CommandFinished | EditRefused


class ErrandState:
    """An errand in memory."""

    def __init__(self, spec: ErrandSpec, context: Context) -> None:
        self.spec, self.context = spec, context
        self.lifecycle, self.doing, self.record = Lifecycle(), Doing(), UnitRecord()
        self.updated_us = context.created_us
        self.worth: Worth | None = None
        self.error = ""

    @property
    def status(self) -> str:
        """The state of the command."""
        return "RUNNING" if len(self.doing) else "PENDING" if self.worth is None else self.worth.value.upper()

    @property
    def steps(self) -> dict[str, UnitView]:
        """The one unit, as commands show it."""
        newest = self.record.history[-1] if self.record.history else None
        started = iso(newest.started_us) if newest is not None else None
        ended = iso(newest.ended_us) if newest is not None and newest.ended_us is not None else None
        return {UNIT: UnitView(self.status, self.record.launches, 0, started, ended, self.error or None)}

    specs = MappingProxyType({UNIT: UnitNeeds()})


def begin(spec: ErrandSpec, context: Context) -> Sequence[Event]:
    return [ErrandBegan(command=spec.command)]


def decide(state: ErrandState, what: i.Input, now_us: int) -> Sequence[Event]:
    match what:
        case i.CheckEnded():
            worth, fields = judge_check(what, state.record.reruns), check_fields(what)
            error = say_check_failure(what, moved=fields["moved"]) if worth is Worth.FAILED else ""
            return [CommandFinished(**fields, again=worth is Worth.AGAIN, worth=worth, error=error)]
        case i.Pause() | i.Abort():
            return state.lifecycle.decide(what)
        case i.Resume():
            why = _why_not(state, what)
            return [DirectiveRefused(directive=what.id, why=why)] if why else [Resumed()]
        case i.Answer() | i.Instruct():
            return [DirectiveRefused(directive=what.id, why="an errand asks nobody")]
        case i.Edited():
            return [EditRefused()]
        case _:
            raise AssertionError(f"an errand has no effect that ends with {type(what).__name__}")


def _why_not(state: ErrandState, resume: i.Resume) -> str:
    life = state.lifecycle
    if resume.changes:
        return f"resume does not know the change {next(iter(resume.changes))!r}"
    if life.running or life.phase is Phase.ABORTING:
        return f"it is {life.phase} already"
    return f"it has ended ({life.stop})" if life.stop in (StopReason.COMPLETED, StopReason.ABORTED) else ""


def advance(state: ErrandState, now_us: int) -> Sequence[Event]:
    life = state.lifecycle
    if len(state.doing) or life.phase in (Phase.PAUSED, Phase.ENDED):
        return []
    if life.phase is Phase.ABORTING:
        return [Ended(stop=StopReason.ABORTED, detail=life.detail)]
    if state.worth in (Worth.PASSED, Worth.FAILED):
        return [Ended(stop=StopReason.COMPLETED if state.worth is Worth.PASSED else StopReason.FAILED, detail=state.error)]
    return [CommandStarted(effect=effect_id(state.context.run, UNIT, 0, 1, state.record.launches + 1, "check"))]


def _started(state: ErrandState, event: CommandStarted, at_us: int) -> None:
    state.record.open_launch(event.effect, at_us)
    state.doing.put(RunCheck(id=event.effect, unit=UNIT, command=state.spec.command))


def _finished(state: ErrandState, event: CommandFinished, at_us: int) -> None:
    state.record.end_check(event, state.spec.command)
    state.record.count_rerun(again=event.again)
    state.worth, state.error = event.judged, event.error
    state.doing.drop(UNIT)


def _resumed(state: ErrandState, event: Resumed, at_us: int) -> None:
    if state.lifecycle.ended:
        state.worth, state.error = None, ""
    state.lifecycle.evolve(event)


_FACTS: Facts = {CommandStarted: _started, CommandFinished: _finished, Resumed: _resumed}


def evolve(state: ErrandState, event: Event, at_us: int) -> None:
    apply_event(_FACTS, state, event, at_us)


def documents(state: ErrandState, now_us: int) -> Iterable[Document]:
    body = {"run_id": state.context.run, "command": state.spec.command, "status": state.status, "error": state.error}
    yield Document(path=f"{FOLDER}/{state.context.run}.json", body=body)


def files(spec: ErrandSpec, run: str) -> Iterable[str]:
    return (f"{FOLDER}/{run}.json", *beside(FOLDER))


def summary(state: ErrandState) -> Summary:
    life = state.lifecycle
    return Summary(
        status=life.stop.value if life.ended and life.stop is not None else life.phase.value,
        stop=life.stop,
        detail=life.detail,
        done=int(state.worth is Worth.PASSED),
        total=1,
        failed=int(state.worth is Worth.FAILED),
        doing=tuple(effect.unit for effect in state.doing),
    )


def details(state: ErrandState) -> dict[str, Any]:
    kept = {"launches": list(state.record.history), "evidence": state.record.evidence}
    return {"steps": {UNIT: msgspec.to_builtins(kept)}}


ERRAND = System(
    name="errand",
    spec_type=ErrandSpec,
    event_type=ErrandEvent,
    forms={},
    fresh=ErrandState,
    begin=begin,
    decide=decide,
    advance=advance,
    evolve=evolve,
    documents=documents,
    files=files,
    summary=summary,
    details=details,
    faults=lambda path, document: [],
)
