"""The warden: it ends a worker that does not beat any more, then its agents, and nobody else's."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from agent_orchestrator.agents.adapter import Ending
from agent_orchestrator.cluster.warden import LEASE, Lease, ensure_warden, forget_lease, watch, write_lease
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.engine.clock import boottime_s
from agent_orchestrator.engine.process.ends import list_living, read_start
from tests.acceptance.rig import wait_until
from tests.unit.process import rig

TTL_S = 15.0
STUBBORN = "trap '' TERM; echo at work >begun; while :; do sleep 1; done"


@contextmanager
def worker(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that stands for a worker."""
    with subprocess.Popen(["sleep", "1000"], cwd=tmp_path) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def agent(tmp_path: Path, script: str, *, run: str = "run1") -> Iterator[EffectId]:
    """Start an agent of a run, which is killed in the end."""
    launches, effect = rig.make_launches(tmp_path), rig.name(run=run)
    folder = tmp_path / run
    folder.mkdir()
    launches.start(rig.sh(folder, script, effect=effect))
    wait_until(lambda: (folder / "begun").exists())
    try:
        yield effect
    finally:
        pid = rig.number_in(folder / "pid")
        if pid is not None and rig.is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def lease_of(pid: int, until_s: float, *runs: Path) -> Lease:
    return Lease(pid=pid, start=read_start(pid), until_s=until_s, ttl_s=TTL_S, runs=tuple(str(run) for run in runs))


def keep(folder: Path, lease: Lease) -> None:
    (folder / LEASE).write_bytes(msgspec.json.encode(lease))


def test_a_frozen_worker_and_its_agents_are_ended_and_nobody_elses(tmp_path: Path) -> None:
    mine, other = f"echo $$ >pid; {STUBBORN}", f"echo $$ >pid; {STUBBORN}"
    with worker(tmp_path) as frozen, agent(tmp_path, mine) as effect, agent(tmp_path, other, run="run2"):
        frozen.send_signal(signal.SIGSTOP)
        runs = tmp_path / "launches"
        keep(tmp_path, lease_of(frozen.pid, boottime_s(), runs / "run1"))
        assert watch(tmp_path)
        assert frozen.wait(30) == -signal.SIGKILL
        assert list_living([runs / "run1"]) == []
        assert len(list_living([runs / "run2"])) == 1
        assert not (tmp_path / LEASE).exists()
        ending = _collect(tmp_path, effect)
        assert ending.exit_code is None
        assert ending.cause is not None
        assert ending.cause.kind is FailureKind.LOST, "it is no failure of the agent's own"


def _collect(tmp_path: Path, effect: EffectId) -> Ending:
    async def play() -> Ending:
        launches = rig.make_launches(tmp_path)
        ending = await rig.over(rig.ending_of(launches, effect))
        launches.close()
        return ending

    return asyncio.run(play())


def test_a_worker_that_beats_is_left_alone_also_one_that_was_started_anew(tmp_path: Path) -> None:
    with worker(tmp_path) as first, worker(tmp_path) as second, agent(tmp_path, f"echo $$ >pid; {STUBBORN}"):
        now, beats = [100.0], iter((first, first, second, second))
        runs = tmp_path / "launches" / "run1"
        keep(tmp_path, lease_of(first.pid, 100.0 + TTL_S, runs))

        def pause(seconds: float) -> None:
            now[0] += TTL_S / 3
            beating = next(beats, None)
            if beating is None:
                forget_lease(tmp_path)  # it leaves, and lets go of its agents first
            else:
                keep(tmp_path, lease_of(beating.pid, now[0] + TTL_S, runs))

        assert not watch(tmp_path, lambda: now[0], pause)
        assert first.poll() is None
        assert second.poll() is None
        assert len(list_living([runs])) == 1


def test_a_process_that_got_the_number_of_a_dead_worker_is_not_killed(tmp_path: Path) -> None:
    with worker(tmp_path) as other:
        lease = msgspec.structs.replace(lease_of(other.pid, boottime_s()), start="another time")
        keep(tmp_path, lease)
        assert watch(tmp_path)
        assert other.poll() is None


def test_the_warden_is_a_process_of_its_own_that_outlives_whoever_started_it(tmp_path: Path) -> None:
    with worker(tmp_path) as frozen, agent(tmp_path, f"echo $$ >pid; {STUBBORN}"):
        frozen.send_signal(signal.SIGSTOP)
        keep(tmp_path, lease_of(frozen.pid, boottime_s() + 1000, tmp_path / "launches" / "run1"))
        assert ensure_warden(tmp_path, os.environ)
        assert not ensure_warden(tmp_path, os.environ), "one is enough"
        keep(tmp_path, lease_of(frozen.pid, boottime_s(), tmp_path / "launches" / "run1"))
        assert frozen.wait(60) == -signal.SIGKILL
        wait_until(lambda: not (tmp_path / LEASE).exists())
        assert list_living([tmp_path / "launches" / "run1"]) == []
        assert (tmp_path / "warden.log").read_text() == ""


def test_a_worker_writes_its_lease_down_with_what_it_drives(tmp_path: Path) -> None:
    write_lease(tmp_path, 12.5, TTL_S, ("a", "b"))
    lease = msgspec.json.decode((tmp_path / LEASE).read_bytes(), type=Lease)
    assert (lease.pid, lease.until_s, lease.runs) == (os.getpid(), 12.5, ("a", "b"))
    assert lease.start == read_start(os.getpid()) != ""
