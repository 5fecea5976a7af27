"""Runs of due times, made on a worker: the branch is cloned as it is then, and the schedule's command queues the run in there.

One is made at a time, by a process of its own that may outlive the worker: only who has the schedule by the store's word gets its
run queued, and that moves the schedule on. What a killed one left is deleted by whoever makes the run of the same due time next.
"""

from __future__ import annotations

import hashlib
import secrets
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agent_orchestrator.cluster.claims import Host
from agent_orchestrator.cluster.cron import find_latest_us, find_next_us, name_due, show_time
from agent_orchestrator.config.store_address import REPOSITORY_VARIABLE, ROOT_VARIABLE, STORE_VARIABLE
from agent_orchestrator.core.units import US
from agent_orchestrator.errors import STORE_PASSES, OrcError, Unavailable, UsageError
from agent_orchestrator.git import homes
from agent_orchestrator.git.fences import RunRemote, find_head_branch
from agent_orchestrator.git.snapshots import find_commit
from agent_orchestrator.runs.exits import COMPLETED, USAGE
from agent_orchestrator.store.postgres.schedules import Firing, Schedule

AGAIN_US = 10 * US
MAKE_S = 900
"""A command that has not queued its run after so long is ended, and tried again."""
SAID_CHARS = 2_000
PREFIX = "orc: "
RUN, FIRING = "{run}", "{firing}"


def add_words(path: Sequence[str], id_flag: str, more: Sequence[str]) -> list[str]:
    """Return the words of a command with what a worker fills in: the id of the run, and the right to queue it."""
    return [*path, "--queue", id_flag, RUN, "--firing", FIRING, *more]


def show_words(words: Sequence[str]) -> list[str]:
    """Return the words as they were given."""
    at = words.index("--queue")
    return [*words[:at], *words[at + 5 :]]


def fill_words(words: Sequence[str], run: str, firing: Firing) -> list[str]:
    """Return the command that queues the run of a due time."""
    filled, at = list(words), words.index("--queue")
    filled[at + 2], filled[at + 4] = run, f"{firing.schedule}.{firing.claim}.{firing.next_us}"
    return filled


def read_firing(given: str) -> Firing:
    """Return the right to queue a run, as a worker passed it on."""
    try:
        schedule, claim, next_us = given.split(".")
        return Firing(schedule=int(schedule), claim=uuid.UUID(claim), next_us=int(next_us))
    except ValueError:
        raise UsageError(detail="--firing is for workers, which queue the runs of schedules by it.") from None


class DueRuns:
    """Makes the runs of due times of a pool, while the worker drives others."""

    def __init__(self, host: Host, pool: str) -> None:
        self._host, self._pool = host, pool
        self._making: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Tell whether a run is being made."""
        return self._making is not None and self._making.is_alive()

    def look(self) -> None:
        """Make the run of a schedule that is due, unless one is being made; raises StoreAway."""
        if self.busy:
            return
        claim = uuid.uuid4()
        schedule = self._host.cluster.schedules.take_due(claim, self._pool)
        if schedule is not None:
            self._making = threading.Thread(target=self._make, args=(schedule, claim), name="due", daemon=True)
            self._making.start()

    def _make(self, schedule: Schedule, claim: uuid.UUID) -> None:
        schedules, now_us = self._host.cluster.schedules, 0
        firing = Firing(schedule=schedule.key, claim=claim, next_us=schedule.next_us)
        try:
            now_us = self._host.cluster.read_clock_us()
            due_us = schedule.begun_us or max(schedule.next_us, find_latest_us(schedule.cron, schedule.zone, now_us))
            next_us = find_next_us(schedule.cron, schedule.zone, due_us)
            firing = Firing(schedule=schedule.key, claim=claim, next_us=next_us)
            begun = schedules.begin(firing, due_us)
            if begun is None:
                return
            # Killed before it is written that the due time is skipped, another worker begins it, and asks again.
            if begun.overlap is not None:
                raise UsageError(detail=f"No run of {show_time(due_us, schedule.zone)}, because {begun.overlap} has not ended.")
            self._queue(schedule, firing, name_due(schedule.name, due_us))
        except STORE_PASSES as error:
            self._host.say(f"schedule {schedule.name}: {error}")  # It is still ours: the next look takes it again.
        except (OrcError, OSError) as error:
            self._host.say(f"schedule {schedule.name}: {error}")
            try:
                if isinstance(error, UsageError):
                    schedules.skip(firing, str(error))
                else:
                    schedules.retry(firing, str(error), now_us + AGAIN_US)
            except STORE_PASSES as away:
                self._host.say(f"schedule {schedule.name}: {away}")

    def _queue(self, schedule: Schedule, firing: Firing, run: str) -> None:
        """Let the command queue the run; raises UsageError where it can never, and Unavailable where it may later."""
        with self._cloned(schedule, run) as clone:
            known = {STORE_VARIABLE: self._host.cluster.url, REPOSITORY_VARIABLE: schedule.repository}
            environ = {**self._host.settings.environ, **known, ROOT_VARIABLE: str(self._host.homes.root)}
            place, said = clone / schedule.folder, clone / ".git" / "said"
            words = [sys.executable, "-m", "agent_orchestrator.cli", *fill_words(schedule.words, run, firing)]
            with said.open("wb") as out:
                done = subprocess.Popen(
                    words, cwd=place if place.is_dir() else clone, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out
                )
                try:
                    code = done.wait(MAKE_S)
                except subprocess.TimeoutExpired:
                    done.kill()
                    code = done.wait()
            if code == COMPLETED:
                self._host.say(f"schedule {schedule.name}: run {run} is queued")
                return
            why = _find_reason(said.read_text("utf-8", "replace")) or f"its command ended with {code}"
            raise UsageError(detail=why) if code == USAGE else Unavailable(detail=why)

    @contextmanager
    def _cloned(self, schedule: Schedule, run: str) -> Iterator[Path]:
        """Clone the repository as its branch is now; the clone is deleted again."""
        root, environ = self._host.homes.root, self._host.settings.environ
        name = hashlib.sha256(schedule.remote.encode()).hexdigest()[:16]
        remote = homes.open_mirror(root / "mirrors" / name, schedule.remote, environ)
        clone = root / "homes" / f".due~{secrets.token_hex(4)}"
        branch, commit = _find_start(remote, schedule, run)
        try:
            homes.clone_shared(remote.where, clone, remote.url)
            homes.check_out(clone, branch, commit)
            yield clone
        finally:
            homes.remove_home(clone)


def _find_start(remote: RunRemote, schedule: Schedule, run: str) -> tuple[str, str]:
    """Return the branch of a schedule and its head; raise Unavailable where the remote has no such branch."""
    branch = schedule.branch or find_head_branch(remote)
    homes.fetch_mirror(remote, run)
    commit = find_commit(remote.where, f"refs/heads/{branch}") if branch else None
    if commit is None:
        named = (
            f"{remote.shown} has no branch {branch}" if branch else f"The HEAD of {remote.shown} names no branch that is there"
        )
        raise Unavailable(detail=f"{named}; add the schedule again with --branch NAME.")
    return branch, commit


def _find_reason(said: str) -> str:
    """Return the sentence of a command that failed."""
    lines = [line.removeprefix(PREFIX) for line in said.splitlines() if line.startswith(PREFIX)]
    return lines[-1][:SAID_CHARS] if lines else ""
