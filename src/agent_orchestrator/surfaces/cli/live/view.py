"""The live view of a run at a terminal, whoever drives it: events scroll by, what is going on stands below, questions on top.

It is told what happened and looks again whenever it is asked to; it keeps no time of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.ids import EffectId, UnitId
from agent_orchestrator.core.inputs import Answer, Instruct
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.errors import OrcError
from agent_orchestrator.runs.budget import budget_facts
from agent_orchestrator.runs.directives import new_id
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.live.activity import Activities
from agent_orchestrator.surfaces.cli.live.dialog import Dialog, Wanted, Wish
from agent_orchestrator.surfaces.cli.live.evidence import DiffReader, list_checks
from agent_orchestrator.surfaces.cli.live.frame import Asked, render
from agent_orchestrator.surfaces.cli.live.keyboard import Keyboard
from agent_orchestrator.surfaces.cli.live.page import Page
from agent_orchestrator.surfaces.cli.live.panel import Panel
from agent_orchestrator.surfaces.cli.live.picture import choose_units, make_frame
from agent_orchestrator.surfaces.cli.progress import say_ways
from agent_orchestrator.surfaces.cli.screen import Screen, plain
from agent_orchestrator.surfaces.transcript import Line, Span

MONEY_EVERY_US = 2 * US
"""The age that the budget may have: reading it costs what the run has launched."""


class LiveView:
    """One run at one terminal."""

    def __init__(
        self, orchestrator: Orchestrator, run: StoredRun, screen: Screen, send: Callable[[Answer | Instruct], str]
    ) -> None:
        self._orchestrator, self._run, self._send = orchestrator, run, send
        self._panel, self.keyboard = Panel(screen), Keyboard()
        self._dialog, self._page = Dialog(), Page("diff")
        self._paged = False
        self._diff: DiffReader | None = None
        self._checks: tuple[Span, ...] = ()
        self._activities = Activities(orchestrator.settings.folder / "launches")
        self._since: dict[EffectId, int] = {}
        self._looked = False
        self._money: dict[str, Any] | None = None
        self._money_us = self._money_seq = 0
        self.left = False
        """True once the person does not want to wait any longer."""

    @property
    def asks(self) -> bool:
        """True while a question is shown that keys can answer."""
        return bool(self._dialog.ways or self._dialog.entry) and self.keyboard.present

    def tell(self, lines: Sequence[str]) -> None:
        """Let lines scroll by."""
        self._panel.tell(lines)

    def look(self, folded: Folded, *, driven: bool = True) -> None:
        """Draw the run as it is now."""
        if not self._panel.is_ours():
            return
        state, now_us = folded.state, self._orchestrator.clock.now_us()
        keys = self.keyboard.open()
        self._ask(folded)
        self._panel.take_pastes(self.asks and keys)
        if self._paged:
            self._panel.page(self._page.render(self._diff_lines(), *self._panel.size))
            return
        self._look_into(folded)
        shown, _ = choose_units(state)
        self._since = {effect.id: self._since.get(effect.id, now_us) for effect in state.doing} if self._looked else {}
        self._looked = True
        frame = make_frame(
            self._run,
            state,
            folded.summary(),
            now_us,
            launches=self._activities.look_at(shown, state.spec.choices),
            since=self._since,
            money=self._read_money(folded, now_us),
            asked=self._asked(keys=keys),
            driven=driven,
        )
        self._panel.draw(render(frame, *self._panel.room))

    def take_keys(self, wait_s: float = 0.0) -> bool:
        """Do what the keys mean that were pressed; return True if there were any."""
        keys = self.keyboard.read(wait_s)
        for key in keys:
            if self._paged:
                self._paged = self._page.press(key)
                if not self._paged:
                    self._panel.close_page()
            elif (wanted := self._dialog.press(key)) is not None:
                self._do(wanted)
        return bool(keys)

    def close(self) -> None:
        """Take the view away and give the terminal back."""
        self._panel.close()
        self.keyboard.close()

    def _ask(self, folded: Folded) -> None:
        """Show what is asked now; what was answered elsewhere disappears."""
        asked = [] if self.left else [effect for effect in folded.state.doing if isinstance(effect, AskHuman)]
        if not self._dialog.update(asked):
            return
        self.keyboard.drop()
        if self._paged:
            self._paged = False
            self._panel.close_page()

    def _look_into(self, folded: Folded) -> None:
        """Find the evidence about the question that is shown."""
        question = self._dialog.question
        if question is not None and (self._diff is None or self._diff.question != question.id):
            self._checks = list_checks(folded.system, folded.state, question.unit)
            self._diff = DiffReader(self._orchestrator, self._run, question)

    def _asked(self, *, keys: bool) -> Asked | None:
        question = self._dialog.question
        if question is None:
            return None
        facts = list(self._checks)
        size = self._diff.found.size if self._diff is not None and self._diff.found is not None else ""
        facts += [Span(size)] if size else []
        return Asked(
            unit=plain(question.unit),
            text=plain(question.question),
            facts=tuple(facts),
            ways=self._dialog.ways if keys else tuple(say_ways(self._run, question)),
            said=self._dialog.said,
            others=len(self._dialog.asked) - 1,
            entry=self._dialog.entry,
        )

    def _diff_lines(self) -> list[Line]:
        found = self._diff.found if self._diff is not None else None
        return found.lines or [[Span("nothing changed")]] if found is not None else [[Span("reading the diff …")]]

    def _do(self, wanted: Wanted) -> None:
        match wanted.wish:
            case Wish.DIFF:
                self._paged, self._page = True, Page("diff")
            case Wish.LEAVE:
                self.left = True
            case _:
                self._answer(wanted)

    def _answer(self, wanted: Wanted) -> None:
        question = wanted.question
        past = {Wish.APPROVE: "approved", Wish.REJECT: "rejected", Wish.ANSWER: "answered"}[wanted.wish]
        said: Answer | Instruct
        if wanted.wish is Wish.ANSWER:
            values = {"text": wanted.text, "unit": question.unit}
            said = Instruct(id=new_id(), what="answer", values=values, asked=question.id)
        else:
            approved = wanted.wish is Wish.APPROVE
            unit = UnitId(question.unit)
            said = Answer(id=new_id(), approved=approved, unit=unit, comments=wanted.text, asked=question.id)
        self._dialog.settle(question, said.id)
        try:
            more = self._send(said)
        except OrcError as error:
            self.refuse(said.id, str(error))
            return
        self._dialog.said = f"{past}; {more}" if more else past

    def refuse(self, directive: str, why: str) -> None:
        """Say why an answer that was given here does not count; the question stays."""
        self._dialog.refuse(directive, plain(why))

    def _read_money(self, folded: Folded, now_us: int) -> dict[str, Any] | None:
        # What is set aside moves without a fact of the run.
        moving = folded.seq != self._money_seq or folded.state.doing.at_work
        if self._money is None or (moving and now_us - self._money_us >= MONEY_EVERY_US):
            try:
                self._money = budget_facts(self._orchestrator, self._run, folded)
            except OrcError:
                return self._money  # The store is busy; the next look is a moment away.
            self._money_us, self._money_seq = now_us, folded.seq
        return self._money
