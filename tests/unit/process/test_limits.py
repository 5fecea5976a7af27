"""Limits under which a launch runs: time, silence, output."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.engine.kinship import read_ps
from agent_orchestrator.engine.launches import Watch
from tests.unit.process.rig import ending_of, make_launches, name, over, run_to_end, sh, until


def test_a_program_that_runs_too_long_is_stopped(tmp_path: Path) -> None:
    ending = run_to_end(tmp_path, sh(tmp_path, "while :; do echo busy; sleep 0.02; done"), Watch(timeout_s=0.3))
    assert ending.cause is not None
    assert ending.cause.kind is FailureKind.TIMEOUT
    assert ending.cause.message == "Stopped after running for 0.3s, its time limit."


def test_a_silent_program_is_stopped_by_its_idle_limit(tmp_path: Path) -> None:
    ending = run_to_end(tmp_path, sh(tmp_path, "echo one; sleep 60"), Watch(idle_timeout_s=0.3))
    assert ending.cause is not None
    assert ending.cause.kind is FailureKind.IDLE
    assert ending.cause.message == "Stopped after 0.3s without output, its idle limit."


def test_a_program_that_used_up_what_is_left_of_its_time_is_stopped_for_the_budget(tmp_path: Path) -> None:
    ending = run_to_end(tmp_path, sh(tmp_path, "sleep 60"), Watch(budget_s=0.3, timeout_s=30.0))
    assert ending.cause is not None
    assert ending.cause.kind is FailureKind.BUDGET
    assert ending.cause.message == "Stopped: it ran out of time after 0.3s."


def test_a_program_that_goes_on_writing_is_not_idle(tmp_path: Path) -> None:
    script = "i=0; while [ $i -lt 20 ]; do echo $i >&2; i=$((i+1)); sleep 0.1; done"
    ending = run_to_end(tmp_path, sh(tmp_path, script), Watch(idle_timeout_s=1.0))
    assert (ending.exit_code, ending.cause) == (0, None)


def test_a_flood_is_stopped(tmp_path: Path) -> None:
    ending = run_to_end(tmp_path, sh(tmp_path, "exec yes"), Watch(output_limit_bytes=2**20))
    assert ending.cause is not None
    assert ending.cause.kind is FailureKind.OUTPUT_LIMIT
    assert ending.cause.message == "Stopped after writing more than 1 MiB, its output limit."


def test_a_flood_on_the_error_output_counts_too(tmp_path: Path) -> None:
    ending = run_to_end(tmp_path, sh(tmp_path, "exec yes >&2"), Watch(output_limit_bytes=2**20))
    assert ending.cause is not None
    assert ending.cause.kind is FailureKind.OUTPUT_LIMIT


def test_many_programs_under_one_watch_each_end_on_their_own(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        futures = []
        for launch in range(1, 101):
            launches.start(sh(tmp_path, f"exit {launch}", effect=name(launch)))
            futures.append(ending_of(launches, name(launch)))
        assert [(await over(future)).exit_code for future in futures] == list(range(1, 101))

    asyncio.run(play())


def test_a_done_that_raises_does_not_keep_others_from_their_end(tmp_path: Path) -> None:
    async def play() -> None:
        loop = asyncio.get_running_loop()
        raised: list[object] = []
        loop.set_exception_handler(lambda _, context: raised.append(context["exception"]))
        launches = make_launches(tmp_path)
        launches.start(sh(tmp_path, "true"))
        launches.start(sh(tmp_path, "true", effect=name(2)))

        def fail(_: object) -> None:
            raise ZeroDivisionError

        launches.watch(name(), Watch(), fail)
        assert (await over(ending_of(launches, name(2)))).exit_code == 0
        await until(lambda: raised)
        assert (await over(ending_of(launches, name(1)))).exit_code == 0
        assert [type(error) for error in raised] == [ZeroDivisionError]

    asyncio.run(play())


def test_a_process_listing_without_proc_gives_pids_and_nonces() -> None:
    listing = "  12 sh -c trap orc /launch 256 /dev/null / abc123 sleep 60\n 13 sleep 60 ORC_LAUNCH=outer:abc123\nnonsense\n"
    found = dict(read_ps(listing))
    assert "abc123" in found[12]
    assert {"outer", "abc123"} <= set(found[13])
