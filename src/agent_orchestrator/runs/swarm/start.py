"""Starts beads and finds them again: what `orc swarm` talks to.

A bead belongs to the newest run that has it. Whoever starts it anew takes it over from an earlier run, so that nobody
else ever prints its records; counting, looking and creating happen under one lock.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.beneath import move_beneath
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.inputs import Instruct
from agent_orchestrator.core.limits import REPORT_LIMIT_BYTES
from agent_orchestrator.core.units import say_count
from agent_orchestrator.errors import Refused
from agent_orchestrator.git.exclude import exclude
from agent_orchestrator.git.repository import checkout_of
from agent_orchestrator.runs.lock import alone
from agent_orchestrator.runs.names import keep_as, new_run_id
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.start import NOTHING_SPECIAL, Start, Started, create_owned
from agent_orchestrator.runs.swarm.workspace import write_schemas
from agent_orchestrator.runs.trees import entering
from agent_orchestrator.store.port import StoredRun, Which
from agent_orchestrator.systems.swarm.records import RESULTS, RUNS, name_attempt
from agent_orchestrator.systems.swarm.spec import BeadSpec, SwarmSpec
from agent_orchestrator.systems.swarm.state import Bead, BeadStanding, SwarmState
from agent_orchestrator.systems.swarm.system import SWARM

OVER = (BeadStanding.DONE, BeadStanding.FAILED, BeadStanding.TIMEOUT, BeadStanding.STOPPED)


class Found(msgspec.Struct, frozen=True):
    """A bead where it belongs."""

    run: StoredRun
    state: SwarmState
    bead: str

    @property
    def held(self) -> Bead:
        """The bead as its run knows it."""
        return self.state.beads[self.bead]

    @property
    def standing(self) -> BeadStanding:
        """The bead's standing."""
        return self.state.standing(self.bead)


class Swarm:
    """The beads of one workspace."""

    def __init__(self, orchestrator: Orchestrator) -> None:
        self.orchestrator = orchestrator
        self._states: dict[str, SwarmState] = {}
        home = str(orchestrator.settings.home)
        every = orchestrator.runs(Which(system=SWARM.name))
        self.runs = [run for run in every if run.context.home == home]
        """Newest first."""
        self._elsewhere = [run for run in every if run.context.home != home]

    def state(self, run: StoredRun) -> SwarmState:
        """Return the run's state, folded once."""
        if run.id not in self._states:
            self._states[run.id] = self.orchestrator.fold(run).state
        return self._states[run.id]

    def locate(self, beads: Sequence[str]) -> dict[str, Found]:
        """Find where each of these beads belongs: in the newest run that has it and did not give it away."""
        wanted = set(beads)
        found: dict[str, Found] = {}
        for run in self.runs:
            for bead in wanted & self._members(run):
                if not self.state(run).beads[bead].released:
                    found[bead] = Found(run, self.state(run), bead)
            wanted -= found.keys()
            if not wanted:
                break
        return found

    def find(self, bead: str) -> Found | None:
        """Find where the bead belongs, or None when no run has it."""
        return self.locate([bead]).get(bead)

    def attempts(self, bead: str) -> int:
        """Return the highest attempt number of a bead in any run, whoever has it now."""
        numbers = [self.state(run).beads[bead].attempt for run in self.runs if bead in self._members(run)]
        return max(numbers, default=0)

    def live(self) -> Iterator[tuple[StoredRun, BeadSpec]]:
        """Yield the beads of unfinished runs that are not over, of every workspace of this store."""
        for run in [*self.runs, *self._elsewhere]:
            if not run.summary.ended and run.id == run.context.run:
                state = self.state(run)
                for bead, spec in state.specs.items():
                    if state.standing(bead) not in OVER:
                        yield run, spec

    def _members(self, run: StoredRun) -> set[str]:
        if run.summary.facts.get("dispatch"):
            return {run.context.run}
        spec = typed.decode(self.orchestrator.store.spec(run.id), _Named)
        return {bead.id for bead in spec.beads}


class _NamedBead(msgspec.Struct):
    id: str


class _Named(msgspec.Struct):
    beads: list[_NamedBead]


def start_dispatch(orchestrator: Orchestrator, spec: SwarmSpec, start: Start = NOTHING_SPECIAL) -> Started:
    """Create the dispatch of the specification's one bead."""
    (bead,), force, shared = spec.beads, start.force, start.force or start.shared
    with alone(orchestrator.settings.folder, "swarm"):
        swarm = Swarm(orchestrator)
        _refuse_foreign(orchestrator, bead.id)
        found = swarm.find(bead.id)
        if found is not None:
            _check_startable(found, force=force)
        beside = _check_trees(swarm, [bead], shared=shared)
        bead = _numbered(swarm, bead, mine=found is not None, force=force)
        if found is not None:
            _take_over(orchestrator, found.run, [bead.id])
        if any(run.id == bead.id for run in swarm.runs) or (orchestrator.settings.folder / "launches" / bead.id).exists():
            keep_as(orchestrator, bead.id)
        spec = msgspec.structs.replace(spec, beads=(bead,), dispatch=True, max_agents=1, shared=force, beside=beside)
        return _create(orchestrator, spec, bead.id, bead.id, start)


def start_run(orchestrator: Orchestrator, spec: SwarmSpec, name: str, start: Start = NOTHING_SPECIAL) -> Started:
    """Create the run of many beads; those that are done already are not done again, unless forced."""
    force = start.force
    with alone(orchestrator.settings.folder, "swarm"):
        swarm = Swarm(orchestrator)
        known = swarm.locate([bead.id for bead in spec.beads])
        done = set() if force else {bead for bead, found in known.items() if found.standing is BeadStanding.DONE}
        for found in known.values():
            if found.bead not in done:
                _check_startable(found, force=force)
        specs = {bead.id: bead for bead in spec.beads} | {bead: known[bead].state.specs[bead] for bead in done}
        left = [_without(_begun_with(bead, specs), done) for bead in spec.beads if bead.id not in done]
        if not left:
            raise Refused(why="There is nothing to do: every bead of the file is done; --force does them again.")
        beside = _check_trees(swarm, left, shared=force or start.shared)
        numbered = [_numbered(swarm, bead, mine=bead.id in known, force=force) for bead in left]
        for run in swarm.runs:
            if taken := [bead.id for bead in left if bead.id in known and known[bead.id].run.id == run.id]:
                _take_over(orchestrator, run, taken)
        spec = msgspec.structs.replace(spec, beads=tuple(numbered), shared=force, beside=beside)
        started = _create(orchestrator, spec, new_run_id(orchestrator), name, start)
        return msgspec.structs.replace(started, notes=(*started.notes, *_notes(spec, len(done))))


def _numbered(swarm: Swarm, bead: BeadSpec, *, mine: bool, force: bool) -> BeadSpec:
    """Return the bead with the number of its earlier attempts, here or as another tool counted them."""
    before = swarm.attempts(bead.id) if mine else _keep_foreign_records(swarm.orchestrator, bead.id, force=force)
    return msgspec.structs.replace(bead, attempts_before=before)


def _create(orchestrator: Orchestrator, spec: SwarmSpec, run: str, name: str, start: Start) -> Started:
    start = msgspec.structs.replace(start, shared=start.shared or start.force)
    places = {checkout_of(bead.repo) for bead in spec.beads if not bead.branch}
    with entering(orchestrator, SWARM.name, places, run=run, shared=start.shared) as notes:
        started = create_owned(orchestrator, SWARM, spec, name, start.make_context(orchestrator, run), start.budget)
    # Nobody asked for these files: they are hidden like all that a run writes. Those of `orc swarm init` are a person's.
    exclude(orchestrator.settings.home, write_schemas(orchestrator.settings.home))
    return msgspec.structs.replace(started, notes=notes)


def _begun_with(bead: BeadSpec, specs: dict[str, BeadSpec]) -> BeadSpec:
    """Return the bead, beginning with the results of those it depends on that work in worktrees of the same repository."""
    needed = [specs[need] for need in bead.needs if need in specs]
    onto = tuple(other.branch for other in needed if bead.branch and other.branch and other.repo == bead.repo)
    return msgspec.structs.replace(bead, onto=onto) if onto else bead


def _without(bead: BeadSpec, done: set[str]) -> BeadSpec:
    needs = tuple(need for need in bead.needs if need not in done)
    return bead if needs == bead.needs else msgspec.structs.replace(bead, needs=needs)


def _notes(spec: SwarmSpec, done: int) -> Iterator[str]:
    if done:
        yield f"{say_count(done, 'bead')} of the file {'is' if done == 1 else 'are'} done already and left alone."
    places: dict[str, int] = {}
    for bead in spec.beads:
        places[bead.place] = places.get(bead.place, 0) + 1
    crowded = [place for place, count in places.items() if count > 1]
    if crowded and spec.max_agents > 1 and not spec.shared:
        where = crowded[0].partition("\0")[0]
        yield f"beads that share the working tree {where} are worked on one after another; --branch gives each its own."


def _check_startable(found: Found, *, force: bool) -> None:
    """Raise Refused for a bead that runs, is done, or has no attempts left."""
    run, bead, standing = found.run, found.bead, found.standing
    if not run.summary.ended:
        if standing in OVER:
            raise Refused(why=f"Bead {bead} belongs to run {run.id}, which has not ended; use `orc swarm retry {bead}`.")
        ways = f"`orc swarm watch {run.id}` follows it, `orc resume {run.id}` continues it, `orc swarm stop {bead}` stops it"
        raise Refused(why=f"Bead {bead} is {standing} in run {run.id}; {ways}.")
    if force:
        return
    if standing is BeadStanding.DONE:
        raise Refused(why=f"Bead {bead} is done (attempt {found.held.attempt}); --force dispatches it again.")
    if found.held.attempt >= found.held.limit and standing in OVER:
        way = f"`orc swarm retry {bead}` or --force tries again"
        made = say_count(found.held.limit, "attempt")
        raise Refused(why=f"Bead {bead} failed after {made}, its limit ({found.held.error}); {way}.")


def _check_trees(swarm: Swarm, beads: Sequence[BeadSpec], *, shared: bool) -> tuple[str, ...]:
    """Raise Refused where another live bead works in the same tree; answers with those on the same repositories."""
    mine = {bead.id for bead in beads}
    places = {bead.place: bead for bead in beads}
    repos = {bead.repo for bead in beads}
    beside: dict[str, None] = {}
    for run, other in swarm.live():
        if other.id in mine:
            continue
        if other.place in places and not shared:
            where = f"{other.repo}, branch {other.branch}" if other.branch else other.repo
            way = "give --branch for a worktree of its own, or --shared-tree to mix their work"
            raise Refused(why=f"Bead {other.id} (run {run.id}) works in the same tree ({where}); {way}.")
        if other.repo in repos:
            beside[other.id] = None
    return tuple(beside)[:50]


def _take_over(orchestrator: Orchestrator, run: StoredRun, beads: Sequence[str]) -> None:
    """Let the earlier run give the beads away: it prints their newest records no more."""
    if run.id != run.context.run:
        return
    owner = orchestrator.own(run.id)
    try:
        orchestrator.keep_books(run, Instruct(id=uuid.uuid4().hex, what="release", values={"beads": list(beads)}))
        orchestrator.settle(run)
    finally:
        owner.release()


def _refuse_foreign(orchestrator: Orchestrator, bead: str) -> None:
    """Raise Refused for a run of that name that is none of this workspace's beads."""
    other = orchestrator.store.run(bead)
    if other is not None and (other.system != SWARM.name or other.context.home != str(orchestrator.settings.home)):
        what = f"a {other.system} run" if other.system != SWARM.name else f"a bead of {other.context.home}"
        raise Refused(why=f"The id {bead} is in use: it is {what}; choose another one.")


class _Told(msgspec.Struct):
    """The part of a record that we did not write which counts here."""

    attempt: int = 1
    status: str | None = None


def _keep_foreign_records(orchestrator: Orchestrator, bead: str, *, force: bool) -> int:
    """Move records without a journal, as another tool left them, to the ended attempts; answers with their number.

    Those of a bead of ours are print-outs: what was changed in one is put aside when it is written again.
    """
    home, number = orchestrator.settings.home, 0
    files = {folder: home / folder / f"{bead}.json" for folder in (RUNS, RESULTS)}
    if not any(file.is_file() for file in files.values()):
        return 0
    told = {}
    for folder, file in files.items():
        try:
            told[folder] = typed.decode(read_bounded(file, REPORT_LIMIT_BYTES, root=home), _Told)
        except (OSError, msgspec.DecodeError):
            continue  # It is kept as it is, whatever stands in it.
    if any(one.status == "done" for one in told.values()) and not force:
        raise Refused(why=f"Bead {bead} is done by its records in {home / RUNS}; --force dispatches it again.")
    number = max((one.attempt for one in told.values()), default=1)
    for folder, file in files.items():
        if file.is_file():
            target = home / name_attempt(bead, number, "run" if folder == RUNS else "result")
            if not os.path.lexists(target):
                move_beneath(home, file, target)
    return number
