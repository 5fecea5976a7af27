"""Orchestrator: the one object every surface and every program that embeds us talks to.

It reads runs, sends directives and drives. Reading and sending need no event loop; the engine is imported only by those
that drive, so that `orc status` stays instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.events import DirectiveRefused, Event, LimitsSet
from agent_orchestrator.core.ids import RunId, UnitId, checked_id, effect_id
from agent_orchestrator.core.inputs import DIRECTIVES, Answer, Given, Instruct, Posted, Usage
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Context, System
from agent_orchestrator.core.who import Surface, Who
from agent_orchestrator.engine.clock import boot_id
from agent_orchestrator.errors import AmbiguousRun, Refused, UnknownRun
from agent_orchestrator.git.repository import host_of, store_folder
from agent_orchestrator.runs.opened import OpenedRuns
from agent_orchestrator.store.port import EVERY, Append, Count, NewRun, Spending, StoredRun, StoredUsage, UsageRow, Which
from agent_orchestrator.systems import find_system

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver
    from agent_orchestrator.engine.engine import Observer, World
    from agent_orchestrator.engine.journal import Folded
    from agent_orchestrator.engine.overview import Overviews
    from agent_orchestrator.engine.process import ProcessLaunches
    from agent_orchestrator.runs.agent_door import AgentDoor
    from agent_orchestrator.runs.choices import AgentOptions
    from agent_orchestrator.runs.directives import Sent
    from agent_orchestrator.runs.follow import JournalEntry
    from agent_orchestrator.runs.start import Change, Start, Started
    from agent_orchestrator.runs.work import Work

SomeDirective = TypeVar("SomeDirective", bound=Posted)

MATCHES_SHOWN = 5
ELSEWHERE = UnitId("imported")
"""The spender, in the ledger, of what an imported run had spent before."""


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """The budget of a new run, and what an imported one brings along."""

    budget: Budget = Budget()
    facts: Sequence[Event] = ()
    spent_usd: float | None = None
    """Spent elsewhere: it stands in the ledger, so that the budget counts it."""


NOTHING_BEFORE = Beginning()


class Orchestrator(OpenedRuns):
    """The runs of a repository, given by its folder or else around the current one: started, driven, followed, directed.

    Use it from one thread at a time, and open another one for another thread. A run may be driven in any thread; only in
    the main one does Ctrl-C pause it.
    """

    prints: bool = True
    """False where the files of runs that are driven here are not to be written."""

    def runs(self, which: Which = EVERY) -> list[StoredRun]:
        """Return some runs, newest first."""
        return self.store.runs(which) if self.has_store else []

    def count(self) -> Count:
        """Return how many runs there are, and how many of them have not ended."""
        return self.store.count() if self.has_store else Count(0, 0)

    def known(self, run: str) -> StoredRun | None:
        """Return a run by its exact id; None if there is none."""
        return self.store.run(run) if self.has_store else None

    def scan(self, system: str) -> Iterator[StoredRun]:
        """Yield a system's runs, oldest first, without holding all of them."""
        if self.has_store:
            yield from self.store.scan(system)

    def ledger(self) -> list[StoredUsage]:
        """Return what launches of all runs spent, pruned ones included."""
        return self.store.usage() if self.has_store else []

    def spending(self, since_us: int) -> list[Spending]:
        """Return what launches spent since a time, by agent and model."""
        return self.store.spending(since_us) if self.has_store else []

    def find(self, given: str) -> StoredRun:
        """Return a run by its id, or by the start of it; raise UnknownRun or AmbiguousRun."""
        if (exact := self.known(given)) is not None:
            return exact
        matches = self.runs(Which(begins=given, most=MATCHES_SHOWN)) if given else []
        if not matches:
            raise UnknownRun(run=given, repo=self.settings.home)
        if len(matches) > 1:
            raise AmbiguousRun(run=given, matches=", ".join(run.id for run in matches))
        return matches[0]

    def find_of(self, system: str, given: str, noun: str) -> StoredRun:
        """Return a run of a system by its id, or by the start of it; raises Refused for one of another system."""
        run = self.find(given)
        if run.system != system:
            raise Refused(why=f"Run {run.id} is no {noun} but a {run.system}; `orc status {run.id}` shows it.")
        return run

    def fold(self, run: StoredRun) -> Folded:
        """Fold the run's state from its journal."""
        from agent_orchestrator.engine.journal import fold

        return fold(self.store, find_system(run.system), run)

    def has_home(self, run: StoredRun) -> bool:
        """Tell whether a run belongs to this very repository, and not to another one or to workers."""
        return store_folder(host_of(Path(run.context.home))).resolve() == self.settings.folder.resolve()

    def works_of(self, run: StoredRun, state: Any) -> list[Work]:
        """Return what a run made, as it lies here."""
        from agent_orchestrator.runs.hooks import hooks_of

        return hooks_of(run.system).works(run, state)

    def withdraw(self, run: StoredRun, kept: Mapping[str, str]) -> list[str]:
        """Take what was discarded, and these refs keep, from where others have it, too; returns what had to stay."""
        return []

    def owner(self, run: StoredRun) -> str | None:
        """Return the process that drives the run now, or None."""
        return self.owners.owner_of(run.id)

    def create(
        self, system: System, spec: object, name: str, context: Context, beginning: Beginning = NOTHING_BEFORE
    ) -> StoredRun:
        """Make a run durable before anything happens; raises RunExists."""
        from agent_orchestrator.engine.journal import Folded, encode_events

        checked_id(context.run, "The run id")
        folded = Folded(system, system.fresh(spec, context), 0, context.created_us)
        events = [*system.begin(spec, context), *beginning.facts]
        if beginning.budget.is_set:
            events.append(LimitsSet(limits=beginning.budget))
        folded.apply(events, context.created_us)
        summary = folded.summary()
        first = Append(
            run=context.run,
            expected_seq=0,
            at_us=context.created_us,
            body=encode_events(events),
            summary=summary,
            usage=_spent(context.run, beginning.spent_usd),
        )
        new = NewRun(system=system.name, name=name, context=context, spec=msgspec.json.encode(spec), summary=summary)
        self.store.create(new, first)
        return self.find(context.run)

    def send(self, run: StoredRun, directive: Posted, folded: Folded | None = None) -> int:
        """Check a directive against the run as it is, `folded` where that is known, and put it into the inbox.

        The check is the system's own `decide`: what it would refuse is refused here, at once, with the same words. An
        answer names the question that it saw; sent from inside a launch, a directive is journaled and refused. Returns the
        sequence number of the state that it was checked against.
        """
        self.refuse_kept(run, here=False)
        return self._post(run, self.sign(run, directive), folded or self.fold(run))

    def keep_books(self, run: StoredRun, directive: Posted) -> None:
        """Send what is nobody's decision and only follows from another: a loop has crashed, a run's files are archived."""
        self.refuse_kept(run, here=False)
        self._post(run, msgspec.structs.replace(directive, who=Who(surface=Surface.ORC)), self.fold(run))

    def sign(self, run: StoredRun, directive: SomeDirective) -> SomeDirective:
        """Return the directive with who sends it; raises FromLaunch, journaled, when that is an agent of ours."""
        directive = self.stamp(directive)
        if directive.who is not None and directive.who.launch is not None:
            from agent_orchestrator.runs.intruders import refuse_launch

            refuse_launch(self, run, directive)
        return directive

    def stamp(self, directive: SomeDirective) -> SomeDirective:
        """Return the directive with who sends it, an agent of ours perhaps: whoever takes it has to judge that."""
        # Looking at processes costs what looking at runs should not pay for.
        from agent_orchestrator.engine.sender import find_sender

        return msgspec.structs.replace(directive, who=find_sender(self.settings.folder, self.settings.environ, self._surface))

    def _post(self, run: StoredRun, directive: Posted, folded: Folded) -> int:
        if isinstance(directive, Answer | Instruct) and directive.asked is None:
            from agent_orchestrator.core.consent import question_of

            question = question_of(folded.state.doing, directive)
            directive = msgspec.structs.replace(directive, asked=question.id if question is not None else None)
        now_us = max(self.clock.now_us(), folded.at_us)
        for event in folded.decide(directive, now_us):
            if isinstance(event, DirectiveRefused):
                raise Refused(why=f"Run {run.id}: {event.why}.")
        self.store.post(run.id, directive.id, msgspec.json.encode(directive), now_us)
        return folded.seq

    def refuse_kept(self, run: StoredRun, *, here: bool = True) -> None:
        """Raise for a journal that can only be looked at: kept under another id, or of a repository that lies elsewhere.

        The state file and the launches of a kept one may be a newer run's by now; the paths of a copied or moved one lead out
        of this repository, and its agents would work there. In a store that machines share, what is only said to a run
        need not be said `here`, where it works.
        """
        if run.id != run.context.run:
            why = f"Run {run.id} is the kept journal of an earlier run {run.context.run}: it can be read, but not resumed."
            raise Refused(why=why)
        if not here and self.address is not None:
            return
        if not self.has_home(run):
            if run.context.remote:
                raise Refused(why=f"Run {run.id} belongs to workers, who drive it elsewhere: `orc resume {run.id} --queue`.")
            home, there = self.settings.home, run.context.home
            why = f"Run {run.id} belongs to {there}, and {home} is a copy or was moved: continue there, or start a new run."
            raise Refused(why=why)

    def start(self, options: AgentOptions, how: Start | None = None) -> Started:
        """Create a run of a system's options, for this object to drive; raise where it could never work."""
        from agent_orchestrator.runs.start import NOTHING_SPECIAL, prepare_run, start_prepared

        prepared = prepare_run(self, options)
        started = start_prepared(self, options, prepared, how or NOTHING_SPECIAL)
        return msgspec.structs.replace(started, notes=(*prepared.warnings, *started.notes))

    def drive(
        self,
        run: StoredRun | str,
        on_event: Callable[[JournalEntry], object] | None = None,
        on_notice: Callable[[str], object] | None = None,
        *,
        wait: bool = True,
        change: Change | None = None,
    ) -> Summary:
        """Drive a run in this thread until it ends or is paused; one that was not just started goes on, with the change.

        Both functions are called between two steps of the engine. Without `wait`, return also when only people or the end
        of a rate limit can move the run. Raise RunBusy while another process drives it.
        """
        from agent_orchestrator.runs.drive import Callbacks, drive_here
        from agent_orchestrator.runs.start import UNCHANGED

        return drive_here(self, self._again(run), Callbacks(on_event, on_notice), change or UNCHANGED, wait=wait)

    def follow(self, run: StoredRun | str, after: int = 0, *, wait: bool = True) -> Iterator[JournalEntry]:
        """Yield the events after a row of a run's journal, whoever drives it, and with `wait` those to come until it is over."""
        from agent_orchestrator.runs.follow import follow_run

        return follow_run(self, self._again(run), after, wait=wait)

    def show(self, run: StoredRun | str) -> dict[str, Any]:
        """Return everything known about a run as plain data: the object that `orc show --json` prints."""
        from agent_orchestrator.runs.details import show_facts

        found = self._again(run)
        return show_facts(self, found, self.fold(found))

    def approve(self, run: StoredRun | str, unit: str | None = None, *, comments: str = "", question: str | None = None) -> Sent:
        """Approve what waits for a person; raise Refused if nothing does, or not the question of that id."""
        return self._judge(run, unit, approved=True, comments=comments, asked=question)

    def reject(self, run: StoredRun | str, unit: str | None = None, *, comments: str = "", question: str | None = None) -> Sent:
        """Reject what waits for a person; raise Refused if nothing does, or not the question of that id."""
        return self._judge(run, unit, approved=False, comments=comments, asked=question)

    def _judge(self, run: StoredRun | str, unit: str | None, **said: Any) -> Sent:
        from agent_orchestrator.runs.directives import new_id, send_judgement

        return send_judgement(self, self._again(run), Answer(id=new_id(), unit=UnitId(unit) if unit else None, **said))

    def answer(self, run: StoredRun | str, text: str, unit: str | None = None) -> Sent:
        """Answer a question that asks for words; raise Refused if there is none."""
        from agent_orchestrator.runs.directives import send_words

        return send_words(self, self._again(run), unit, text)

    def pause(self, run: StoredRun | str, *, now: bool = False, reason: str = "asked to pause") -> Sent:
        """Let a run drain, or with `now` stop what runs, whoever drives it; `drive` goes on with it."""
        from agent_orchestrator.runs.stop import pause_run

        return pause_run(self, self._again(run), reason, now=now)

    def resume(self, run: StoredRun | str) -> Sent:
        """Tell the process that drives a paused run to go on; raise Refused if nobody does: then `drive` goes on with it."""
        from agent_orchestrator.runs.stop import unpause_run

        return unpause_run(self, self._again(run))

    def abort(self, run: StoredRun | str, *, reason: str = "aborted by a person") -> Sent:
        """End a run for good, whoever drives it: everything that runs is stopped."""
        from agent_orchestrator.runs.stop import abort_run

        return abort_run(self, self._again(run), reason)

    def _again(self, run: StoredRun | str) -> StoredRun:
        """Return the run as the store lists it now."""
        return self.find(run if isinstance(run, str) else run.id)

    def drive_owned(
        self, run: StoredRun, observer: Observer, stays: Callable[[Driver], bool], inputs: Sequence[Given] = ()
    ) -> Summary:
        """Drive a run that the caller owns until it ends or rests."""
        inputs = [self.sign(run, what) if isinstance(what, DIRECTIVES) else what for what in inputs]
        # asyncio and everything on it costs three bare interpreters: only commands that drive pay for it.
        from agent_orchestrator.engine.session import drive_in_loop
        from agent_orchestrator.runs.agent_door import serve_agents
        from agent_orchestrator.runs.exclusion import hide_files
        from agent_orchestrator.runs.results import keep_end, keep_start

        hide_files(self, run)
        keep_start(self, run)
        with self.store.driving():
            self.store.keep_reserve_file(release=False)
            with serve_agents(self, run) as door:
                summary = drive_in_loop(self.world(run, door), run, find_system(run.system), observer, stays, inputs)
            if summary.ended:
                self.await_store()
                keep_end(self, run, summary)
            return summary

    def settle(self, run: StoredRun) -> None:
        """Let a run take what it was sent and come to rest, without a word and without waiting for anything."""
        from agent_orchestrator.engine.engine import Silent

        self.drive_owned(run, Silent(), lambda driver: False)

    def launches(self) -> ProcessLaunches:
        """Return the launches of this repository."""
        from agent_orchestrator.engine.process import ProcessLaunches

        return ProcessLaunches(self.settings.folder / "launches", self.clock, boot_id())

    def overviews(self) -> Overviews:
        """Return the writer of the documents that span runs."""
        from agent_orchestrator.engine.overview import Overviews

        return Overviews(self.store, self.owners, self.settings.folder, self.clock)

    def world(self, run: StoredRun, door: AgentDoor | None = None) -> World:
        """Return the real world, for an engine of this process."""
        from agent_orchestrator.runs.world import make_world

        return make_world(self, run, door)


def _spent(run: RunId, cost_usd: float | None) -> tuple[UsageRow, ...]:
    if cost_usd is None:
        return ()
    effect = effect_id(run, ELSEWHERE, 0, 1, 1, "agent")
    return (UsageRow(effect=effect, unit=ELSEWHERE, agent=ELSEWHERE, usage=Usage(cost_usd=cost_usd)),)
