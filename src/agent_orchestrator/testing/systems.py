"""`check_system`: the contract that every system keeps, whatever way of working it is.

It plays runs of the given specifications under many seeds, with effects that end well, badly, late or not at all and a
person who meddles, and raises AssertionError with the promise that was broken. It knows systems only through their port.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from agent_orchestrator.core.budget import Hold, Why
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
from agent_orchestrator.core.events import (
    Aborted,
    CameLate,
    DirectiveRefused,
    Ended,
    Event,
    HoldEnded,
    Paused,
    Resumed,
    TakenUp,
    UnitHeld,
)
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import (
    Abort,
    AgentEnded,
    Answer,
    CheckEnded,
    CheckpointEnded,
    Directive,
    Edited,
    FileRead,
    GatesOpened,
    HumanAnswered,
    Input,
    Instruct,
    MergeEnded,
    MergeVerdict,
    Outcome,
    Pause,
    Resume,
    TimerFired,
)
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.report import Report, check_report
from agent_orchestrator.core.system import Context, System
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.journal import Folded, decode_events
from agent_orchestrator.testing.clock import START_US

SILENT_WITHIN = 20_000
"""An `advance` that still has something to say after this many answers never falls silent."""

Reports = Callable[[RunAgent, random.Random], dict[str, Any]]
"""What an agent of this effect writes when it does well, laid over its status."""
CheckDocument = Callable[[str, Any], None]
"""Raises AssertionError when a print-out (path, plain data) breaks the system's published schema."""


def check_system(
    system: System,
    specs: Sequence[Any],
    *,
    seeds: Sequence[int] = range(20),
    ticks: int = 60,
    reports: Reports | None = None,
    check_document: CheckDocument | None = None,
) -> None:
    """Plays every specification under every seed."""
    for spec in specs:
        again = msgspec.json.decode(msgspec.json.encode(spec), type=system.spec_type)
        assert again == spec, "a specification survives being stored"
        for seed in seeds:
            _Play(system, spec, random.Random(seed), reports, check_document).play(ticks)


class _Play:
    """One run, its journal, and what must hold after every tick."""

    def __init__(
        self,
        system: System,
        spec: Any,
        chance: random.Random,
        reports: Reports | None,
        check_document: CheckDocument | None,
    ) -> None:
        self.system, self.spec, self.chance = system, spec, chance
        self._reports, self._check_document = reports, check_document
        self.now_us, self._directives = START_US, 0
        self.context = Context(run="checked", home="/repo", workdir="/repo", created_us=START_US)
        self.journal: list[tuple[Event, int]] = []
        self.named: set[str] = set()
        self.over: list[Outcome] = []
        self.state: Any = system.fresh(spec, self.context)
        events = system.begin(spec, self.context)
        assert list(events) == list(system.begin(spec, self.context)), "`begin` is deterministic"
        self._add([*events, TakenUp(boot="1", host="here", pid=1, version="")])
        self._advance()
        self._check()

    def play(self, ticks: int) -> None:
        """Anything happens for a while; then everything goes well and the run has to end."""
        for _ in range(ticks):
            doing = list(self.state.doing)
            if doing and self.chance.random() < 0.75:
                self.tell(self._outcome(self.chance.choice(doing), kindly=False))
            elif self.chance.random() < 0.2:
                self.hold_or_release()
            elif self.over and self.chance.random() < 0.2:
                self.come_late(self.chance.choice(self.over))
            else:
                self._meddle()
        for _ in range(100 * ticks):
            if self.state.lifecycle.ended:
                break
            doing = list(self.state.doing)
            self.tell(self._outcome(self.chance.choice(doing), kindly=True) if doing else self._directive(Resume))
        self._check_ended()

    def tell(self, what: Input) -> list[Event]:
        """One tick, as the engine does it; answers with its events."""
        self.now_us += int(self.chance.uniform(0, 90) * US)
        begun = len(self.journal)
        if isinstance(what, Outcome) and self.state.doing.is_held(what.effect):
            self._add([HoldEnded(unit=what.effect.split("/")[1], effect=what.effect)])
        before = self._picture()
        programs, was_running = self._programs(), self.state.lifecycle.running
        events = list(self.system.decide(self.state, what, self.now_us))
        assert events == list(self.system.decide(self.state, what, self.now_us)), f"deciding {what} twice differs"
        assert self._picture() == before, f"`decide` changed the state ({what})"
        self._check_lifecycle(what, events)
        self._add(events)
        if isinstance(what, Outcome):
            assert not self.state.doing.wants(what.effect), f"{what.effect} is over and still wanted"
            self.over.append(what)
        self._advance()
        self._check()
        if not was_running and not self.state.lifecycle.running:
            assert self._programs() <= programs, "a run that does not run started something"
        return [event for event, _ in self.journal[begun:]]

    def hold_or_release(self) -> None:
        """The engine holds an agent back, or lets one start: no business of a system's, but its documents show it."""
        agents = [effect for effect in self.state.doing if isinstance(effect, RunAgent)]
        if not agents:
            return
        effect = self.chance.choice(agents)
        if self.state.doing.is_held(effect.id):
            self._add([HoldEnded(unit=effect.unit, effect=effect.id)])
        else:
            hold = Hold(effect=effect.id, why=self.chance.choice(list(Why)), reason="it has to wait", until_us=self.now_us + US)
            self._add([UnitHeld(unit=effect.unit, hold=hold)])
        self._advance()
        self._check()

    def _add(self, events: Sequence[Event]) -> None:
        for event in events:
            Folded(self.system, self.state, 0, self.now_us).apply([event], self.now_us)
            self.journal.append((event, self.now_us))
            self._check_documents()

    def _advance(self) -> None:
        for _ in range(SILENT_WITHIN):
            before = self._picture()
            events = list(self.system.advance(self.state, self.now_us))
            assert events == list(self.system.advance(self.state, self.now_us)), "advancing twice differs"
            assert self._picture() == before, "`advance` changed the state"
            if not events:
                return
            self._add(events)
        raise AssertionError("`advance` never falls silent")

    # What must hold after every tick

    def _check(self) -> None:
        life, doing = self.state.lifecycle, list(self.state.doing)
        if life.running:
            assert doing, "a running run wants something: else it hangs"
        if life.ended:
            assert not doing, "an ended run wants nothing"
        if life.phase is Phase.ABORTING:
            assert self._programs(), "an aborted run ends when nothing runs any more"
        assert self.system.summary(self.state).ended == life.ended, "the summary says whether the run has ended"
        for effect in doing:
            run, unit, _ = effect.id.split("/")
            assert (run, unit) == (self.context.run, effect.unit), f"{effect.id} does not name its run and unit"
        late = {outcome.effect for outcome in self.over}
        assert not [effect.id for effect in doing if effect.id in late], "an effect that was over is wanted again"
        assert self.state.doing.active == sum(isinstance(effect, ACTIVE) for effect in doing)
        self._check_replay()

    def _programs(self) -> set[str]:
        return {effect.id for effect in self.state.doing if isinstance(effect, ACTIVE)}

    def _check_replay(self) -> None:
        """The journal, through JSON, gives the same run."""
        events = decode_events(self.system, msgspec.json.encode([event for event, _ in self.journal]))
        assert events == [event for event, _ in self.journal], "every event survives being stored"
        state = self.system.fresh(self.spec, self.context)
        folded = Folded(self.system, state, 0, self.now_us)
        for event, (_, at_us) in zip(events, self.journal, strict=True):
            folded.apply([event], at_us)
        assert self._picture(state) == self._picture(), "the journal folds to another state"

    def _check_documents(self) -> None:
        for document in self.system.documents(self.state, self.now_us):
            plain = msgspec.to_builtins(document.body)
            assert not document.path.startswith("/"), "print-outs are below the run's home"
            assert self.system.faults(document.path, plain) == [], f"{document.path} would be refused as an edit"
            if self._check_document is not None:
                self._check_document(document.path, plain)

    def _check_lifecycle(self, what: Input, events: list[Event]) -> None:
        """Pause and abort mean the same in every system."""
        life = self.state.lifecycle
        if isinstance(what, Pause | Abort):
            # A system may refuse it in its own words, or put it off with a fact of its own.
            own = events and not any(isinstance(event, Paused | Aborted | Resumed | Ended) for event in events)
            assert own or events == life.decide(what), f"{what} is not decided by the lifecycle"
        if isinstance(what, Directive) and not events:
            raise AssertionError(f"{what} was answered with nothing: it is refused or it changes something")
        refused = [event for event in events if isinstance(event, DirectiveRefused)]
        for event in refused:
            assert len(events) == 1, "a refused directive changes nothing"
            assert isinstance(what, Directive), "only a directive can be refused"
            assert event.directive == what.id, "a refusal names its directive"
            assert event.why, "a refusal says why"
        changes = [event for event in events if isinstance(event, Paused | Aborted | Resumed | Ended)]
        if isinstance(what, Outcome):
            assert not changes, "an outcome is judged; what follows for the run is `advance`'s"

    def _check_ended(self) -> None:
        assert self.state.lifecycle.ended, f"the run does not end: {self.system.summary(self.state)}"
        before = self._picture()
        for what in (self._directive(Pause), self._directive(Abort)):
            events = list(self.system.decide(self.state, what, self.now_us))
            self._check_lifecycle(what, events)
            assert isinstance(events[0], DirectiveRefused), "an ended run can neither be paused nor aborted"
        assert self._picture() == before

    def _picture(self, state: Any = None) -> bytes:
        """Everything the port shows of a run."""
        state = self.state if state is None else state
        documents = [(document.path, document.body) for document in self.system.documents(state, 0)]
        life, doing = state.lifecycle, list(state.doing)
        shown = [documents, self.system.summary(state), self.system.details(state), doing, life.phase, life.halting, life.stop]
        return msgspec.json.encode([*shown, life.detail, state.doing.active])

    # What can happen

    def _directive(self, kind: Any, **fields: Any) -> Any:
        self._directives += 1
        return kind(id=f"d{self._directives}", **fields)

    def _meddle(self) -> None:
        chance = self.chance
        units = [effect.unit for effect in self.state.doing] or ["nobody"]
        acts: list[Callable[[], Input]] = [
            lambda: self._directive(Pause, now=chance.random() < 0.5),
            lambda: self._directive(Resume),
            lambda: self._directive(Resume, changes={"nonsense": True}),
            lambda: self._directive(Instruct, what="nonsense"),
            lambda: self._directive(Answer, approved=chance.random() < 0.5, unit=chance.choice([None, "nobody", *units])),
            self._edit,
        ]
        if chance.random() < 0.03:
            acts = [lambda: self._directive(Abort, reason="enough")]
        self.tell(chance.choice(acts)())

    def come_late(self, outcome: Outcome) -> None:
        """An outcome that nobody wants any more reaches the system only as a fact that changes nothing."""
        self.now_us += US
        shown = (self.system.summary(self.state), self.system.details(self.state), list(self.state.doing))
        self._add([CameLate(effect=outcome.effect, failure=FailureKind.STOPPED)])
        again = (self.system.summary(self.state), self.system.details(self.state), list(self.state.doing))
        assert again == shown, "an outcome that came late changed something"
        self._advance()
        self._check()

    def _edit(self) -> Input:
        """A print-out that came back as it was, or damaged."""
        found = [one for one in self.system.documents(self.state, self.now_us) if not isinstance(one.body, bytes | str)]
        document = self.chance.choice(found)
        plain = msgspec.json.decode(msgspec.json.encode(document.body))
        if plain and self.chance.random() < 0.5:
            plain.pop(self.chance.choice(list(plain)))
        return Edited(path=document.path, document=plain)

    def _outcome(self, effect: Effect, *, kindly: bool) -> Outcome:
        bad = not kindly and self.chance.random() < 0.35
        match effect:
            case RunAgent():
                return self._agent_ended(effect, bad=bad)
            case RunCheck():
                return self._check_ended_outcome(effect, bad=bad)
            case AskHuman():
                return HumanAnswered(effect=effect.id, approved=not bad, comments="said so")
            case Wait():
                return TimerFired(effect=effect.id)
            case AwaitGates():
                return GatesOpened(effect=effect.id)
            case ReadFile():
                failure = Failure(kind=FailureKind.SPEC, message="it cannot be read") if bad else None
                return FileRead(effect=effect.id, text="" if bad else '["one", "two"]', failure=failure)
            case Checkpoint():
                if bad:
                    return CheckpointEnded(effect=effect.id, unavailable="git is not installed")
                return CheckpointEnded(effect=effect.id, commit="c" * 40, tree="t" * 40, head="h" * 40, files_changed=1)
            case Merge():
                return self._merge_ended(effect, bad=bad)

    def _merge_ended(self, effect: Merge, *, bad: bool) -> MergeEnded:
        if self.state.lifecycle.halting and self.chance.random() < 0.7:
            return MergeEnded(effect=effect.id, verdict=MergeVerdict.INTERRUPTED, detail="stopped")
        if bad:
            verdict = self.chance.choice([one for one in MergeVerdict if one is not MergeVerdict.LANDED])
            return MergeEnded(effect=effect.id, verdict=verdict, detail="it did not land", conflicts=("a.py",))
        return MergeEnded(effect=effect.id, verdict=MergeVerdict.LANDED, commit="m" * 40)

    def _agent_ended(self, effect: RunAgent, *, bad: bool) -> AgentEnded:
        started_us = self.now_us
        if self.state.lifecycle.halting and self.chance.random() < 0.7:
            failure = Failure(kind=FailureKind.STOPPED, message="stopped")
        elif bad:
            failure = Failure(
                kind=self.chance.choice([kind for kind in FailureKind if kind != "stopped"]), message="it went wrong"
            )
        else:
            extra = self._reports(effect, self.chance) if self._reports is not None else {}
            word = next(iter(effect.report.words))
            report = check_report({"status": word, **effect.report.ids, **extra}, effect.report)
            assert isinstance(report, Report), report
            return AgentEnded(effect=effect.id, started_us=started_us, ended_us=started_us + US, exit_code=0, report=report)
        return AgentEnded(effect=effect.id, started_us=started_us, ended_us=started_us + US, exit_code=None, failure=failure)

    def _check_ended_outcome(self, effect: RunCheck, *, bad: bool) -> CheckEnded:
        failure, halting = None, self.state.lifecycle.halting
        if halting or (bad and self.chance.random() < 0.5):
            kinds = [FailureKind.STOPPED] if halting else [FailureKind.LOST, FailureKind.TIMEOUT, FailureKind.LAUNCH]
            failure = Failure(kind=self.chance.choice(kinds), message="it went wrong")
        after = self.chance.choice(["tree", "another"]) if bad else "tree"
        return CheckEnded(
            effect=effect.id, started_us=self.now_us, ended_us=self.now_us + US, exit_code=int(bad), failure=failure,
            tail="output", tree_before="tree", tree_after=after,
        )  # fmt: skip
