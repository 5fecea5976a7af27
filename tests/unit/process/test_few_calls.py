"""A launch asks the system for what a rule needs, once: the way from one agent to the next consists of such questions."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from agent_orchestrator.engine.process.cgroups import own_cgroup
from tests.unit.process.rig import ending_of, make_launches, name, order, over

LAUNCHES = 300
"""So many are tried at most: on a busy machine one may be looked at in between, or many fork beside it."""


def check_calls(tmp_path: Path, wanted: dict[str, int]) -> None:
    """Start launches until one has called the system's functions so often from its start to its end."""
    calls: Counter[str] = Counter()

    def note(frame: Any, event: str, called: Any) -> None:
        if event == "c_call" and called.__module__ in ("posix", "fcntl"):
            calls[called.__name__] += 1

    async def play() -> list[dict[str, int]]:
        launches, counted = make_launches(tmp_path), list[dict[str, int]]()
        for launch in range(LAUNCHES):
            calls.clear()
            sys.setprofile(note)
            launches.start(order(tmp_path, "/bin/true", effect=name(launch)))
            ending = await over(ending_of(launches, name(launch)))
            sys.setprofile(None)
            assert ending.exit_code == 0
            counted.append({called: calls[called] for called in wanted})
            if counted[-1] == wanted:
                break
        launches.close()
        return counted

    try:
        assert wanted in asyncio.run(play())
    finally:
        sys.setprofile(None)


def test_a_launch_is_locked_and_its_marks_are_read_once_to_start_and_once_to_end(tmp_path: Path) -> None:
    check_calls(tmp_path, {"flock": 2, "listdir": 2})


def test_that_nothing_is_left_of_a_launch_is_seen_without_opening_anything(tmp_path: Path) -> None:
    """The cgroup is removed in one go, which proves that it is empty; the files about processes stay open."""
    check_calls(tmp_path, {"scandir": 0, "read": 0})


def test_the_folder_of_a_launch_is_made_from_the_one_around_it_and_the_tree_is_reached_by_one_look(tmp_path: Path) -> None:
    """Links are looked for on the way to the folder around it, to the folder when it ends, and to the tree."""
    check_calls(tmp_path, {"mkdir": 1 + bool(own_cgroup()), "readlink": 3, "lstat": 0})


def test_the_path_of_a_launch_is_made_once(tmp_path: Path) -> None:
    launches = make_launches(tmp_path)
    assert launches.directory(name()) is launches.directory(name())
    assert launches.directory(name()) != launches.directory(name(2)) != make_launches(tmp_path / "other").directory(name(2))
