"""The start of a program: what it gets, what it does not get, and what is said when it cannot start."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.engine.launches import CannotStart, Standing
from agent_orchestrator.engine.process import folder as folders
from agent_orchestrator.engine.process.launches import refusal
from agent_orchestrator.errors import Shortage
from tests.faults import preload
from tests.unit.process.rig import STOPPED, ending_of, make_launches, name, order, over, run_to_end, sh, until


def test_the_exit_code_is_the_programs_own_and_both_streams_are_kept(tmp_path: Path) -> None:
    ending = run_to_end(tmp_path, sh(tmp_path, "echo said; echo wrong >&2; exit 7"))
    assert (ending.exit_code, ending.cause, ending.warnings) == (7, None, ())
    assert ending.out.read_text() == "said\n"
    assert ending.err.read_text() == "wrong\n"
    assert 0 < ending.started_us <= ending.ended_us


def test_a_program_ended_by_a_signal_has_an_exit_code_above_128(tmp_path: Path) -> None:
    assert run_to_end(tmp_path, sh(tmp_path, "kill -KILL $$")).exit_code == 128 + signal.SIGKILL


def test_nothing_in_an_argument_is_ever_run_or_split(tmp_path: Path) -> None:
    odd = ["$(touch pwned)", "`touch pwned`", "a b\nc", '"; touch pwned; "', "-n", "", "*", "\\", "é\udcff"]
    show = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(os.fsencode(word) for word in sys.argv[1:]))"
    ending = run_to_end(tmp_path, order(tmp_path, sys.executable, "-c", show, *odd))
    assert ending.out.read_bytes().split(b"\0") == [os.fsencode(word) for word in odd]
    assert not (tmp_path / "pwned").exists()


def test_odd_but_valid_names_make_a_directory_each(tmp_path: Path) -> None:
    effect = name(run="0-a..b_", unit="9.-x")
    ending = run_to_end(tmp_path, sh(tmp_path, "echo here", effect=effect))
    assert ending.out == tmp_path / "launches" / "0-a..b_" / "9.-x~i0.a1.l1.agent" / "out"
    assert ending.out.read_text() == "here\n"


def test_a_root_with_spaces_quotes_and_dollars_is_only_a_path(tmp_path: Path) -> None:
    odd = tmp_path / "a b'\"$(touch pwned)"
    odd.mkdir()
    ending = run_to_end(odd, sh(odd, "pwd"))
    assert ending.out.read_text() == f"{odd}\n"
    assert not list(tmp_path.rglob("pwned"))


def test_standard_input_is_the_file_given_or_empty(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.md"
    prompt.write_text("do it\nwell")
    given = run_to_end(tmp_path, order(tmp_path, "cat", stdin=prompt))
    assert given.out.read_text() == "do it\nwell"
    empty = run_to_end(tmp_path, order(tmp_path, "cat", effect=name(2)))
    assert (empty.exit_code, empty.out.read_text()) == (0, "")


def test_the_program_works_in_its_directory_with_the_environment_given_and_nothing_else_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "secret")
    ending = run_to_end(tmp_path, order(tmp_path, "sh", "-c", "pwd; env", env={"GIVEN": "yes"}))
    lines = ending.out.read_text().splitlines()
    assert lines[0] == str(tmp_path)
    assert "GIVEN=yes" in lines
    assert not any("secret" in line for line in lines)


def test_the_only_descriptor_an_agent_inherits_is_the_lock(tmp_path: Path) -> None:
    ending = run_to_end(tmp_path, sh(tmp_path, "for fd in /proc/self/fd/*; do readlink $fd; done"))
    folder = ending.out.parent
    found = [line for line in ending.out.read_text().splitlines() if not line.startswith("/proc/")]
    assert found == ["/dev/null", str(folder / "out"), str(folder / "err"), str(folder / "lock")]


def test_a_descriptor_we_inherited_does_not_reach_the_agents(tmp_path: Path) -> None:
    script = (
        "import os, sys; sys.path[:0] = eval(sys.argv[1]); from pathlib import Path\n"
        "from tests.unit.process.rig import run_to_end, sh\n"
        "here = Path(sys.argv[2])\n"
        "print(run_to_end(here, sh(here, 'ls -l /proc/self/fd')).out.read_text())"
    )
    read_end, write_end = os.pipe()
    try:
        os.set_inheritable(write_end, True)
        done = subprocess.run(
            [sys.executable, "-c", script, repr(sys.path), str(tmp_path)],
            close_fds=False, capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
    finally:
        os.close(read_end)
        os.close(write_end)
    assert f" {write_end} ->" not in done.stdout
    assert "/lock" in done.stdout


def test_an_agent_does_not_hold_the_engines_own_output(tmp_path: Path) -> None:
    """`$(orc run …)`, ssh and CI wait for the end of our output: it ends with us, not with the agent."""
    script = (
        "import sys; sys.path[:0] = eval(sys.argv[1]); from pathlib import Path\n"
        "from tests.unit.process.rig import make_launches, sh\n"
        "here = Path(sys.argv[2])\n"
        "make_launches(here).start(sh(here, 'trap \"exit 0\" TERM; touch at_work; sleep 60 & wait'))\n"
    )
    subprocess.run([sys.executable, "-c", script, repr(sys.path), str(tmp_path)], capture_output=True, check=True, timeout=30)

    async def clean_up() -> None:
        launches = make_launches(tmp_path)
        await until((tmp_path / "at_work").exists)
        future = ending_of(launches, name())
        launches.stop(name(), STOPPED)
        assert (await over(future)).cause == STOPPED

    asyncio.run(clean_up())


def test_the_agents_soft_descriptor_limit_is_the_one_we_were_given(tmp_path: Path) -> None:
    script = (
        "import resource, sys; sys.path[:0] = eval(sys.argv[1]); from pathlib import Path\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))\n"
        "from tests.unit.process.rig import run_to_end, sh\n"
        "here = Path(sys.argv[2])\n"
        "print(run_to_end(here, sh(here, 'ulimit -S -n')).out.read_text())\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, repr(sys.path), str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["300", "True"]
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 0


def test_signals_that_we_ignore_are_not_ignored_by_agents(tmp_path: Path) -> None:
    """Python ignores SIGPIPE; an agent's pipeline must still die of it."""
    ending = run_to_end(tmp_path, sh(tmp_path, "grep SigIgn /proc/self/status"))
    assert int(ending.out.read_text().split()[1], 16) & (1 << (signal.SIGPIPE - 1)) == 0


def test_starting_twice_starts_once(tmp_path: Path) -> None:
    async def play() -> None:
        launches, rival = make_launches(tmp_path), make_launches(tmp_path)
        go = tmp_path / "go"
        start = sh(tmp_path, f"echo once >>log; until [ -e {go} ]; do sleep 0.01; done")
        launches.start(start)
        rival.start(start)
        assert rival.standing(start.effect, same_boot=True) is Standing.ALIVE
        futures = [ending_of(launches, start.effect), ending_of(rival, start.effect)]
        go.touch()
        endings = [await over(future) for future in futures]
        assert [ending.exit_code for ending in endings] == [0, 0]
        launches.start(start)
        assert (await over(ending_of(launches, start.effect))).exit_code == 0
        assert (tmp_path / "log").read_text() == "once\n"

    asyncio.run(play())


def test_a_launch_whose_lock_somebody_holds_is_not_started(tmp_path: Path) -> None:
    """A driver frozen between lock and mark may wake up at any time."""
    launches = make_launches(tmp_path)
    folder = launches.directory(name())
    folder.mkdir(parents=True)
    held = folders.take_lock(folder, create=True)
    assert held is not None
    launches.start(sh(tmp_path, "touch started"))
    assert folders.read_marks(folder) == folders.Marks()
    assert launches.standing(name(), same_boot=True) is Standing.ALIVE
    os.close(held)
    assert launches.standing(name(), same_boot=True) is Standing.NEW


def test_a_lock_that_became_the_exit_mark_forbids_a_start_and_still_tells_who_lives(tmp_path: Path) -> None:
    """On a full disk the shim renames the lock instead of creating a file."""
    launches = make_launches(tmp_path)
    folder = launches.directory(name())
    folder.mkdir(parents=True)
    held = folders.take_lock(folder, create=True)
    assert held is not None
    (folder / "lock").rename(folder / "exit.3")
    assert launches.standing(name(), same_boot=True) is Standing.ALIVE
    assert folders.is_locked(folder)
    os.close(held)
    assert launches.standing(name(), same_boot=True) is Standing.OVER
    launches.start(sh(tmp_path, "touch started"))
    assert launches.standing(name(), same_boot=True) is Standing.OVER
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ((), "There is no program to start"),
        (("",), "There is no program to start"),
        (("no-such-agent-anywhere",), "no-such-agent-anywhere cannot be started: it was not found on the PATH."),
        (("./missing",), "./missing cannot be started: there is no such file."),
        (("./plain",), "./plain cannot be started: it is not an executable file"),
        (("./folder",), "./folder cannot be started: it is not an executable file"),
        (("sh", "a\0b"), "sh cannot be started: embedded null"),
        (("s\0h",), "NUL byte"),
        (("sh", "x" * 200_000), "too long; pass long values by file"),
    ],
)
def test_what_can_never_start_is_refused_in_a_sentence_and_leaves_no_mark(
    tmp_path: Path, argv: tuple[str, ...], says: str
) -> None:
    (tmp_path / "plain").write_text("text")
    (tmp_path / "folder").mkdir()
    launches = make_launches(tmp_path)
    with pytest.raises(CannotStart) as refused:
        launches.start(order(tmp_path, *argv))
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert launches.standing(name(), same_boot=True) is Standing.NEW


def test_a_missing_working_directory_or_input_is_refused(tmp_path: Path) -> None:
    launches = make_launches(tmp_path)
    with pytest.raises(CannotStart, match=r"its working directory .*gone does not exist"):
        launches.start(sh(tmp_path / "gone", "true"))
    with pytest.raises(CannotStart, match=r"its input .*gone\.md cannot be read"):
        launches.start(order(tmp_path, "cat", stdin=tmp_path / "gone.md"))


def test_a_bad_interpreter_shows_as_127_with_the_reason_in_the_error_output(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    ending = run_to_end(tmp_path, order(tmp_path, "./broken"))
    assert ending.exit_code == 127
    assert "not found" in ending.err.read_text()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT])
def test_a_shortage_of_the_machine_is_no_verdict_on_the_program(number: int) -> None:
    assert isinstance(refusal(OSError(number, os.strerror(number)), "agent"), Shortage)


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOENT, errno.EROFS, errno.ENOTDIR])
def test_any_other_error_of_the_system_is_final(number: int) -> None:
    assert isinstance(refusal(OSError(number, os.strerror(number)), "agent"), CannotStart)


@pytest.mark.parametrize(
    ("limit", "held"), [(40, 40), (9, 0)], ids=["all are used", "the number of the lock is beyond the limit"]
)
def test_without_descriptors_a_start_is_a_shortage(tmp_path: Path, limit: int, held: int) -> None:
    script = (
        "import os, resource, sys; sys.path[:0] = eval(sys.argv[1]); from pathlib import Path\n"
        "from tests.unit.process.rig import make_launches, name, sh\n"
        "from agent_orchestrator.errors import Shortage\n"
        "here = Path(sys.argv[2]); launches = make_launches(here)\n"
        "launches.directory(name()).mkdir(parents=True)\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))\n"
        "try:\n"
        f"    for _ in range({held}): os.dup(0)\n"
        "except OSError: pass\n"
        "try: launches.start(sh(here, 'true'))\n"
        "except Shortage as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, repr(sys.path), str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert "Too many open files" in done.stdout


@pytest.mark.skipif(preload.find_compiler() is None, reason="there is no C compiler")
def test_a_shim_that_cannot_fork_leaves_the_launch_to_be_started_again(tmp_path: Path) -> None:
    variables = preload.faulty(preload.build(tmp_path / "library"), tmp_path / "log", "fork", 1, errno.EAGAIN)

    async def play() -> None:
        launches = make_launches(tmp_path)
        started = sh(tmp_path, "echo ran >>ran")
        launches.start(msgspec.structs.replace(started, env={**started.env, **variables}))
        ending = await over(ending_of(launches, name()))
        assert ending.unstarted == "no process could be made"
        assert launches.standing(name(), same_boot=True) is Standing.NEW
        launches.start(started)
        again = await over(ending_of(launches, name()))
        assert (again.unstarted, again.exit_code) == ("", 0)

    asyncio.run(play())
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_only_the_word_of_the_shim_or_a_wall_says_that_a_program_did_not_start(tmp_path: Path) -> None:
    tried = {
        "echo 'orc: 5: exec: agent: Cannot allocate memory' >&2; exit 126": True,
        "echo 'bwrap: Creating new namespace failed: Resource temporarily unavailable' >&2; exit 1": True,
        "echo 'bwrap: No such file or directory' >&2; exit 1": False,
        "echo 'orc: No space left on device' >&2; echo more >&2; exit 1": False,
        "echo worked; echo 'orc: No space left on device' >&2; exit 1": False,
        "echo 'tar: No space left on device' >&2; exit 1": False,
        "echo 'orc: No space left on device' >&2": False,
    }
    for number, (script, unstarted) in enumerate(tried.items(), 1):
        ending = run_to_end(tmp_path, sh(tmp_path, script, effect=name(number)))
        assert bool(ending.unstarted) is unstarted, script


def test_a_link_in_the_place_of_a_runs_launches_or_of_a_mark_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    launches = make_launches(tmp_path)
    run = launches.directory(name()).parent
    run.parent.mkdir(parents=True)
    run.symlink_to(outside)
    with pytest.raises(CannotStart, match="through a link"):
        launches.start(sh(tmp_path, "true"))
    run.unlink()
    launches.directory(name()).mkdir(parents=True)
    for mark in (folders.VOID, folders.HUNG, folders.LOCK):
        (launches.directory(name()) / mark).symlink_to(outside / mark)
    folders.leave_mark(launches.directory(name()), folders.VOID)
    with pytest.raises(OSError, match="Too many levels"):
        folders.take_lock(launches.directory(name()), create=True)
    assert not list(outside.iterdir())


def test_a_launch_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "launches").write_text("a file in the way")
    with pytest.raises(CannotStart, match="Not a directory"):
        make_launches(tmp_path).start(sh(tmp_path, "true"))


def test_a_launch_that_never_started_is_void_once_it_was_collected(tmp_path: Path) -> None:
    async def play() -> None:
        launches = make_launches(tmp_path)
        launches.directory(name()).mkdir(parents=True)
        ending = await over(ending_of(launches, name()))
        assert ending.cause is not None
        assert (ending.exit_code, ending.cause.kind) == (None, FailureKind.LOST)
        launches.start(sh(tmp_path, "touch started"))
        assert launches.standing(name(), same_boot=True) is Standing.OVER

    asyncio.run(play())
    assert not (tmp_path / "started").exists()


def test_a_machine_without_descriptors_does_not_make_us_forget_a_launch(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, resource, sys; sys.path[:0] = eval(sys.argv[1]); from pathlib import Path\n"
        "from tests.unit.process.rig import *\n"
        "here = Path(sys.argv[2])\n"
        "async def main():\n"
        "    launches = make_launches(here)\n"
        "    launches.start(sh(here, 'echo done >&2; exit 8'))\n"
        "    await until(lambda: (launches.directory(name()) / 'exit.8').exists())\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\n"
        "    future, held = ending_of(launches, name()), []\n"
        "    try:\n"
        "        while True: held.append(os.dup(0))\n"
        "    except OSError: pass\n"
        "    for _ in range(20): await asyncio.sleep(0.01)\n"
        "    assert not future.done()\n"
        "    for fd in held: os.close(fd)\n"
        "    print((await over(future)).exit_code)\n"
        "asyncio.run(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, repr(sys.path), str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "8\n"
    assert "cannot be looked at" in done.stderr
    assert "Traceback" not in done.stderr
