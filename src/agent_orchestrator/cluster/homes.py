"""The homes of runs on a worker's host: made from the remote that a run names, pushed back, and deleted when they are done.

    <root>/mirrors/<remote>    the objects of a remote, shared by the homes of its runs
    <root>/homes/<place>       the repository of one run: the same path on every host, because a run's facts have it

Whoever had the run before tells by the epoch in `.git/orc/home.json`: a home that this host left last is used as it is, so that
agents which live on are adopted; any other one is made again from the remote.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.limits import STOP_GRACE_S
from agent_orchestrator.core.system import Context
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.clock import SystemClock
from agent_orchestrator.engine.files import write_whole
from agent_orchestrator.engine.process.ends import end_launches
from agent_orchestrator.errors import Refused, Unavailable
from agent_orchestrator.git import homes
from agent_orchestrator.git.agent_trees import WORKING
from agent_orchestrator.git.branches import find_branch
from agent_orchestrator.git.fences import Fence, RunRemote, list_refs, push_fenced, raise_fence, run_refs

MARK, LAUNCHES = ".git/orc/home.json", ".git/orc/launches"
MARK_BYTES_MAX = 65_536
OLD_S = 86_400
PLACE_BYTES = 6


class HomeMark(msgspec.Struct, frozen=True, kw_only=True):
    """The run that a home belongs to, and the epoch under which this host had it last."""

    repository: str
    run: str
    epoch: int
    made: str = ""
    """Tells this home from others that were made at the same path: what is known of launches lies in it."""


class Homes:
    """All homes below one root."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self.root, self._environ = root, environ

    def new_place(self) -> Path:
        """Return a place for the home of a new run."""
        return self.root / "homes" / secrets.token_hex(PLACE_BYTES)

    def sweep(self, is_needed: Callable[[HomeMark], bool]) -> list[str]:
        """Delete homes that nobody goes on with, and what killed processes left of others; return the runs."""
        found = []
        for folder in self._list_homes():
            mark = read_mark(folder)
            if mark is None:
                if _is_old(folder):
                    homes.remove_home(folder)
            elif not is_needed(mark):
                homes.remove_home(folder)
                found.append(mark.run)
        return found

    def _list_homes(self) -> list[Path]:
        try:
            return sorted((self.root / "homes").iterdir())
        except FileNotFoundError:
            return []

    def open(self, context: Context, epoch: int) -> OpenHome:
        """Make sure of the home of a run that this process drives under an epoch; raises Fenced, Refused and Unavailable."""
        home = Path(context.home)
        if home.parent != self.root / "homes":
            why = f"The home of run {context.run} is {home}, and this worker keeps homes in {self.root}/homes: start it with"
            raise Refused(why=f"{why} --root {home.parent.parent}.")
        name = hashlib.sha256(context.remote.encode()).hexdigest()[:16]
        remote = homes.open_mirror(self.root / "mirrors" / name, context.remote, self._environ)
        # From here on nobody else can push, and what is read stays true.
        fence = raise_fence(remote, context.run, epoch)
        opened = OpenHome(home, remote, context.run, fence, list_refs(remote, f"{run_refs(context.run)}*"))
        mark = read_mark(home)
        if mark is None or mark.epoch not in (epoch, epoch - 1):
            # Also where it was ours, and we died before we could say so. Nobody would know of its agents any more.
            end_launches([home / LAUNCHES / context.run], STOP_GRACE_S)
            homes.fetch_mirror(remote, context.run)
            opened.make()
        else:
            opened.made = mark.made
            opened.settle(mark.repository)
        return opened


class OpenHome:
    """The home of a run under one epoch, and what its remote has of it."""

    def __init__(self, folder: Path, remote: RunRemote, run: str, fence: Fence, pushed: Mapping[str, str]) -> None:
        self.folder, self.run, self.epoch = folder, run, fence.epoch
        self._remote, self._fence, self._pushed = remote, fence, dict(pushed)
        self._alone = threading.Lock()
        self.made = ""
        """Tells it from other homes of the run that were at this path."""
        self.is_new = False
        """True where it was made just now: the trees that the run kept are still to be brought back."""

    def make(self) -> None:
        """Make the home from the mirror, with the branches and kept trees that were pushed."""
        start = self._start()
        homes.clone_shared(self._remote.where, self.folder, self._remote.url)
        homes.take_refs(self._remote.where, self.folder, self.run)
        branch = self._fence.branch
        homes.check_out(self.folder, branch, self._pushed.get(f"{run_refs(self.run)}{homes.HEADS}{branch}", start))
        self.made, self.is_new = secrets.token_hex(PLACE_BYTES), True

    def settle(self, repository: str) -> None:
        """Write down whose the home is, and under which epoch, once it is whole."""
        file = self.folder / MARK
        mark = HomeMark(repository=repository, run=self.run, epoch=self.epoch, made=self.made)
        write_whole(self.folder, file, msgspec.json.encode(mark))
        self.is_new = False

    def push(self) -> None:
        """Push every branch and kept tree that the remote does not have; raises Fenced and Shortage."""
        with self._alone:
            found = homes.list_own_refs(self.folder, self.run)
            ours = {name for name in self._pushed if name.startswith((f"{run_refs(self.run)}{homes.HEADS}", self._kept))}
            changes: dict[str, str | None] = {name: at for name, at in found.items() if self._pushed.get(name) != at}
            self._move({**changes, **dict.fromkeys(ours - found.keys())})

    def push_working(self) -> None:
        """Push the trees of agents at work, and nothing else: their branches are no facts yet; raises Fenced and Shortage."""
        with self._alone:
            place, found = f"{self._kept}{WORKING}", homes.list_own_refs(self.folder, self.run)
            self._move({name: at for name, at in found.items() if name.startswith(place) and self._pushed.get(name) != at})

    def push_result(self) -> str | None:
        """Push the branch with the result, `orc/RUN`, and return its name; None where the run has changed nothing."""
        with self._alone:
            result = homes.find_result(self.folder, self.run, self._fence.branch, self._start())
            name = f"refs/heads/orc/{self.run}"
            if result is None:
                return None
            if self._pushed.get(name) != result:
                # Under a name of ours, too: people delete branches when they have merged them.
                self._move({name: result, f"{run_refs(self.run)}{homes.RESULT}": result})
        return f"orc/{self.run}"

    def remove(self) -> None:
        """Delete the home: the remote has all of it."""
        homes.remove_home(self.folder)

    @property
    def _kept(self) -> str:
        return f"{run_refs(self.run)}{homes.KEPT}"

    def _start(self) -> str:
        start = self._pushed.get(f"{run_refs(self.run)}{homes.START}")
        if start is None:
            raise Unavailable(detail=f"{self._remote.shown} has no start of run {self.run}: {run_refs(self.run)}start.")
        return start

    def _move(self, changes: Mapping[str, str | None]) -> None:
        if not changes:
            return
        self._fence = push_fenced(self._remote, self.run, self._fence, changes, homes.objects_of(self.folder))
        for name, commit in changes.items():
            if commit is None:
                self._pushed.pop(name, None)
            else:
                self._pushed[name] = commit


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is about to be submitted: the commit that it begins at, the branch, and the remote that both are pushed to."""

    remote: RunRemote
    start: str
    branch: str
    home: Path

    def make_home(self) -> None:
        """Make the run's home here, as a worker will find it: only what is committed."""
        homes.clone_shared(self.remote.where, self.home, self.remote.url)
        homes.check_out(self.home, self.branch, self.start)

    def push(self, run: str) -> None:
        """Push the start of the run, and the branches that starting it made, with its first fence; raises Unavailable and Fenced.

        May be repeated.
        """
        name = f"{run_refs(run)}{homes.START}"
        if list_refs(self.remote, name).get(name) == self.start:
            return
        made = homes.list_own_refs(self.home, run)
        fence = Fence(branch=find_branch(self.home) or "")
        push_fenced(self.remote, run, fence, {name: self.start, **made}, homes.objects_of(self.home))

    def remove(self) -> None:
        """Delete the home: a worker makes its own."""
        homes.remove_home(self.home)


def read_mark(home: Path) -> HomeMark | None:
    """Return whose a home is; None where there is none, or only a part of one."""
    try:
        return typed.decode(read_bounded(home / MARK, MARK_BYTES_MAX, root=home), HomeMark)
    except (OSError, msgspec.DecodeError):
        return None


def _is_old(folder: Path) -> bool:
    """Tell whether nobody has touched a folder for a day: one that is being made is not whole, too."""
    try:
        return SystemClock().now_us() / US - folder.stat().st_mtime > OLD_S
    except OSError:
        return False
