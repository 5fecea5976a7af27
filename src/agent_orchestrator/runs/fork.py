"""Makes a new run that begins as another one was at a point of its journal, in trees and on branches of its own.

The rows up to the point are copied, with the new branches and folders in place of the old ones, in the transaction that
makes the run. The other run is only read, and may be going on meanwhile.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.effects import KeptTree, Tree, TreeReturn
from agent_orchestrator.core.events import Forked, TreeKept
from agent_orchestrator.core.ids import RunId, checked_id
from agent_orchestrator.core.inputs import Instruct
from agent_orchestrator.engine.closure import close
from agent_orchestrator.engine.journal import Folded, decode_events, encode_events, living_rows
from agent_orchestrator.errors import Refused, RunExists
from agent_orchestrator.git.repository import WORKTREES, checkout_of, common_dir, host_of, top_level
from agent_orchestrator.git.snapshots import find_commit
from agent_orchestrator.git.worktree import branch_of, folder_of
from agent_orchestrator.runs.directives import new_id
from agent_orchestrator.runs.hooks import hooks_of
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.points import Point, find_point
from agent_orchestrator.runs.returns import Past, Place, refuse_without_git
from agent_orchestrator.store.port import Append, NewRun, Row, StoredRun
from agent_orchestrator.systems import about, find_system

NAMES_BRANCH = ("branch", "branch_name", "into")
"""The fields of specifications and events that hold the name of a branch which a run works on or merges into."""
RENAMED = frozenset({*NAMES_BRANCH, "start", "onto", "repo"})


class ForkedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a fork."""

    run: StoredRun
    point: Point
    branches: tuple[str, ...]
    folders: tuple[str, ...]
    sessions: int
    """Sessions of agents that the fork may go on with as copies."""


def fork_run(orchestrator: Orchestrator, run: StoredRun, at: str, run_id: str | None = None) -> ForkedRun:
    """Make a run of another one as it was at a point; raises Refused, and RunExists."""
    directive = orchestrator.sign(run, Instruct(id=new_id(), what="fork", values={"at": at}))
    orchestrator.refuse_kept(run)
    refuse_without_git(run, "Forking")
    name = RunId(checked_id(run_id, "--run-id") if run_id is not None else uuid.uuid4().hex[:8])
    point = find_point(orchestrator, run, at)
    plan = _Fork(orchestrator, Past(orchestrator, run, point.seq), name)
    owner = orchestrator.own(name)
    try:
        if not _is_begun(orchestrator, name, run, point):
            plan.create(point, directive)
        orchestrator.settle(orchestrator.find(name))
    finally:
        owner.release()
    made = orchestrator.find(name)
    orchestrator.overviews().write(find_system(run.system), Path(made.context.home))
    return ForkedRun(
        run=made,
        point=point,
        branches=tuple(tree.branch for tree in plan.trees),
        folders=tuple(tree.folder for tree in plan.trees if tree.folder),
        sessions=len(plan.past.sessions()[0]),
    )


def _is_begun(orchestrator: Orchestrator, name: RunId, of: StoredRun, point: Point) -> bool:
    """Tell whether the same command made the run and was killed before its trees were there; raises RunExists for any other."""
    known = orchestrator.store.run(name)
    if known is None:
        return False
    begun = orchestrator.fold(known).state.doing.returning
    if isinstance(begun, Forked) and (begun.of, begun.at) == (of.id, point.seq):
        return True
    raise RunExists(run=name, status=known.summary.status)


class _Fork:
    """One fork before it is made: its places, and the names in them."""

    def __init__(self, orchestrator: Orchestrator, past: Past, name: RunId) -> None:
        self._orchestrator, self.past, self._name = orchestrator, past, name
        run = past.run
        self._at = past.trees()
        spec = msgspec.json.decode(orchestrator.store.spec(run.id))
        rows = [msgspec.json.decode(body) for seq, _, body in past.rows if seq <= past.seq]
        branches = {one for part in (spec, *rows) for one in _branches(part)}
        alone = "{run}" in about(run.system).state_file
        self.renamed = {one: f"orc/{name}/{one.removeprefix(f'orc/{run.context.run}/')}" for one in branches}
        checkouts = hooks_of(run.system).places(orchestrator, run) | (set() if alone else {checkout_of(run.context.workdir)})
        self._checkouts = {one: self._worktree(one) for one in sorted(checkouts)}
        if alone and not (branches - {kept.branch for kept in self._at.values()}):
            own = {kept.branch for place, kept in self._at.items() if not place.branch}
            self.renamed |= {branch: branch_of(name) for branch in own}
        self.trees = tuple(self._trees())
        self._folders = {old: str(new) for old, new in self._checkouts.items()}
        self._spec, self._rows = spec, rows
        self._alone = alone

    def _worktree(self, checkout: str) -> Path:
        home = top_level(self.past.home) or self.past.home
        same = common_dir(host_of(Path(checkout))) == common_dir(home)
        return (home if same else Path(checkout)) / WORKTREES / self._name

    def _trees(self) -> Iterator[TreeReturn]:
        for checkout, folder in self._checkouts.items():
            kept = self._checkout(checkout)
            if not kept.commit or not kept.head:
                why = kept.problem or "the repository has no commit"
                raise Refused(why=f"The tree of that point cannot be had: {why}.")
            repo = str(folder.parents[2])
            yield TreeReturn(repo=repo, folder=str(folder), branch=self._new(kept.branch), kept=kept)
        mine = {self._new(self._checkout(one).branch) for one in self._checkouts}
        for place, kept in self._at.items():
            new = self._new(place.branch)
            if not place.branch or new in mine or not kept.head:
                continue
            apart = kept.commit != kept.head and bool(kept.commit)
            tree = Tree(repo=str(self._checkouts.get(place.repo, place.repo)), branch=new)
            where = str(folder_of(Path(self._home()), self._name, tree)) if apart else ""
            yield TreeReturn(repo=place.repo, folder=where, branch=new, kept=kept)

    def _checkout(self, checkout: str) -> KeptTree:
        """Return the tree of a checkout at the point; one in which no unit works is taken without what is uncommitted."""
        found = self._at.get(Place(checkout, ""))
        if found is not None:
            return found
        later = (one.kept for one in self.past.events(after=True) if isinstance(one, TreeKept))
        known = (*self.past.folded.state.doing.kept.values(), *later)  # At the start none was kept yet: the first one is it.
        own = [one for one in known if self.past.place(one) == Place(checkout, "")]
        if not own:
            why = f"Run {self.past.run.id} kept no trees up to that point: an older version of orc drove it."
            raise Refused(why=why)
        branch = own[0].branch
        merged = [kept.head for place, kept in self._at.items() if kept.target and place.branch == branch]
        head = merged[-1] if merged else own[0].head
        return KeptTree(commit=head, head=head, branch=branch)

    def _new(self, branch: str) -> str:
        return self.renamed.get(branch) or f"orc/{self._name}/{branch or 'work'}"

    def _home(self) -> str:
        """Return where the fork's files are printed: its own worktree, where a home has the files of one run at a time."""
        context = self.past.run.context
        if "{run}" in about(self.past.run.system).state_file:
            return context.home
        return self._moved(context.home)

    def _moved(self, folder: str) -> str:
        checkout = checkout_of(folder)
        new = self._checkouts.get(checkout)
        if new is not None and not Path(folder).is_dir():
            return str(new)  # A worktree that was taken away since.
        return str(new / Path(folder).resolve().relative_to(checkout)) if new is not None else folder

    def create(self, point: Point, directive: Instruct) -> None:
        """Make the run durable; its trees follow."""
        orchestrator, past, run = self._orchestrator, self.past, self.past.run
        store, system = orchestrator.store, past.system
        now_us = max(orchestrator.clock.now_us(), past.folded.at_us)
        context = msgspec.structs.replace(
            run.context,
            run=self._name,
            home=self._home(),
            workdir=self._moved(run.context.workdir),
            created_us=now_us,
            shared_tree=False,
        )
        for tree in self.trees:
            if tree.branch and find_commit(Path(tree.repo), f"refs/heads/{tree.branch}") is not None:
                raise Refused(why=f"The branch {tree.branch} exists already; give the fork another --run-id.")
        spec, rows = self._rewritten()
        folded = Folded(system, system.fresh(typed.decode(spec, system.spec_type), context), 0, now_us)
        for seq, at_us, body in living_rows(rows, system):
            folded.add_living(seq, at_us, decode_events(system, body))
        shared, stale = past.sessions()
        forked = Forked(
            of=run.id, at=point.seq, point=point.name, trees=self.trees, shared=shared, stale=stale, who=directive.who
        )
        folded.apply([forked], now_us)
        events = [forked, *close(folded, now_us, f"forked from {run.id} at {point.name}")]
        summary = folded.summary()
        first = Append(run=self._name, expected_seq=point.seq, at_us=now_us, body=encode_events(events), summary=summary)
        new = NewRun(system=system.name, name=run.name, context=context, spec=spec, summary=summary)
        store.create(new, first, rows)

    def _rewritten(self) -> tuple[bytes, list[Row]]:
        """Return specification and rows with the fork's own branches and folders; where nothing changes, as they were."""
        names = self.renamed | {old: new for old, new in self._folders.items() if old != new}
        for kept in self.past.folded.state.doing.kept.values():
            names.setdefault(kept.branch, self._new(kept.branch))
        spec = msgspec.json.encode(_rename(self._spec, names))
        rows = [
            (seq, at_us, msgspec.json.encode(_rename(plain, names)))
            for (seq, at_us, _), plain in zip(self.past.rows, self._rows, strict=False)
        ]
        return spec, rows


def _branches(plain: Any) -> Iterator[str]:
    """Yield the names of branches that a specification or an event holds, but for where trees were kept."""
    if isinstance(plain, dict):
        for key, value in plain.items():
            if key in NAMES_BRANCH and isinstance(value, str) and value:
                yield value
            elif key not in ("kept", "trees"):
                yield from _branches(value)
    elif isinstance(plain, list):
        for one in plain:
            yield from _branches(one)


def _rename(plain: Any, names: dict[str, str]) -> Any:
    if isinstance(plain, dict):
        return {key: _renamed(value, names) if key in RENAMED else _rename(value, names) for key, value in plain.items()}
    return [_rename(one, names) for one in plain] if isinstance(plain, list) else plain


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    return [_renamed(one, names) for one in value] if isinstance(value, list) else _rename(value, names)
