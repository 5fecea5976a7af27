"""A program that has said that it is done and does not exit is stopped, and that is no failure."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from agent_orchestrator.agents.claude import AGENT
from agent_orchestrator.agents.stream import ResultWatch
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.engine.launches import Watch
from tests.unit.process.rig import STOPPED, ending_of, is_alive, make_launches, name, order, over, run_to_end, sh, until

GRACE_S = 0.2
RESULT = '{"type":"result","subtype":"success","is_error":false,"result":"done"}'


def limits(tmp_path: Path, idle_timeout_s: float | None = None) -> Watch:
    out = make_launches(tmp_path).directory(name()) / "out"
    return Watch(finished=ResultWatch(out, AGENT.read), result_grace_s=GRACE_S, grace_s=1.0, idle_timeout_s=idle_timeout_s)


def test_a_program_that_hangs_after_its_result_is_stopped_and_not_blamed(tmp_path: Path) -> None:
    script = f"sleep 1000 & echo $! >child; echo '{RESULT}'; wait"
    ending = run_to_end(tmp_path, sh(tmp_path, script), limits(tmp_path))
    assert (ending.after_result, ending.cause, ending.exit_code) == (True, None, 128 + signal.SIGTERM)
    assert not is_alive(int((tmp_path / "child").read_text()))


def test_one_that_ignores_the_signal_is_killed_and_not_lost(tmp_path: Path) -> None:
    script = f"trap '' TERM; echo '{RESULT}'; while :; do sleep 0.05; done"
    ending = run_to_end(tmp_path, sh(tmp_path, script), limits(tmp_path))
    assert (ending.after_result, ending.cause) == (True, None)


def test_a_quiet_program_is_not_looked_at(tmp_path: Path) -> None:
    def look() -> bool:
        raise AssertionError("nothing was written, so there is nothing to look at")

    ending = run_to_end(tmp_path, sh(tmp_path, "exec sleep 1000"), Watch(finished=look, idle_timeout_s=0.3))
    assert ending.cause is not None
    assert ending.cause.kind is FailureKind.IDLE


def test_a_program_that_exits_after_its_result_is_left_alone(tmp_path: Path) -> None:
    ending = run_to_end(tmp_path, sh(tmp_path, f"echo '{RESULT}'; exit 3"), limits(tmp_path))
    assert (ending.after_result, ending.cause, ending.exit_code) == (False, None, 3)


def test_a_result_that_is_not_a_whole_line_is_none(tmp_path: Path) -> None:
    script = f"printf %s '{RESULT}'; exec sleep 1000"
    ending = run_to_end(tmp_path, sh(tmp_path, script), limits(tmp_path, idle_timeout_s=0.8))
    assert not ending.after_result
    assert ending.cause is not None


def test_a_result_that_is_taken_back_is_none(tmp_path: Path) -> None:
    out = make_launches(tmp_path).directory(name()) / "out"
    looks = Watch(finished=lambda: not out.read_text().endswith("more\n"), result_grace_s=GRACE_S, grace_s=1.0)
    ending = run_to_end(tmp_path, sh(tmp_path, "echo done; sleep 0.1; echo more; sleep 0.6; exit 3"), looks)
    assert (ending.after_result, ending.cause, ending.exit_code) == (False, None, 3)


def test_output_after_the_result_gives_it_more_time(tmp_path: Path) -> None:
    script = f"echo '{RESULT}'; for i in 1 2 3 4 5 6 7 8; do sleep 0.05; echo $i; done; exit 0"
    ending = run_to_end(tmp_path, sh(tmp_path, script), limits(tmp_path))
    assert (ending.after_result, ending.exit_code) == (False, 0)


def test_an_adopted_program_that_hangs_after_its_result_is_stopped_too(tmp_path: Path) -> None:
    async def play() -> None:
        first = make_launches(tmp_path)
        first.start(sh(tmp_path, f"echo '{RESULT}'; exec sleep 1000"))
        await until(lambda: (first.directory(name()) / "out").exists())
        first.close()
        second = make_launches(tmp_path)
        ending = await over(ending_of(second, name(), limits(tmp_path)))
        second.close()
        assert (ending.after_result, ending.cause) == (True, None)

    asyncio.run(play())


def test_an_engine_that_dies_while_stopping_it_leaves_word_of_why(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.start(order(tmp_path, sys.executable, "-c", f"print('{RESULT}', flush=True); import time; time.sleep(1000)"))
        folder = launches.directory(name())
        ending_of(launches, name(), limits(tmp_path))
        await until((folder / "hung").exists)
        launches.close()
        after = make_launches(tmp_path)
        ending = await over(ending_of(after, name()))
        after.close()
        assert (ending.after_result, ending.cause) == (True, None)

    asyncio.run(play())


def test_a_stop_that_was_asked_for_stays_a_stop(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.start(sh(tmp_path, f"echo '{RESULT}'; exec sleep 1000"))
        future = ending_of(launches, name())
        await until(lambda: (launches.directory(name()) / "out").exists())
        launches.stop(name(), STOPPED)
        ending = await over(future)
        launches.close()
        assert (ending.after_result, ending.cause) == (False, STOPPED)

    asyncio.run(play())
