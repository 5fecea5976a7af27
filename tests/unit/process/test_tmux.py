"""A launch in a tmux session: the program decides what is alive, the session only shows it. Real tmux, a server per test."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_orchestrator.engine.launches import Order, Standing, Watch
from tests.unit.process.rig import ENV, STOPPED, ending_of, is_alive, make_launches, name, number_in, over, run_to_end, until

SESSION = "agent-bd-1"


@pytest.fixture
def sockets() -> Iterator[Path]:
    """Return the folder of the test's own tmux server's socket: a name of a socket is short."""
    folder = Path(tempfile.mkdtemp(prefix="orc-tmux-"))
    try:
        yield folder
    finally:
        tmux(folder, "kill-server")
        shutil.rmtree(folder)


def tmux(sockets: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**ENV, "TMUX_TMPDIR": str(sockets)}
    return subprocess.run(["tmux", *arguments], env=env, capture_output=True, text=True, check=False)


def in_session(cwd: Path, sockets: Path, script: str, *, stdin: Path | None = None) -> Order:
    env = {**ENV, "TMUX_TMPDIR": str(sockets), "HERE": str(cwd)}
    return Order(effect=name(), argv=("sh", "-c", script), env=env, cwd=cwd, stdin=stdin, terminal=SESSION)


def seen_in(sockets: Path) -> str:
    return tmux(sockets, "capture-pane", "-p", "-t", f"={SESSION}:").stdout


def views_of(folder: Path) -> list[int]:
    """Return the processes that show a launch in this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if b"surfaces.cli.pane" in words and str(folder).encode() in words:
            found.append(int(entry.name))
    return found


def has_session(sockets: Path) -> bool:
    return tmux(sockets, "has-session", "-t", f"={SESSION}").returncode == 0


def test_output_exit_code_input_and_environment_are_as_without_a_session(tmp_path: Path, sockets: Path) -> None:
    (tmp_path / "prompt").write_text("the prompt\n")
    script = 'cat; echo "$HERE"; pwd; test -t 1 || echo no terminal; echo oops >&2; exit 3'
    ending = run_to_end(tmp_path, in_session(tmp_path, sockets, script, stdin=tmp_path / "prompt"))
    assert (ending.exit_code, ending.cause) == (3, None)
    assert ending.out.read_text() == f"the prompt\n{tmp_path}\n{tmp_path}\nno terminal\n"
    assert ending.err.read_text() == "oops\n"


def test_a_person_sees_what_the_program_writes_and_the_session_ends_with_it(tmp_path: Path, sockets: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.start(in_session(tmp_path, sockets, 'echo hello person >&2; while [ ! -e "$HERE/go" ]; do sleep 0.01; done'))
        future = ending_of(launches, name())
        await until(lambda: "hello person" in seen_in(sockets))
        (tmp_path / "go").touch()
        assert (await over(future)).exit_code == 0
        await until(lambda: not has_session(sockets))

    asyncio.run(play())


def test_a_person_sees_the_transcript_of_a_client_and_no_escape_of_anyones(tmp_path: Path, sockets: Path) -> None:
    used = {"id": "1", "type": "command_execution", "command": "make all", "aggregated_output": "xy", "status": "completed"}
    stream = ({"type": "thread.started", "thread_id": "t"}, {"type": "item.completed", "item": used})
    (tmp_path / "stream").write_text("first\x1b[2J line\n" + "".join(f"{json.dumps(line)}\n" for line in stream))

    async def play() -> None:
        launches = make_launches(tmp_path)
        script = 'cat "$HERE/stream"; while [ ! -e "$HERE/go" ]; do sleep 0.01; done'
        launches.start(in_session(tmp_path, sockets, script))
        future = ending_of(launches, name())
        await until(lambda: "● exec_command make all · ok · 2 B" in seen_in(sockets))
        assert seen_in(sockets).startswith("first line\n")
        assert "thread.started" not in seen_in(sockets)
        (tmp_path / "go").touch()
        ending = await over(future)
        assert ending.out.read_bytes() == (tmp_path / "stream").read_bytes()

    asyncio.run(play())


def test_killing_the_view_loses_nothing(tmp_path: Path, sockets: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        script = 'echo before; while [ ! -e "$HERE/go" ]; do sleep 0.01; done; seq 100000; echo last >&2; exit 4'
        launches.start(in_session(tmp_path, sockets, script))
        future = ending_of(launches, name())
        await until(lambda: "before" in seen_in(sockets))
        views = views_of(tmp_path)
        assert views
        for pid in views:
            os.kill(pid, signal.SIGKILL)
        (tmp_path / "go").touch()
        ending = await over(future)
        assert (ending.exit_code, ending.err.read_text()) == (4, "last\n")
        assert ending.out.read_text().splitlines()[-1] == "100000"

    asyncio.run(play())


def test_killing_the_session_neither_ends_the_program_nor_loses_its_outcome(tmp_path: Path, sockets: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        script = 'echo before; echo $$ >"$HERE/at_work"; while [ ! -e "$HERE/go" ]; do sleep 0.01; done; echo after; exit 5'
        launches.start(in_session(tmp_path, sockets, script))
        future = ending_of(launches, name())
        await until(lambda: number_in(tmp_path / "at_work"))
        tmux(sockets, "kill-session", "-t", f"={SESSION}")
        assert not has_session(sockets)
        assert launches.standing(name(), same_boot=True) is Standing.ALIVE
        (tmp_path / "go").touch()
        ending = await over(future)
        assert (ending.exit_code, ending.cause, ending.out.read_text()) == (5, None, "before\nafter\n")

    asyncio.run(play())


def test_stopping_goes_to_the_programs_group_and_keeps_its_last_words(tmp_path: Path, sockets: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        script = """trap 'echo cleaning up; exit 7' TERM; echo $$ >"$HERE/at_work"; while :; do sleep 0.01; done"""
        launches.start(in_session(tmp_path, sockets, script))
        future = ending_of(launches, name(), Watch(grace_s=20))
        await until(lambda: number_in(tmp_path / "at_work"))
        launches.stop(name(), STOPPED)
        ending = await over(future)
        assert ending.cause == STOPPED
        assert (ending.exit_code, ending.out.read_text()) == (7, "cleaning up\n")
        await until(lambda: not has_session(sockets))

    asyncio.run(play())


def test_what_ignores_every_signal_is_killed_and_nothing_is_left(tmp_path: Path, sockets: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        script = """trap '' TERM INT; echo $$ >"$HERE/at_work"; while :; do sleep 0.01; done"""
        launches.start(in_session(tmp_path, sockets, script))
        future = ending_of(launches, name(), Watch(grace_s=0.3))
        await until(lambda: number_in(tmp_path / "at_work"))
        launches.stop(name(), STOPPED)
        assert (await over(future)).cause == STOPPED
        pid = number_in(tmp_path / "at_work")
        assert pid is not None
        await until(lambda: not is_alive(pid))

    asyncio.run(play())


def test_another_engine_adopts_it(tmp_path: Path, sockets: Path) -> None:
    async def play() -> None:
        first = make_launches(tmp_path)
        first.start(in_session(tmp_path, sockets, 'echo $$ >"$HERE/at_work"; while [ ! -e "$HERE/go" ]; do sleep 0.01; done'))
        await until(lambda: number_in(tmp_path / "at_work"))
        first.close()
        second = make_launches(tmp_path)
        assert second.standing(name(), same_boot=True) is Standing.ALIVE
        future = ending_of(second, name())
        (tmp_path / "go").touch()
        assert (await over(future)).exit_code == 0

    asyncio.run(play())


def test_a_session_that_a_person_keeps_open_gets_another_window(tmp_path: Path, sockets: Path) -> None:
    tmux(sockets, "new-session", "-d", "-s", SESSION, "cat")
    ending = run_to_end(tmp_path, in_session(tmp_path, sockets, "echo here"))
    assert (ending.exit_code, ending.out.read_text()) == (0, "here\n")
    assert has_session(sockets)


def test_without_a_session_nothing_is_started_and_it_says_why(tmp_path: Path, sockets: Path) -> None:
    broken = tmp_path / "bin" / "tmux"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho the server is out of order >&2\nexit 1\n")
    broken.chmod(0o755)
    order = in_session(tmp_path, sockets, 'touch "$HERE/ran"')
    order.env["PATH"] = f"{broken.parent}:{order.env['PATH']}"
    ending = run_to_end(tmp_path, order)
    assert ending.exit_code == 126
    assert ending.err.read_text() == f"tmux session {SESSION} cannot be used: the server is out of order\n"
    assert not (tmp_path / "ran").exists()
