"""The command line of a loop, and what of it is refused before a loop exists."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.errors import OrcError, UsageError
from agent_orchestrator.runs.detection import detect_tests
from agent_orchestrator.runs.loop.options import LoopOptions, as_command, changes_of, command_of, prepare, read_loop_id


def options(**given: Any) -> LoopOptions:
    return LoopOptions(**{"task": "x", "until": "true", "agent_command": sys.executable, **given})


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("make test passes", "make test"),
        ("true succeeds", "true"),
        ("test -f done exits 0.", "test -f done"),
        ("CI=1 sh -c true", "CI=1 sh -c true"),
        ("./check.sh passes", "./check.sh"),
        ("[ -f done ]", "[ -f done ]"),
        ("(cd src && make) passes", "(cd src && make)"),
        ("./missing.sh passes", None),
        ("docs/guide.md covers every command", None),
        ("(most of) the guide reads well", None),
        ("all tests are green", None),
        ("The guide reads well", None),
        ("it's unfinished", None),
    ],
)
def test_a_criterion_is_a_command_when_its_first_word_is_one(text: str, command: str | None, tmp_path: Path) -> None:
    (tmp_path / "check.sh").touch(0o755)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "guide.md").touch()
    if command is not None and command.startswith("make"):
        command = command if _has("make") else None
    assert as_command(text, tmp_path) == command


def _has(program: str) -> bool:
    return any((Path(folder) / program).exists() for folder in ("/usr/bin", "/bin", "/usr/local/bin"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"agent_command": None}, "Nobody would work"),
        ({"agent": "scripted"}, "exclude each other"),
        ({"task": None}, "There is no task"),
        ({"task": "  "}, "There is no task"),
        ({"task_file": "x"}, "given twice"),
        ({"task": None, "task_file": "/no/such"}, "does not exist"),
        ({"until": None}, "When is it done?"),
        ({"until": " "}, "a command"),
        ({"completion": "x"}, "give one"),
        ({"max_iterations": "0"}, "at least 1"),
        ({"max_iterations": "nan"}, "at least 1"),
        ({"timeout": "-5"}, "at least 1"),
        ({"checkpoint_interval": "1.5"}, "at least 1"),
        ({"execution_mode": "careful"}, "one of strict, seeded, logged, default"),
        ({"execution_mode": "strict"}, "needs an agent with a temperature"),
        ({"seed": "7"}, "--seed needs"),
        ({"continue_session": True}, "keeps sessions"),
        ({"confirm_with": "scripted"}, "a command confirms itself"),
        ({"commit": True}, "needs a git repository"),
        ({"env": ("X",)}, "NAME=VALUE"),
        ({"agent_command": "no-such-program-anywhere"}, "not found on the PATH"),
    ],
)
def test_what_cannot_work_is_refused_in_a_sentence(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(OrcError, match=said):
        prepare(options(**given), tmp_path)


def test_every_field_of_the_configuration_is_a_flag(tmp_path: Path) -> None:
    spec = prepare(
        options(
            max_iterations="7",
            timeout="30",
            interactive=True,
            auto_test=False,
            checkpoint_interval="2",
            execution_mode="seeded",
            seed="5",
        ),
        tmp_path,
    ).spec
    assert (spec.max_iterations, spec.timeout_minutes, spec.interactive, spec.auto_test) == (7, 30, True, False)
    assert (spec.checkpoint_interval, spec.execution_mode, spec.seed) == (2, "seeded", 5)


def test_only_flags_that_were_given_change_a_loop_that_goes_on() -> None:
    assert changes_of(LoopOptions()) == {}
    assert changes_of(LoopOptions(max_iterations="9")) == {"max_iterations": 9}


def test_a_given_loop_id_is_kept_and_a_name_becomes_the_same_id_every_time() -> None:
    assert read_loop_id("ralph-fix-a1b2c3d4") == "ralph-fix-a1b2c3d4"
    assert read_loop_id("auth-refactor") == read_loop_id("auth-refactor")
    assert re.fullmatch(r"ralph-auth-refactor-[a-f0-9]{8}", read_loop_id("auth-refactor"))
    assert re.fullmatch(r"ralph-issues-2026-01-25-[a-f0-9]{8}", read_loop_id("ralph-issues-2026-01-25"))
    assert len({read_loop_id(name) for name in ("Fix", "fix", "fix!")}) == 3
    for wrong in ("", "../..", "two words", "ü", f"ralph-{'x' * 100}-a1b2c3d4"):
        with pytest.raises(UsageError):
            read_loop_id(wrong)


def test_criteria_are_one_command_when_each_of_them_is_one(tmp_path: Path) -> None:
    assert command_of(("true passes", "test -f done"), tmp_path) == "( true ) && ( test -f done )"
    assert command_of(("true",), tmp_path) == "true"
    assert command_of(("true", "the guide reads well"), tmp_path) is None
    assert command_of((), tmp_path) is None
    assert command_of(("true passes AND the endpoint exists",), tmp_path) is None


def test_the_tests_of_a_project_are_detected_by_its_files(tmp_path: Path) -> None:
    assert detect_tests(tmp_path) is None
    (tmp_path / "Makefile").write_text("all:\n\ttrue\n")
    assert detect_tests(tmp_path) is None
    (tmp_path / "Makefile").write_text("all:\n\ttrue\ntest:\n\ttrue\n")
    assert detect_tests(tmp_path) == ("make test" if _has("make") else None)
