"""A run of any system, played by hand: no engine, no process, a clock that moves only when told.

After every input it checks what must always hold: the journal survives JSON, folding it again gives the same run, and a
running run never stands still without a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from agent_orchestrator.core.effects import ACTIVE, Effect, RunAgent, RunCheck
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.inputs import AgentEnded, CheckEnded, Input
from agent_orchestrator.core.report import Report, check_report
from agent_orchestrator.core.system import Context, System
from agent_orchestrator.core.units import US, from_iso
from agent_orchestrator.engine.journal import Folded

HOME = "/repo"
START_US = from_iso("2025-01-15T14:30:00.123456Z")


@cache
def _events(event_type: Any) -> msgspec.json.Decoder[list[Any]]:
    return msgspec.json.Decoder(list[event_type])


class Played:
    """One run and its journal."""

    def __init__(
        self, system: System, spec: Any, run: str, *, workdir: str = HOME, careful: bool = True, also: Sequence[Any] = ()
    ) -> None:
        self.system, self.spec = system, spec
        self.careful = careful
        """Whether everything is checked after each tick; a run of 10,000 steps is checked at its end."""
        self.context = Context(run=RunId(run), home=HOME, workdir=workdir, created_us=START_US)
        self.now_us = START_US
        self.directives = 0
        self.open_journal(*also)
        self._advance()
        if self.careful:
            self.check()

    def open_journal(self, *also: Any) -> None:
        """Begin the journal, anew if need be; `also` are facts besides those of every run."""
        self.journal: list[tuple[Any, int]] = []
        self.state: Any = self.system.fresh(self.spec, self.context)
        self._again: Any = self.system.fresh(self.spec, self.context)
        self._checked = 0
        self._add([*self.system.begin(self.spec, self.context), *also])

    def tell(self, what: Input, after_s: float = 1.0) -> list[Any]:
        """One tick with one input; answers with its events."""
        self.now_us += int(after_s * US)
        begun = len(self.journal)
        self._add(self.system.decide(self.state, what, self.now_us))
        self._advance()
        if self.careful:
            self.check()
        return [event for event, _ in self.journal[begun:]]

    def happen(self, *events: Any) -> list[Any]:
        """One tick with facts that the engine itself records."""
        begun = len(self.journal)
        self._add(events)
        self._advance()
        if self.careful:
            self.check()
        return [event for event, _ in self.journal[begun:]]

    def agent(self, unit: str, report: dict[str, Any] | None = None, **fields: Any) -> list[Any]:
        """The unit's agent ends: well, unless `failure` is given."""
        effect = self.doing(unit)
        assert isinstance(effect, RunAgent), f"{unit} runs no agent: {effect}"
        read: Report | Failure | None = None
        failure = fields.pop("failure", None)
        if report is not None:
            read = check_report({"status": next(iter(effect.report.words))} | report, effect.report)
            if isinstance(read, Report) and read.status == "FAILED":
                failure = failure or Failure(kind=FailureKind.REPORTED, message=f"The agent reported failure: {read.summary}")
        outcome = AgentEnded(
            effect=effect.id,
            started_us=self.now_us,
            ended_us=self.now_us + US,
            failure=read if isinstance(read, Failure) else failure,
            report=read if isinstance(read, Report) else None,
            exit_code=fields.pop("exit_code", 0 if failure is None else 1),
            **fields,
        )
        return self.tell(outcome)

    def check_end(self, unit: str, exit_code: int | None = 0, **fields: Any) -> list[Any]:
        """The unit's check ends."""
        effect = self.doing(unit)
        assert isinstance(effect, RunCheck), f"{unit} runs no check: {effect}"
        return self.tell(
            CheckEnded(effect=effect.id, started_us=self.now_us, ended_us=self.now_us + US, exit_code=exit_code, **fields)
        )

    def doing(self, unit: str) -> Effect:
        """Return the effects of the unit."""
        effect: Effect | None = self.state.doing.of(unit)
        assert effect is not None, f"{unit} does nothing"
        return effect

    def directive(self) -> str:
        """A new directive id."""
        self.directives += 1
        return f"d{self.directives}"

    def documents(self) -> dict[str, Any]:
        """The print-outs, as a reader gets them; what is not JSON is left out."""
        found = self.system.documents(self.state, self.now_us)
        return {one.path: msgspec.json.decode(msgspec.json.encode(one.body)) for one in found if not isinstance(one.body, bytes)}

    def document(self) -> dict[str, Any]:
        """The state file, as a reader gets it."""
        body: dict[str, Any] = next(iter(self.documents().values()))
        return body

    def faults(self) -> list[str]:
        """Return the faults of the documents against their published schemas; each system says."""
        return []

    def check(self) -> None:
        """Check what must hold after every tick."""
        state = self.state
        assert not self.faults(), self.faults()
        for path, document in self.documents().items():
            assert not self.system.faults(path, document)
        # Earlier events were folded by earlier checks: the whole journal after each tick would cost its square.
        self._fold(self._again, self._checked)
        self._checked = len(self.journal)
        self.compare(self._again)
        if state.lifecycle.running:
            assert len(state.doing), "a running run that does nothing is a hang"
        if state.lifecycle.ended:
            assert not len(state.doing)
            assert not state.due
        self._check_names()

    def _check_names(self) -> None:
        names = (effect for effect in (getattr(event, "effect", None) for event, _ in self.journal if _begins(event)) if effect)
        ids = list(names)
        assert len(ids) == len(set(ids)), "an effect id was used twice"

    def folded(self) -> Any:
        """The run folded again from its journal, through JSON."""
        state = self.system.fresh(self.spec, self.context)
        self._fold(state, 0)
        return state

    def compare(self, again: Any) -> None:
        """Check that a state which was folded from the journal is the run's."""
        assert self.picture(again) == self.picture(self.state)
        assert again.spec == self.state.spec

    def _fold(self, state: Any, begin: int) -> None:
        rows = self.journal[begin:]
        decoded = _events(self.system.event_type).decode(msgspec.json.encode([event for event, _ in rows]))
        folded = Folded(self.system, state, 0, START_US)
        for event, (_, at_us) in zip(decoded, rows, strict=True):
            folded.apply([event], at_us)

    def picture(self, state: Any) -> dict[str, Any]:
        """Return all that is known of a run, for comparison."""
        return {
            "documents": [(one.path, msgspec.to_builtins(one.body)) for one in self.system.documents(state, 0)],
            "details": self.system.details(state),
            "summary": msgspec.to_builtins(self.system.summary(state)),
            "held": {unit: hold.told for unit, hold in state.doing.holds.items()},
            "doing": [msgspec.to_builtins(effect) for effect in state.doing],
            "active": sum(isinstance(effect, ACTIVE) for effect in state.doing),
        }

    def _add(self, events: Any) -> None:
        for event in events:
            Folded(self.system, self.state, 0, self.now_us).apply([event], self.now_us)
            self.journal.append((event, self.now_us))

    def _advance(self) -> None:
        for _ in range(10_000):
            events = self.system.advance(self.state, self.now_us)
            if not events:
                return
            self._add(events)
        raise AssertionError("advance never falls silent")


def _begins(event: Any) -> bool:
    """Return True if the event begins an effect, by its name: started, asked, awaited or scheduled."""
    return type(event).__name__.endswith(("Started", "Asked", "Awaited", "Scheduled"))
