"""Tests made easier to pass: the numbers of the runners that are known, and what is doubted."""

from __future__ import annotations

import pytest

from agent_orchestrator.core.evidence import count_tests, find_doubts, is_test_file
from agent_orchestrator.core.inputs import FileChange

MAVEN = """\
Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.02 s - in a.BTest
[INFO] Tests run: 7, Failures: 1, Errors: 1, Skipped: 2
[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0
"""


@pytest.mark.parametrize(
    ("output", "counted"),
    [
        ("===== 3 failed, 9 passed, 1 skipped in 0.12s =====", (12, 9)),
        ("5 passed in 0.01s", (5, 5)),
        ("1 passed in 0.1s\n===== 2 errors in 0.5s =====", (2, 0)),
        ("\n2 deselected in 3.38s\n", (0, 0)),
        ("============================ no tests ran in 3.95s =============================", (0, 0)),
        ("Ran 4 tests in 0.001s\n\nFAILED (failures=1, errors=1)", (4, 2)),
        ("Ran 4 tests in 0.001s\n\nOK (skipped=3)", (1, 1)),
        ("Ran 1 test in 0.001s\n\nOK", (1, 1)),
        ("Tests:       1 failed, 2 skipped, 5 passed, 8 total", (6, 5)),
        ("Tests:       1 skipped, 1 todo, 1 passed, 3 total", (1, 1)),
        ("Tests:       3 skipped, 3 total\nSnapshots:   0 total", (0, 0)),
        (" Test Files  1 passed (1)\n      Tests  1 passed | 1 skipped (2)\n   Start at  08:35:26", (1, 1)),
        ("\x1b[2m      Tests \x1b[22m \x1b[33m2 skipped\x1b[39m\x1b[90m (2)\x1b[39m", (0, 0)),
        ("test result: ok. 7 passed; 0 failed; 1 ignored;\ntest result: FAILED. 1 passed; 2 failed; 0 ignored;", (10, 8)),
        ("1..5\n# tests 5\n# suites 0\n# pass 2\n# fail 2\n# cancelled 0\n# skipped 1\n# todo 0", (4, 2)),
        ("ℹ tests 3\nℹ suites 0\nℹ pass 2\nℹ fail 0", (2, 2)),
        (MAVEN, (8, 6)),
        ("  1 passing (2ms)\n  1 pending\n", (1, 1)),
        ("  0 passing (1ms)\n", (0, 0)),
        ("12 examples, 1 failure, 2 pending", (10, 9)),
        ("Passed!  - Failed:     0, Passed:     5, Skipped:     1, Total:     6, Duration: 20 ms - a.dll", (5, 5)),
        ("?   \texample.org/a\t[no test files]\nok  \texample.org/b\t0.002s [no tests to run]", (0, 0)),
        ("?   \texample.org/a\t[no test files]\nok  \texample.org/b\t0.002s", None),
        ("ok  \texample.org/b\t(cached)", None),
        ("===== 3 passed, 1 failed, 2 subtests passed in 0.10s =====", (4, 3)),
        ("No tests found, exiting with code 0", (0, 0)),
        ("\nNo test files found, exiting with code 0\n", (0, 0)),
        (
            "--- PASS: TestA (0.00s)\n    --- PASS: TestA/sub (0.00s)\n--- SKIP: TestB (0.00s)\n--- FAIL: TestC (0.01s)\nFAIL",
            (2, 1),
        ),
        ("Found 12 errors", None),
        ("", None),
    ],
)
def test_tests_are_counted_by_the_last_words_of_known_runners(output: str, counted: tuple[int, int] | None) -> None:
    assert count_tests(output) == counted


@pytest.mark.parametrize(
    ("tests", "most", "changed", "doubts"),
    [
        (12, 12, (), ()),
        (None, 12, (), ("it cannot be told how many tests ran, where 12 ran before",)),
        (None, 0, (), ()),
        (0, None, (), ("no tests ran",)),
        (11, 12, (), ("11 tests ran where 12 ran before",)),
        (0, 12, (), ("0 tests ran where 12 ran before",)),
        (None, None, (("D", "tests/test_a.py"), ("M", "src/a.py")), ("test files were deleted: tests/test_a.py",)),
        (
            13,
            12,
            tuple(("M", f"a{number}_test.go") for number in range(7)),
            ("test files were changed: a0_test.go, a1_test.go, a2_test.go, a3_test.go, a4_test.go and 2 more",),
        ),
    ],
)
def test_what_passed_is_doubted_when_less_was_run_or_the_tests_were_touched(
    tests: int | None, most: int | None, changed: tuple[tuple[str, str], ...], doubts: tuple[str, ...]
) -> None:
    assert find_doubts(tests, most, [FileChange(*one) for one in changed]) == doubts


@pytest.mark.parametrize(
    "path", ["tests/a.py", "pkg/test_a.py", "conftest.py", "a_test.go", "src/a.test.ts", "a_spec.rb", "src/test/java/ATest.java"]
)
def test_files_of_tests_are_known_by_their_names(path: str) -> None:
    assert is_test_file(path)
    assert not is_test_file(path.replace("test", "x").replace("Test", "X").replace("spec", "x"))
