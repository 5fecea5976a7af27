"""Tests that were made easier to pass: by the numbers that their runners print, and by the test files that were changed.

The rule: what a check shows is worth what ran. A check that passed and ran no test, or fewer than an earlier check of the same
command in the run, or does not say any more how many, or whose test files the work has changed, is doubted in its evidence. A
loop does not complete on fewer tests or deleted ones; where people or reviewers judge, they read the doubt with the evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent_orchestrator.core.inputs import FileChange
from agent_orchestrator.core.units import say_count

NAMES_SHOWN = 5

_TEST_FILES = (
    r"(?:^|/)(?:tests?|spec|__tests__|src/test)/"
    r"|(?:^|/)(?:test_[^/]*|conftest)\.py$"
    r"|_(?:test|spec)\.\w+$|\.(?:test|spec)\.\w+$|(?:^|/)[A-Z]\w*Tests?\.(?:java|kt|cs|scala|swift)$"
)
_COLOURS = r"\x1b\[[0-9;]*m"
_NUMBERS = r"(\d{1,9}) (\w+)"
_PYTEST = (
    r"(?m)^=*\s*((?:\d{1,9} (?:subtests? )?(?:passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?|rerun)(?:, )?)+"
    r"|no tests ran) in "
)
_UNITTEST = r"(?m)^Ran (\d{1,9}) tests? in"
_UNITTEST_BAD = r"(?m)^(?:OK|FAILED) \(([^)]*)\)"
_JEST = r"(?m)^Tests:\s+(.*?)(\d{1,9}) total"
_VITEST = r"(?m)^\s*Tests\s+(?=\d|no tests)(.*?)(?:\((\d{1,9})\))?\s*$"
_CARGO = r"(?m)^test result: \w+\. (\d{1,9}) passed; (\d{1,9}) failed"
_NOTHING = r"(?m)^No (?:tests|test files) found, exiting with code \d{1,3}$"
"""Jest and vitest, when they find nothing."""
_NODE = r"(?m)^(?:#|ℹ) (tests|pass|fail) (\d{1,9})$"
_MAVEN = r"(?m)^(?:\[\w+\]\s*)?Tests run: (\d{1,9}), Failures: (\d{1,9}), Errors: (\d{1,9}), Skipped: (\d{1,9})\s*$"
_MOCHA = r"(?m)^\s*(\d{1,9}) (passing|failing)\b"
_RSPEC = r"(?m)^(\d{1,9}) examples?, (\d{1,9}) failures?(?:, (\d{1,9}) pending)?"
_DOTNET = r"Failed:\s*(\d{1,9}), Passed:\s*(\d{1,9}), Skipped:\s*\d{1,9}, Total:\s*\d{1,9}"
_GO = r"(?m)^(?:ok|FAIL|\?|---)\s+\S+.*$"
_GO_TEST = r"(?m)^--- (PASS|FAIL): \S+ \([\d.]+s\)$"
_GO_NONE = ("[no test files]", "[no tests to run]")

Counted = tuple[int, int]
"""The tests that ran, and those of them that passed."""


def is_test_file(path: str) -> bool:
    """Tell whether a file holds tests, by the names that runners look for."""
    return re.search(_TEST_FILES, path) is not None


def count_tests(output: str) -> Counted | None:
    """Count the tests that ran and those that passed, by the last words of a recognised runner; skipped ones did not run."""
    text = re.sub(_COLOURS, "", output)
    return next((found for count in _RUNNERS if (found := count(text)) is not None), None)


def find_doubts(tests: int | None, most: int | None, changed: Iterable[FileChange]) -> tuple[str, ...]:
    """Say why a check that passed is worth less than it seems; nothing, where nothing speaks against it."""
    doubts = []
    if tests is not None and most is not None and tests < most:
        doubts.append(f"{say_count(tests, 'test')} ran where {most} ran before")
    elif tests is None and most:
        doubts.append(f"it cannot be told how many tests ran, where {most} ran before")
    elif tests == 0:
        doubts.append("no tests ran")
    ours = [change for change in changed if is_test_file(change.path)]
    for status, said in (("D", "deleted"), ("M", "changed")):
        if names := [change.path for change in ours if change.status == status]:
            doubts.append(f"test files were {said}: {say_names(names)}")
    return tuple(doubts)


def say_names(paths: list[str]) -> str:
    """Say a few names, and how many more there are."""
    more = f" and {len(paths) - NAMES_SHOWN} more" if len(paths) > NAMES_SHOWN else ""
    return ", ".join(paths[:NAMES_SHOWN]) + more


def _numbers(text: str) -> dict[str, int]:
    return {word.rstrip("s"): int(number) for number, word in re.findall(_NUMBERS, text)}


def _pytest(text: str) -> Counted | None:
    if not (found := re.findall(_PYTEST, text)):
        return None
    counts = _numbers(found[-1])
    passed = counts.get("passed", 0) + counts.get("xpassed", 0)
    return passed + counts.get("failed", 0) + counts.get("error", 0), passed


def _unittest(text: str) -> Counted | None:
    if not (ran := re.findall(_UNITTEST, text)):
        return None
    bad = re.findall(_UNITTEST_BAD, text)
    counts = {word: int(number) for word, number in re.findall(r"(\w+)=(\d{1,9})", bad[-1])} if bad else {}
    total = int(ran[-1]) - counts.get("skipped", 0)
    return total, total - counts.get("failures", 0) - counts.get("errors", 0)


def _jest(text: str) -> Counted | None:
    if not (found := re.findall(_JEST, text)):
        return None
    counts = _numbers(found[-1][0])
    return int(found[-1][1]) - counts.get("skipped", 0) - counts.get("todo", 0), counts.get("passed", 0)


def _vitest(text: str) -> Counted | None:
    if not (found := re.findall(_VITEST, text)):
        return None
    counts = _numbers(found[-1][0])
    return counts.get("passed", 0) + counts.get("failed", 0), counts.get("passed", 0)


def _cargo(text: str) -> Counted | None:
    if not (found := re.findall(_CARGO, text)):
        return None
    passed = sum(int(good) for good, _ in found)
    return passed + sum(int(bad) for _, bad in found), passed


def _node(text: str) -> Counted | None:
    counts = {word: int(number) for word, number in re.findall(_NODE, text)}
    if "tests" not in counts or "pass" not in counts:
        return None
    return counts["pass"] + counts.get("fail", 0), counts["pass"]


def _maven(text: str) -> Counted | None:
    """Maven prints a line per class, with a time, and one for all of a module, without: modules are added up."""
    found = [tuple(map(int, one)) for one in re.findall(_MAVEN, text)]
    if not found:
        return None
    total = sum(run - skipped for run, _, _, skipped in found)
    return total, total - sum(failures + errors for _, failures, errors, _ in found)


def _mocha(text: str) -> Counted | None:
    counts = {word: int(number) for number, word in re.findall(_MOCHA, text)}
    if "passing" not in counts:
        return None
    return counts["passing"] + counts.get("failing", 0), counts["passing"]


def _rspec(text: str) -> Counted | None:
    if not (found := re.findall(_RSPEC, text)):
        return None
    total, failed, pending = (int(one or 0) for one in found[-1])
    return total - pending, total - pending - failed


def _dotnet(text: str) -> Counted | None:
    if not (found := re.findall(_DOTNET, text)):
        return None
    passed = sum(int(good) for _, good in found)
    return passed + sum(int(bad) for bad, _ in found), passed


def _go(text: str) -> Counted | None:
    """Go prints a line per test with -v; without, one per package and no numbers: only that nothing was run can be told."""
    if found := re.findall(_GO_TEST, text):
        return len(found), found.count("PASS")
    lines = re.findall(_GO, text)
    packages = [line for line in lines if line.startswith("?") or re.match(r"ok\s+\S+\s+(?:\(cached\)|[\d.]+s)", line)]
    empty = packages and len(packages) == len(lines) and all(line.rstrip().endswith(_GO_NONE) for line in packages)
    return (0, 0) if empty else None


def _nothing(text: str) -> Counted | None:
    return (0, 0) if re.search(_NOTHING, text) else None


_RUNNERS = (_pytest, _unittest, _jest, _vitest, _cargo, _node, _maven, _mocha, _rspec, _dotnet, _go, _nothing)
