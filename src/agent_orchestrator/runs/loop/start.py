"""Starts, finds, resumes and judges loops: what `orc loop` and `aiwg` talk to.

Whoever looks at loops first sees to it that a loop whose process and agent are gone is recorded as crashed.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.effects import AgentChoice, RunAgent, RunCheck
from agent_orchestrator.core.inputs import Instruct, Resume
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.units import say_count
from agent_orchestrator.engine.launches import Standing
from agent_orchestrator.engine.redact import Redactor
from agent_orchestrator.errors import AmbiguousRun, LoopExists, Refused, RunBusy, UsageError
from agent_orchestrator.git.branches import make_branch
from agent_orchestrator.git.repository import checkout_of
from agent_orchestrator.git.snapshots import Backup, is_clean, restore_snapshot
from agent_orchestrator.git.worktree import add_worktree
from agent_orchestrator.runs.budget import refuse_unmetered
from agent_orchestrator.runs.exclusion import hide_files
from agent_orchestrator.runs.lock import alone
from agent_orchestrator.runs.loop.files import FoundFiles, LoopFile, find_files, keep_originals, name_of, say_file
from agent_orchestrator.runs.loop.memory import recall
from agent_orchestrator.runs.loop.options import read_loop_id, refuse_unable
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.secrets import make_redactor
from agent_orchestrator.runs.settings import reread
from agent_orchestrator.runs.start import NOTHING_SPECIAL, Change, Start, Started, create_owned
from agent_orchestrator.runs.trees import entering
from agent_orchestrator.store.port import StoredRun, Which
from agent_orchestrator.systems.loop.decide.directives import changed_spec
from agent_orchestrator.systems.loop.decide.outcomes import LOST
from agent_orchestrator.systems.loop.registry import LEGACY, LOOPS_MAX, active_loops
from agent_orchestrator.systems.loop.spec import LoopSpec, loop_id, named_loop
from agent_orchestrator.systems.loop.state import LoopState
from agent_orchestrator.systems.loop.system import LOOP
from agent_orchestrator.systems.loop.transitions import LoopStatus

KILLED = 128
"""Exit codes from here on say that a signal ended the program."""


def loops(orchestrator: Orchestrator) -> list[StoredRun]:
    """All loops of the repository, newest first, those that crashed recorded as such."""
    known = orchestrator.runs(Which(system=LOOP.name))
    seen = [look_at(orchestrator, run) for run in known]
    if any(run.summary.facts.get("pid") and orchestrator.owner(run) is None for run in seen):
        # A process that was killed could not say so: the registry must not name it any longer.
        orchestrator.overviews().write(LOOP, orchestrator.settings.home)
    return seen


def look_at(orchestrator: Orchestrator, run: StoredRun) -> StoredRun:
    """The loop as it stands; one whose process and agent are gone is recorded as crashed first."""
    if run.summary.ended or run.summary.status == "paused" or orchestrator.owner(run) is not None:
        return run
    try:
        owner = orchestrator.own(run.id)
    except RunBusy:
        return run
    try:
        detail = _lost(orchestrator, run)
        if detail is not None:
            orchestrator.keep_books(run, Instruct(id=uuid.uuid4().hex, what="crashed", values={"detail": detail}))
            orchestrator.settle(run)
    finally:
        owner.release()
    return orchestrator.store.run(run.id) or run


def _lost(orchestrator: Orchestrator, run: StoredRun) -> str | None:
    """Say what was lost with the process that drove the loop; None when the loop can go on."""
    state = orchestrator.fold(run).state
    if not state.driven or not state.lifecycle.running:
        return None
    launches = orchestrator.launches()
    for effect in state.doing:
        if isinstance(effect, (RunAgent, RunCheck)):
            same_boot = state.doing.boot_of(effect.unit) in (None, orchestrator.boot)
            if launches.standing(effect.id, same_boot=same_boot) is not Standing.OVER:
                return None  # It lives, or never started: whoever resumes adopts or starts it.
            codes = [int(file.suffix[1:]) for file in launches.directory(effect.id).glob("exit.*") if file.suffix[1:].isdigit()]
            if any(code < KILLED for code in codes):
                return None  # It ended by itself meanwhile: whoever resumes collects it.
            what = "the agent" if isinstance(effect, RunAgent) else "the check"
            return f"{LOST}: {what} of iteration {state.number} left no result"
    return None


def start_loop(orchestrator: Orchestrator, spec: LoopSpec, start: Start = NOTHING_SPECIAL) -> Started:
    """Create a loop, unless too many are active; raises LoopExists for an id that is in use."""
    home = orchestrator.settings.home
    given = read_loop_id(start.run_id) if start.run_id is not None else None
    hide_files(orchestrator)
    if spec.commit and not start.worktree and not is_clean(home):
        raise UsageError(detail=f"--commit needs a clean tree, and {home} has uncommitted changes; commit or stash them first.")
    with alone(orchestrator.settings.folder, "loops"):
        notes = _check_room(orchestrator, force=start.force)
        spec = msgspec.structs.replace(spec, remembered=recall(orchestrator, spec.memory))
        secrets = Redactor(orchestrator.settings.secrets(passed=start.pass_env))  # The id becomes the name of a branch.
        run = given if given is not None else loop_id(secrets.redact_text(spec.task), uuid.uuid4().hex[:8])
        if (known := orchestrator.store.run(run)) is not None:
            raise LoopExists(run=run, status=known.summary.status)
        if (orchestrator.settings.folder / "launches" / run).exists():
            raise Refused(why=f"Outputs of an earlier loop {run} are left whose journal is gone; choose another --loop-id.")
        places = set() if start.worktree else {checkout_of(str(home))}
        with entering(orchestrator, LOOP.name, places, run=run, shared=start.shared) as beside:
            context = start.make_context(orchestrator, run, add_worktree(home, run) if start.worktree else None)
            started = _create(orchestrator, spec, context, start.budget)
    return msgspec.structs.replace(started, notes=(*notes, *beside))


def _create(orchestrator: Orchestrator, spec: LoopSpec, context: Context, budget: Budget) -> Started:
    keep_originals(orchestrator.settings.home, context.run)
    started = create_owned(orchestrator, LOOP, spec, name_of(spec), context, budget)
    hide_files(orchestrator, started.run)
    orchestrator.overviews().write(LOOP, orchestrator.settings.home)
    return started


def _check_room(orchestrator: Orchestrator, *, force: bool) -> tuple[str, ...]:
    active = active_loops(loops(orchestrator))
    if len(active) < LOOPS_MAX:
        return ()
    listed = ", ".join(f"{run.id} ({run.summary.facts['status']})" for run in active[:20])
    if not force:
        way = "abort one, or give --force to go beyond it"
        raise Refused(why=f"{len(active)} loops are active, and {LOOPS_MAX} are the limit: {listed}; {way}.")
    return (f"{len(active)} loops are active already, the limit is {LOOPS_MAX}; --force starts one more.",)


def search_loop(orchestrator: Orchestrator, given: str | None, *, or_last: bool = False) -> StoredRun | LoopFile:
    """Return the loop that is meant, looked at; left out, the one that is active, or, to look at, the last that was.

    A loop that is only in a file comes after those with a journal, and is left there.
    """
    if given is not None:
        return _search_named(orchestrator, given)
    known = loops(orchestrator)
    active = active_loops(known)
    if len(active) > 1:
        listed = ", ".join(f"{run.id} ({run.summary.facts['status']})" for run in active)
        raise Refused(why=f"Several loops are active, name one: {listed}.")
    if active:
        return orchestrator.find(active[0].id)
    found = unknown_files(orchestrator)
    waiting = [one for one in found.loops if not one.ended]
    if len(waiting) == 1:
        return waiting[0]
    if waiting:
        listed = ", ".join(f"{one.taken.name} ({say_file(orchestrator, one)})" for one in waiting)
        raise Refused(why=f"Several loops are in files, name one: {listed}.")
    if or_last and known:
        last = max(known, key=lambda run: (run.updated_us, run.context.created_us, run.id))
        return orchestrator.find(last.id)
    if or_last and found.loops:
        return found.loops[-1]  # That of the legacy file, where there is one.
    if found.faults:
        raise found.faults[0]
    raise Refused(why=f"No loop is active in {orchestrator.settings.home}; name one, `orc loop list --all` shows them.")


def _search_named(orchestrator: Orchestrator, given: str) -> StoredRun | LoopFile:
    named = named_loop(given)
    begun = orchestrator.runs(Which(begins=given, most=1))
    meant = given if begun else named if orchestrator.known(named) is not None else None
    if meant is None:
        found = unknown_files(orchestrator)
        files = [one for one in found.loops if one.taken.name in (given, named)]
        files = files or [one for one in found.loops if one.taken.name.startswith(given)]
        if len(files) == 1:
            return files[0]
        if files:
            raise AmbiguousRun(run=given, matches=", ".join(one.taken.name for one in files[:5]))
        broken = [fault for fault in found.faults if Path(str(fault.values["path"])).parent.name == given]
        if broken:
            raise broken[0]
    return look_at(orchestrator, orchestrator.find_of(LOOP.name, meant or given, "loop"))


def unknown_files(orchestrator: Orchestrator) -> FoundFiles:
    """Find the loops of the repository that are only in files."""
    found = find_files((orchestrator.settings.home / LEGACY).parent)
    unknown = tuple(one for one in found.loops if orchestrator.known(one.taken.name) is None)
    return msgspec.structs.replace(found, loops=unknown)


def succeed(orchestrator: Orchestrator, old: StoredRun, change: Change) -> Started:
    """Start a loop that goes on with the work of one that failed, was aborted or crashed; the tree is left as it is."""
    orchestrator.sign(old, Resume(id=uuid.uuid4().hex))
    owner = orchestrator.own(old.id)  # Two people who resume it at once must not start two successors.
    try:
        kept: Budget = orchestrator.fold(old).state.doing.budget
        spec = _successor(orchestrator, old, change)
        read = reread(orchestrator, spec, change.permissions)
        start = Start(budget=kept.override(change.budget), force=change.force, shared=change.shared)
        started = _start_in(orchestrator, spec.with_assigned(read.agents), old, start)
        started = msgspec.structs.replace(started, notes=(*started.notes, *read.notes, *read.changes))
        orchestrator.keep_books(old, Instruct(id=uuid.uuid4().hex, what="recovered", values={"by": started.run.id}))
        orchestrator.settle(old)
    finally:
        owner.release()
    return started


def check_going_on(orchestrator: Orchestrator, run: StoredRun, change: Change) -> None:
    """Raise when a loop's agents, as they will be, would escape its budget or cannot do what its mode asks of them."""
    state: LoopState = orchestrator.fold(run).state
    spec = _changed(state, change)
    refuse_unable(spec)
    if "agent" in change.values or change.budget.limits_cost or change.budget.limits_tokens:
        refuse_unmetered(state.doing.budget.override(change.budget), spec.choices)


def _changed(state: LoopState, change: Change) -> LoopSpec:
    try:
        spec = changed_spec(state.spec, {name: value for name, value in change.values.items() if name != "agent"})
    except (msgspec.ValidationError, ValueError) as error:
        raise Refused(why=f"Loop {state.context.run} cannot continue: {error}.") from None
    agent = change.values.get("agent")
    return spec if agent is None else msgspec.structs.replace(spec, agent=typed.convert(agent, AgentChoice))


def _successor(orchestrator: Orchestrator, old: StoredRun, change: Change) -> LoopSpec:
    """Return what the successor is asked to do; raises Refused when there cannot be one."""
    state: LoopState = orchestrator.fold(old).state
    if state.status is LoopStatus.COMPLETED:
        orchestrator.settle(
            old
        )  # A process that died, or a power cut, may have left its files behind or torn: they are written again.
        raise Refused(why=f"Loop {old.id} is completed; there is nothing to resume.")
    if state.recovered_by is not None:
        raise Refused(why=f"Loop {old.id} has a successor already: {state.recovered_by}; resume that one.")
    spec = _changed(state, change)
    if state.iteration >= spec.max_iterations:
        why = f"it made {say_count(state.iteration, 'iteration')}, and {spec.max_iterations} is its limit; raise --max-iterations"
        raise Refused(why=f"Loop {old.id} cannot continue: {why}.")
    if spec.agent is None:
        raise Refused(why=f"Loop {old.id} has no agent: give --agent, --agent-command or --rehearse.")
    return msgspec.structs.replace(spec, carried=state.carry_over(), budget_usd=None)


def _start_in(orchestrator: Orchestrator, spec: LoopSpec, old: StoredRun, start: Start) -> Started:
    home, workdir = orchestrator.settings.home, Path(old.context.workdir)
    with alone(orchestrator.settings.folder, "loops"):
        notes = _check_room(orchestrator, force=start.force)
        run = loop_id(make_redactor(orchestrator, old).redact_text(spec.task), uuid.uuid4().hex[:8])
        shared = start.shared or old.context.shared_tree
        context = msgspec.structs.replace(old.context, run=run, created_us=orchestrator.clock.now_us(), shared_tree=shared)
        if not workdir.is_dir():
            context = msgspec.structs.replace(context, workdir=str(home))
            notes = (*notes, f"the worktree {workdir} is gone; the loop continues in {home}.")
        with entering(orchestrator, LOOP.name, {checkout_of(context.workdir)}, run=run, shared=shared) as beside:
            started = _create(orchestrator, spec, context, start.budget)
    return msgspec.structs.replace(started, notes=(*notes, *beside))


def best_branch(run: str) -> str:
    """Return the branch that a loop's best iteration is put on."""
    return f"orc-best/{run}"


def restore_best(orchestrator: Orchestrator, run: StoredRun) -> tuple[str, int]:
    """Puts a branch at the best iteration's tree; answers with the branch and the iteration."""
    state: LoopState = orchestrator.fold(run).state
    best = state.best
    if best is None or best.saved is None:
        why = state.untracked or "no iteration has ended yet"
        raise Refused(why=f"Loop {run.id} has no best iteration to restore: {why}.")
    branch = best_branch(run.id)
    make_branch(Path(run.context.workdir), branch, best.saved.commit)
    return branch, best.number


def revert(orchestrator: Orchestrator, run: StoredRun) -> str:
    """Brings the tree back to what the loop found; answers with the ref that keeps what was there."""
    orchestrator.sign(run, Instruct(id=uuid.uuid4().hex, what="revert"))
    state: LoopState = orchestrator.fold(run).state
    if state.start is None:
        why = state.untracked or "the tree was not saved yet"
        raise Refused(why=f"Loop {run.id} cannot be reverted: {why}.")
    workdir = Path(run.context.workdir)
    scratch = orchestrator.settings.folder / "launches" / run.id / "revert"
    message = f"{run.id}: before it was reverted"
    backup = Backup(f"refs/orc/{run.id}/reverted", message, orchestrator.clock.now_us())
    return restore_snapshot(workdir, scratch, state.start.commit, backup)
