"""Patterns of the files that runs write: which paths they name, and that thousands of them are looked up, not tried."""

from __future__ import annotations

from collections import Counter

import pytest

from agent_orchestrator.core.files import Patterns, beside
from tests.counting import count_calls

PATTERNS = Patterns(
    [
        ".agents/runs/r1/",
        "state/runs/bd-1.json",
        "state/attempts/bd-1.[0-9]*.run.json",
        ".claude/checkpoint-[0-9]*.json",
        "top-*.md",
        "made-*/",
        *beside("state/runs"),
    ]
)


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        (".agents/runs/r1/deep/er.json", True),
        (".agents/runs/r1/", True),
        (".agents/runs/r1", False),
        (".agents/runs/r12/state.json", False),
        ("state/runs/bd-1.json", True),
        ("state/runs/bd-12.json", False),
        ("state/runs/mine.json", False),
        ("state/runs/bd-1.json.edited-2026", True),
        ("state/runs/.bd-1.json.orc-tmp", True),
        ("state/attempts/bd-1.12.run.json", True),
        ("state/attempts/bd-1.x.run.json", False),
        ("state/attempts/bd-10.1.run.json", False),
        ("other/state/attempts/bd-1.1.run.json", False),
        (".claude/checkpoint-001.json", True),
        (".claude/checkpoint-.json", False),
        ("top-1.md", True),
        ("below/top-1.md", False),
        ("made-1/file", True),
        ("made-1", False),
    ],
)
def test_a_pattern_names_its_files_and_no_others(path: str, ours: bool) -> None:
    assert PATTERNS.match(path) is ours


def test_a_path_is_compared_with_the_patterns_that_begin_like_it_and_not_with_all() -> None:
    def calls(beads: int) -> Counter[str]:
        kinds = ("run", "result")
        patterns = Patterns(f"state/attempts/bd-{number:05d}.[0-9]*.{kind}.json" for number in range(beads) for kind in kinds)
        return count_calls(lambda: patterns.match("state/attempts/bd-00007.1.result.json"))

    calls(10)  # What is compiled at the first time is kept.
    assert calls(10) == calls(2_000)


def test_files_that_were_found_to_be_ours_are_only_looked_up_afterwards() -> None:
    def calls(beads: int) -> Counter[str]:
        names = [f"state/attempts/bd-{number:05d}.1.run.json" for number in range(beads)]
        patterns = Patterns(f"state/attempts/bd-{number:05d}.[0-9]*.run.json" for number in range(beads))
        assert patterns.leave_out([*names, "state/mine.json"]) == ["state/mine.json"]
        again = count_calls(lambda: patterns.leave_out([*names, "state/mine.json"]))
        assert patterns.leave_out(["state/mine.json", *names[:1]]) == ["state/mine.json"]
        return again

    calls(10)
    assert calls(10) == calls(2_000)
