"""Takes a run back to a point of its past: state, working trees and branches together.

Nothing is rewritten: the journal gets one more row, which makes the rows since the point history. What is there is kept
under refs first, and what was spent stays spent.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from agent_orchestrator.core.effects import KeptTree, TreeReturn
from agent_orchestrator.core.events import Event, LimitsSet, TreeKept, TreesReturned, WentBack
from agent_orchestrator.core.inputs import Instruct
from agent_orchestrator.engine.closure import close
from agent_orchestrator.engine.journal import decode_events, encode_events
from agent_orchestrator.errors import Refused
from agent_orchestrator.git.repository import host_of
from agent_orchestrator.git.tree_returns import refuse_checked_out, refuse_in_the_way, refuse_moved_on, refuse_unready
from agent_orchestrator.runs.departure import wait_until_left
from agent_orchestrator.runs.directives import new_id
from agent_orchestrator.runs.follow import pause
from agent_orchestrator.runs.interrupted import settle_interrupted
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.points import Point, find_point
from agent_orchestrator.runs.returns import Past, Place, refuse_without_git
from agent_orchestrator.runs.stop import pause_run
from agent_orchestrator.runs.takeover import is_attached
from agent_orchestrator.runs.trees import enter_again
from agent_orchestrator.store.port import Append, StoredRun
from agent_orchestrator.systems import find_system


class WentBackTo(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a rewind."""

    point: Point
    commit: str
    """The commit that is checked out in the run's own tree; '' where it has none."""
    before: int
    """The last row of what was left behind: the number to go back to, to undo it."""
    kept: tuple[str, ...]
    """The refs that keep what was there."""


def rewind_run(orchestrator: Orchestrator, run: StoredRun, to: str, *, now: bool = False) -> WentBackTo:
    """Take a run back to a point; with `now`, stop what is at work first. Raises Refused, and RunBusy while it is driven."""
    directive = orchestrator.sign(run, Instruct(id=new_id(), what="rewind", values={"to": to}))
    orchestrator.refuse_kept(run)
    find_point(orchestrator, run, to)
    if now:
        _stop(orchestrator, run)
    wait_until_left(orchestrator, run)
    owner = orchestrator.own(run.id)
    try:
        run = orchestrator.find(run.id)
        if orchestrator.launches().living(run.id):
            raise Refused(
                why=f"Agents of run {run.id} are still alive; stop them with `orc pause {run.id} --now`, or give --now."
            )
        if is_attached(orchestrator, run):
            raise Refused(why=f"A person has the session of an agent of run {run.id} (`orc attach`); leave it first.")
        refuse_without_git(run, "Going back")
        enter_again(orchestrator, run)
        begun = orchestrator.fold(run).state.doing.returning
        run = settle_interrupted(orchestrator, run)
        point = find_point(orchestrator, run, to)
        past = Past(orchestrator, run, point.seq)
        before = past.now.seq
        if isinstance(begun, WentBack) and begun.to == point.seq:
            before = _row_of(past, begun) - 1  # The same command was killed, and is done now.
        else:
            _go_back(orchestrator, past, point, directive)
            orchestrator.settle(orchestrator.find(run.id))
        commit = next((kept.head for kept in past.trees().values()), "")
        return WentBackTo(point=point, commit=commit, before=before, kept=_kept(orchestrator, past, before))
    finally:
        owner.release()
        orchestrator.overviews().write(find_system(run.system), Path(run.context.home))


def _row_of(past: Past, back: WentBack) -> int:
    """Return the newest row that says that the run went back."""
    return next(seq for seq, _, body in reversed(past.rows) if back in decode_events(past.system, body)[:1])


def _kept(orchestrator: Orchestrator, past: Past, before: int) -> tuple[str, ...]:
    """Return the refs that keep what was there."""
    rows = orchestrator.store.rows(past.run.id, before)
    events = (event for _, _, body in rows for event in decode_events(past.system, body))
    return next((event.kept for event in events if isinstance(event, TreesReturned)), ())


def _stop(orchestrator: Orchestrator, run: StoredRun) -> None:
    if not run.summary.ended and (orchestrator.owner(run) is not None or orchestrator.launches().living(run.id)):
        pause_run(orchestrator, run, "asked to go back", now=True)
        while orchestrator.owner(run) is not None:
            pause()


def _go_back(orchestrator: Orchestrator, past: Past, point: Point, directive: Instruct) -> None:
    """Write down that the run is at the point again; every reason not to is found before."""
    run, folded = past.run, past.folded
    trees = past.trees()
    returns = tuple(_returns(past, trees))
    for one in returns:
        _refuse(one)
    now_us = max(orchestrator.clock.now_us(), past.now.at_us)
    back = WentBack(
        to=point.seq,
        point=point.name,
        generation=past.now.state.context.generation + 1,
        worked_us=past.now.state.doing.worked_us,
        trees=returns,
        stale=past.sessions()[1],
        who=directive.who,
    )
    budget = past.now.state.doing.budget
    facts: list[Event] = [back]
    facts += [LimitsSet(limits=budget)] if budget != folded.state.doing.budget else []
    known = {past.place(one) for one in folded.state.doing.kept.values()}
    facts += [TreeKept(kept=kept) for place, kept in trees.items() if place not in known]
    folded.apply(facts, now_us)
    closing = close(folded, now_us, f"went back to {point.name}")
    body = encode_events([*facts, *closing])
    part = Append(run=run.id, expected_seq=past.now.seq, at_us=now_us, body=body, summary=folded.summary())
    for problem in orchestrator.store.append([part]):
        if problem is not None:
            raise problem


def _refuse(one: TreeReturn) -> None:
    """Raise Refused where a tree or branch cannot be brought back without losing something."""
    repo, folder = Path(one.repo), Path(one.folder) if one.folder else None
    if one.kept is None:
        refuse_checked_out(repo, one.branch, folder)
    elif folder is not None and folder.is_dir():
        refuse_unready(folder, one.kept)
    elif folder is not None:
        refuse_checked_out(repo, one.branch or one.kept.branch, folder)
    else:
        if one.kept.target:
            refuse_moved_on(repo, one.branch, one.newest, one.kept.head)
        refuse_in_the_way(repo, one.branch, one.kept.head)


def _returns(past: Past, trees: dict[Place, KeptTree]) -> Iterator[TreeReturn]:
    """Yield what has to be done to each tree and branch that the run has or had."""
    newest = past.newest()
    if not trees and not newest:
        raise Refused(why=f"Run {past.run.id} kept no trees up to that point: an older version of orc drove it.")
    for place in dict.fromkeys([*trees, *newest]):
        kept, last = trees.get(place), newest.get(place)
        folder = past.folder(place)
        is_target = (kept or last or KeptTree()).target
        unsaved = kept is not None and kept.commit not in ("", kept.head)
        has_tree = not place.branch or (not is_target and (unsaved or (folder / ".git").exists()))
        yield TreeReturn(
            repo=str(host_of(Path(place.repo))),
            folder=str(folder) if has_tree else "",
            branch=place.branch,
            kept=kept,
            newest=last.commit if last is not None else "",
            found=past.found(place) if kept is not None and has_tree else (),
        )
