"""The line of merges: one at a time for each target, in order."""

from __future__ import annotations

from agent_orchestrator.core.queue import MergeQueue


def test_who_came_first_merges_first() -> None:
    queue = MergeQueue()
    for unit in ("B", "A", "B"):
        queue.join("main", unit)
    assert queue.line("main") == ("B", "A")
    queue.leave("main", "B")
    assert queue.first("main") == "A"
    queue.join("main", "B")
    assert queue.line("main") == ("A", "B"), "who had to repair something goes to the end"


def test_targets_have_lines_of_their_own() -> None:
    queue = MergeQueue()
    queue.join("main", "A")
    queue.join("next", "B")
    assert (queue.first("main"), queue.first("next"), queue.first("gone")) == ("A", "B", None)
    queue.leave("main", "A")
    queue.leave("main", "A")
    assert (queue.first("main"), len(queue)) == (None, 1)
