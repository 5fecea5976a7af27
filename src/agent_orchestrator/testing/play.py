"""One run of any system, played without a world: outcomes out of thin air, a person who meddles, and what must always hold.

`check_system` plays many of these. It knows systems only through their port.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.effects import (
    ACTIVE,
    Effect,
    RunAgent,
)
from agent_orchestrator.core.events import (
    Aborted,
    CameLate,
    DirectiveRefused,
    Ended,
    Event,
    Forked,
    HoldEnded,
    Paused,
    Resumed,
    TakenUp,
    UnitHeld,
    WentBack,
)
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.files import Patterns
from agent_orchestrator.core.hold import Hold, HoldReason
from agent_orchestrator.core.ids import EffectId, RunId, split_effect_id, unit_of
from agent_orchestrator.core.inputs import (
    Abort,
    Answer,
    Directive,
    Edited,
    Input,
    Instruct,
    Outcome,
    Pause,
    Resume,
)
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.system import Context, System
from agent_orchestrator.core.unit import Evidence
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.closure import PROGRAMS, close
from agent_orchestrator.engine.journal import Folded, decode_events
from agent_orchestrator.testing.clock import START_US
from agent_orchestrator.testing.outcomes import Reports, invent

SILENT_WITHIN = 20_000
"""An `advance` that still has something to say after this many answers never falls silent."""

CheckDocument = Callable[[str, Any], None]
"""Raises AssertionError when a print-out (path, plain data) breaks the system's published schema."""
CheckState = Callable[[Any], None]
"""Raises AssertionError when a state, looked at after a tick, breaks a promise of its own system."""


class Play:
    """One run, its journal, and what must hold after every tick."""

    def __init__(
        self,
        system: System,
        spec: Any,
        chance: random.Random,
        reports: Reports | None,
        check_document: CheckDocument | None = None,
        check_state: CheckState | None = None,
        *,
        thorough: bool = True,
    ) -> None:
        self.system, self.spec, self.chance = system, spec, chance
        self._reports, self._check_document, self._check_state = reports, check_document, check_state
        self._thorough = thorough and check_state is None
        self.now_us, self._directives = START_US, 0
        self.context = Context(run=RunId("checked"), home="/repo", workdir="/repo", created_us=START_US)
        self.journal: list[tuple[Event, int]] = []
        self.named: set[str] = set()
        self.over: list[Outcome] = []
        self.rows: list[int] = []
        """The number of events after each tick: where the run can go back to."""
        self._left: set[EffectId] = set()
        self._taken_over: set[EffectId] = set()
        """Effects from before the run went back: waits and questions go on."""
        self.state: Any = system.fresh(spec, self.context)
        events = system.begin(spec, self.context)
        assert list(events) == list(system.begin(spec, self.context)), "`begin` is deterministic"
        self._add([*events, TakenUp(boot="1", host="here", pid=1, version="")])
        self._advance()
        self._check()

    def play(self, ticks: int) -> None:
        """Let anything happen for a while; then everything goes well and the run has to end."""
        for _ in range(ticks):
            if self.state.lifecycle.ended and self.chance.random() < 0.1:
                break  # Meddled with for a while after its end; that is enough.
            doing = list(self.state.doing)
            if doing and self.chance.random() < 0.75:
                # Results may arrive together: they are decided one after the other, before anything new begins.
                self.tell(*(self.outcome(one, kindly=False) for one in self.chance.sample(doing, self._together(doing))))
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
            self.tell(self.outcome(self.chance.choice(doing), kindly=True) if doing else self.directive(Resume))
        self._check_ended()

    def _together(self, doing: list[Effect]) -> int:
        return min(len(doing), self.chance.choice((1, 1, 1, 2, 3)))

    def tell(self, *whats: Input) -> None:
        """Do one tick, as the engine does it."""
        self.now_us += int(self.chance.uniform(0, 90) * US)
        programs, was_running = self.programs(), self.state.lifecycle.running
        for what in whats:
            if not isinstance(what, Outcome):
                self._decide(what)
            elif self.state.doing.wants(what.effect):
                self._take(what)
        self._advance()
        self.rows.append(len(self.journal))
        self._check()
        if not was_running and not self.state.lifecycle.running:
            assert self.programs() <= programs, "a run that does not run started something"

    def _take(self, outcome: Outcome) -> None:
        if self.state.doing.is_held(outcome.effect):
            self._add([HoldEnded(unit=unit_of(outcome.effect), effect=outcome.effect)])
        self._decide(outcome)
        assert not self.state.doing.wants(outcome.effect), f"{outcome.effect} is over and still wanted"
        self.over.append(outcome)

    def _decide(self, what: Input) -> None:
        events = self._asked(f"deciding {what}", lambda: self.system.decide(self.state, what, self.now_us))
        self._check_lifecycle(what, events)
        self._add(events)

    def hold_or_release(self) -> None:
        """Hold an agent back as the engine does, or let one start: no business of a system's, but its documents show it."""
        agents = [effect for effect in self.state.doing if isinstance(effect, RunAgent)]
        named = {effect.report.form for effect in agents} - {""}
        assert named <= set(self.system.forms), "what a report may add is one of the system's forms"
        if not agents:
            return
        effect = self.chance.choice(agents)
        if self.state.doing.is_held(effect.id):
            self._add([HoldEnded(unit=effect.unit, effect=effect.id)])
        else:
            hold = Hold(
                effect=effect.id, why=self.chance.choice(list(HoldReason)), reason="it has to wait", until_us=self.now_us + US
            )
            self._add([UnitHeld(unit=effect.unit, hold=hold)])
        self._advance()
        self._check()

    def _add(self, events: Sequence[Event]) -> None:
        for event in events:
            Folded(self.system, self.state, 0, self.now_us).apply([event], self.now_us)
            self.journal.append((event, self.now_us))
            if self._thorough:
                self._check_documents()

    def _advance(self) -> None:
        for _ in range(SILENT_WITHIN):
            events = self._asked("advancing", lambda: self.system.advance(self.state, self.now_us))
            if not events:
                return
            self._add(events)
        raise AssertionError("advancing never falls silent")

    def _asked(self, what: str, ask: Callable[[], Sequence[Event]]) -> list[Event]:
        """Ask the system twice; it says the same, and neither changes anything."""
        if not self._thorough:
            return list(ask())
        before = self._picture()
        events = list(ask())
        assert events == list(ask()), f"{what} twice differs"
        assert self._picture() == before, f"{what} changed the state"
        return events

    # What must hold after every tick

    def _check(self) -> None:
        life, doing = self.state.lifecycle, list(self.state.doing)
        if life.running:
            assert doing, "a running run wants something: else it hangs"
        if life.ended:
            assert not doing, "an ended run wants nothing"
        if life.phase is Phase.ABORTING:
            assert self.programs(), "an aborted run ends when nothing runs any more"
        assert self.system.summary(self.state).ended == life.ended, "the summary says whether the run has ended"
        for effect in (one for one in doing if one.id not in self._taken_over):
            assert effect.id not in self._left, f"{effect.id} was launched before the run went back"
            run, unit, _ = split_effect_id(effect.id)
            assert (run, unit) == (self.context.run, effect.unit), f"{effect.id} does not name its run and unit"
        late = {outcome.effect for outcome in self.over} - self._taken_over
        assert not [effect.id for effect in doing if effect.id in late], "an effect that was over is wanted again"
        assert self.state.doing.active == sum(isinstance(effect, ACTIVE) for effect in doing)
        if self._check_state is not None:
            self._check_state(self.state)
        if self._thorough:
            self._check_replay()

    def go_back(self, row: int, *, fork: bool) -> None:
        """Go back to where the run was after a tick, or go on with a copy of it; nothing may tell what was done since."""
        self.now_us += US
        launched = {one.effect for one in self.over} | self.programs()
        point, number = self.rows[row], self.context.generation + 1
        if fork:
            self.context = msgspec.structs.replace(self.context, run=RunId(f"{self.context.run}-fork"))
            turn: Event = Forked(of="checked", at=row + 1, point="then")
        else:
            turn = WentBack(to=row + 1, point="then", generation=number)
        state = self.system.fresh(self.spec, self.context)
        folded = Folded(self.system, state, 0, self.now_us)
        for event, at_us in self.journal[:point]:
            folded.apply([event], at_us)
        folded.apply([turn], self.now_us)
        close(folded, self.now_us, "went back")
        self.state, self._left = state, launched
        assert not [one for one in state.doing if isinstance(one, PROGRAMS)], "what was at work at a point ends there"
        self._taken_over = {one.id for one in state.doing}
        self._check()

    def programs(self) -> set[EffectId]:
        """Say what runs: the ids of effects that occupy the machine."""
        return {effect.id for effect in self.state.doing if isinstance(effect, ACTIVE)}

    def _check_replay(self) -> None:
        """Check that the journal, through JSON, gives the same run."""
        events = decode_events(self.system, msgspec.json.encode([event for event, _ in self.journal]))
        assert events == [event for event, _ in self.journal], "every event survives being stored"
        state = self.system.fresh(self.spec, self.context)
        folded = Folded(self.system, state, 0, self.now_us)
        for event, (_, at_us) in zip(events, self.journal, strict=True):
            folded.apply([event], at_us)
        assert self._picture(state) == self._picture(), "the journal folds to another state"

    def _check_documents(self) -> None:
        ours = Patterns(self.system.files(self.spec, self.context.run))
        for document in self.system.documents(self.state, self.now_us):
            plain = msgspec.to_builtins(document.body)
            assert not document.path.startswith("/"), "print-outs are below the run's home"
            assert ours.match(document.path), f"{document.path} is printed, and `files` does not name it"
            assert self.system.faults(document.path, plain) == [], f"{document.path} would be refused as an edit"
            if self._check_document is not None:
                self._check_document(document.path, plain)

    def _check_lifecycle(self, what: Input, events: list[Event]) -> None:
        """Check that pause and abort mean the same in every system."""
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
        for what in (self.directive(Pause), self.directive(Abort)):
            events = list(self.system.decide(self.state, what, self.now_us))
            self._check_lifecycle(what, events)
            assert isinstance(events[0], DirectiveRefused), "an ended run can neither be paused nor aborted"
        assert self._picture() == before

    def _picture(self, state: Any = None) -> bytes:
        """Return all that the port shows of a run."""
        state = self.state if state is None else state
        documents = [(document.path, document.body) for document in self.system.documents(state, 0)]
        life, doing, details = state.lifecycle, list(state.doing), self.system.details(state)
        for unit in details.get("steps", {}).values():  # Whoever shows checks shows them for every system alike.
            typed.convert(unit.get("evidence", []), list[Evidence])
        shown = [documents, self.system.summary(state), details, doing, life.phase, life.halting, life.stop]
        return msgspec.json.encode([*shown, life.detail, state.doing.active])

    # What can happen

    def directive(self, kind: Any, **fields: Any) -> Any:
        """Make a directive with an id of its own."""
        self._directives += 1
        return kind(id=f"d{self._directives}", **fields)

    def _meddle(self) -> None:
        chance = self.chance
        units = [effect.unit for effect in self.state.doing] or ["nobody"]
        acts: list[Callable[[], Input]] = [
            lambda: self.directive(Pause, now=chance.random() < 0.5),
            lambda: self.directive(Resume),
            lambda: self.directive(Resume, changes={"nonsense": True}),
            lambda: self.directive(Instruct, what="nonsense"),
            lambda: self.directive(Answer, approved=chance.random() < 0.5, unit=chance.choice([None, "nobody", *units])),
            self._edit,
        ]
        if chance.random() < 0.03:
            acts = [lambda: self.directive(Abort, reason="enough")]
        self.tell(chance.choice(acts)())

    def come_late(self, outcome: Outcome) -> None:
        """Send an outcome that nobody wants any more: it is a fact that changes nothing."""
        self.now_us += US
        shown = (self.system.summary(self.state), self.system.details(self.state), list(self.state.doing))
        self._add([CameLate(effect=outcome.effect, failure=FailureKind.STOPPED)])
        again = (self.system.summary(self.state), self.system.details(self.state), list(self.state.doing))
        assert again == shown, "an outcome that came late changed something"
        self._advance()
        self._check()

    def _edit(self) -> Input:
        """Return a print-out that came back as it was, or damaged."""
        found = [one for one in self.system.documents(self.state, self.now_us) if not isinstance(one.body, bytes | str)]
        document = self.chance.choice(found)
        plain = msgspec.json.decode(msgspec.json.encode(document.body))
        if plain and self.chance.random() < 0.5:
            plain.pop(self.chance.choice(list(plain)))
        return Edited(path=document.path, document=plain)

    def outcome(self, effect: Effect, *, kindly: bool) -> Outcome:
        """Return an invented outcome of the effect."""
        return invent(
            effect, self.chance, self.now_us, kindly=kindly, halting=self.state.lifecycle.halting, reports=self._reports
        )
