"""A run that is handed to workers: made here as a worker will find it, its start pushed, then queued.

It is started like any other, by an orchestrator in a home that has only what is committed, so that what a worker would miss is
missed now. The home is deleted again: the remote has the start, and the store everything else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from agent_orchestrator.cluster.homes import Homes, Submission
from agent_orchestrator.config import REPO_FILE, load_settings
from agent_orchestrator.config.defaults import find_root, load_configuration
from agent_orchestrator.config.store_address import REPOSITORY_VARIABLE, STORE_VARIABLE, StoreAddress
from agent_orchestrator.core.ids import RunId, checked_id
from agent_orchestrator.core.inputs import Resume, SetLimits
from agent_orchestrator.core.who import Surface
from agent_orchestrator.errors import MissingPath, OrcError, Refused, Unavailable
from agent_orchestrator.git.branches import find_branch
from agent_orchestrator.git.fences import RunRemote, forget_run
from agent_orchestrator.git.ownership import list_uncommitted
from agent_orchestrator.git.remotes import hide_credentials, is_place, list_push_urls
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.git.snapshots import find_head
from agent_orchestrator.runs.directives import new_id
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.remote import pick_remote
from agent_orchestrator.runs.start import Change, Started
from agent_orchestrator.runs.stores import keep_name, require_shared
from agent_orchestrator.runs.takeup import refuse_unkept
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.store.postgres import PostgresStore
from agent_orchestrator.store.postgres.cluster import Cluster
from agent_orchestrator.store.postgres.schedules import Firing

POOL = "default"
TRUSTED = "ORC_TRUSTED_PATHS"
FILES_SHOWN = 3


class Queued(msgspec.Struct, frozen=True, kw_only=True):
    """The queue of a run, and how soon it is taken."""

    pool: str = POOL
    priority: int = 0
    firing: Firing | None = None
    """The due time of a schedule that it is the run of."""


class Submitting(msgspec.Struct, frozen=True, kw_only=True):
    """A submission under way."""

    orchestrator: Orchestrator
    """In the run's home."""
    submission: Submission
    address: StoreAddress
    queued: Queued
    notes: tuple[str, ...]

    def hand_over(self, started: Started) -> None:
        """Push the start of a run that was just made, and queue it; one that cannot be pushed is deleted again.

        That of a schedule is left: by now it may be the one that somebody else has made for the same due time.
        """
        run, firing = started.run, self.queued.firing
        try:
            self.submission.push(run.id)
        except OrcError:
            started.owner.release()
            if firing is None:
                self.orchestrator.store.delete(run.id)
            raise
        started.owner.release()
        if firing is None:
            queue_run(self.orchestrator, run, self.queued)
        else:
            self._fire(run, firing)

    def _fire(self, run: StoredRun, firing: Firing) -> None:
        cluster = Cluster(self.address.url)
        try:
            fired = cluster.schedules.fire(firing, run.id, self.address.repository, self.queued.pool, self.queued.priority)
        finally:
            cluster.close()
        if fired is None:
            self.orchestrator.store.delete(run.id)
            raise Refused(why=f"The schedule of run {run.id} was removed.")
        if not fired:
            raise Unavailable(detail=f"Another worker makes run {run.id} of the same schedule.")

    def clear(self, run: str) -> bool:
        """Delete what an attempt at the same due time left of a run before it was queued; False where there is no such thing.

        Raises RunBusy while somebody who may live is at it.
        """
        store = self.orchestrator.store
        assert isinstance(store, PostgresStore), "workers share a store"
        if self.queued.firing is None or store.run(run) is None or store.placed(RunId(run))[1]:
            return False
        owner = self.orchestrator.own(RunId(run))
        try:
            forget_run(self.submission.remote, run)
            store.delete(RunId(run))
        finally:
            owner.release()
        return True


@contextmanager
def submitting(orchestrator: Orchestrator, queued: Queued) -> Iterator[Submitting]:
    """Make the home of a run that is about to be started for workers, and stand in it; it is deleted in the end."""
    address, settings = require_shared(orchestrator), orchestrator.settings
    load_configuration(settings)  # What the user has not agreed to is refused here, where it stands.
    top = top_level(settings.home)
    start = find_head(settings.home) if top is not None else None
    if top is None or start is None:
        raise Refused(why=f"Workers get a commit, and {settings.home} has none; commit first.")
    if settings.home.resolve() != top.resolve():
        raise Refused(why=f"Workers clone whole repositories; give --repo {top}.")
    checked_id(queued.pool, "--pool")
    cluster = Cluster(address.url)
    try:
        workers = [one for one in cluster.list_workers() if one.pool == queued.pool]
    finally:
        cluster.close()
    # Of those who are gone, the one who was there last: another may be meant to come back.
    root = Path(max(workers, key=lambda one: one.lease_s).root) if workers else find_root(settings)
    remote = RunRemote(where=top, url=find_url(top), environ=settings.environ)
    place = Homes(root, settings.environ).new_place()
    submission = Submission(remote=remote, start=start, branch=find_branch(top) or "", home=place)
    here = Path.cwd()
    try:
        submission.make_home()
        made = _stand_in(orchestrator, address, place, top, here)
        keep_name(settings, address)
        notes = (*_note_uncommitted(top), *_note_unserved(queued.pool, any(one.lease_s > 0 for one in workers)))
        with made:
            yield Submitting(orchestrator=made, submission=submission, address=address, queued=queued, notes=notes)
    except OrcError as error:
        # The home is deleted: people know it as the repository that it was made of, where a file may be that it lacks.
        why = [f"Note: {note}" for note in _note_uncommitted(top)] if isinstance(error, MissingPath) else []
        error.args = (" ".join([str(error).replace(str(place), str(top)), *why]),)
        raise
    except PermissionError as error:
        raise Refused(why=f"{root} is where workers keep runs, and it cannot be written here: {error.strerror}.") from None
    finally:
        os.chdir(here)
        submission.remove()


def queue_run(orchestrator: Orchestrator, run: StoredRun, queued: Queued) -> None:
    """Put a run that nobody drives into the queue of a pool; raises Refused while somebody does."""
    store = orchestrator.store
    assert isinstance(store, PostgresStore), "workers share a store"
    if not store.leases.queue(run.id, queued.pool, priority=queued.priority):
        raise Refused(why=f"Run {run.id} is driven already, by {orchestrator.owner(run)}.")


def _stand_in(given: Orchestrator, address: StoreAddress, home: Path, top: Path, here: Path) -> Orchestrator:
    """Return an orchestrator in a home, with the store and the user's word of where the run is started."""
    environ = {**given.settings.environ, STORE_VARIABLE: address.url, REPOSITORY_VARIABLE: address.repository}
    if _read(home / REPO_FILE) == _read(given.settings.home / REPO_FILE):
        environ[TRUSTED] = ":".join(one for one in (environ.get(TRUSTED, ""), str(home)) if one)
    inside = here.resolve().is_relative_to(top.resolve())
    place = home / here.resolve().relative_to(top.resolve()) if inside else home
    os.chdir(place if place.is_dir() else home)
    return Orchestrator(settings=load_settings(str(home), environ), surface=Surface.CLI, say=given.say)


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def find_url(top: Path) -> str:
    """Return the address that the start is pushed to, and workers clone from; raise Refused for one with credentials in it."""
    url = list_push_urls(top, pick_remote(top, None))[0]
    if is_place(url):
        return str((top / url).resolve())
    if hide_credentials(url) != url:
        why = f"The remote is at {hide_credentials(url)}, with credentials in its address, which would be kept with the run"
        raise Refused(why=f"{why}; let a credential helper know them, here and on the workers.")
    return url


def _note_uncommitted(top: Path) -> tuple[str, ...]:
    found = list_uncommitted(top)
    if not found:
        return ()
    more = f" and {len(found) - FILES_SHOWN} more" if len(found) > FILES_SHOWN else ""
    return (f"not committed, so no worker gets it: {', '.join(found[:FILES_SHOWN])}{more}.",)


def _note_unserved(pool: str, served: bool) -> tuple[str, ...]:
    return () if served else (f"no worker serves pool {pool} now; the run waits until `orc worker --pool {pool}` does.",)


def queue_resting(orchestrator: Orchestrator, run: StoredRun, change: Change, queued: Queued | None) -> Queued:
    """Let workers go on with a run that rests, in another pool where one is given; returns where it is queued.

    What is asked of the run stands in its inbox: whoever takes it up decides with that. Raises Refused for what only a
    process on the run's own host can do.
    """
    require_shared(orchestrator)
    if not run.context.remote:
        raise Refused(why=f"Run {run.id} was started to be driven in {run.context.home}: continue it there, without --queue.")
    if change.adopt or change.edits is not None or change.publish is not None or change.permissions.any or change.shared:
        raise Refused(why=f"Run {run.id} is driven by workers: only its limits and budget can be changed on the way.")
    store = orchestrator.store
    assert isinstance(store, PostgresStore), "workers share a store"
    _, pool, priority = store.placed(run.id)
    where = queued or Queued(pool=pool or POOL, priority=priority)
    if change.budget.is_set:
        refuse_unkept(orchestrator.fold(run), change.budget)
        orchestrator.send(run, SetLimits(id=new_id(), limits=change.budget))
    if change.values or not orchestrator.fold(run).state.lifecycle.running:
        orchestrator.send(run, Resume(id=new_id(), changes=change.values))
    if not store.leases.queue(run.id, where.pool, priority=where.priority) and orchestrator.owner(run) is None:
        raise Refused(why=f"Run {run.id} could not be queued; try again.")
    return where
