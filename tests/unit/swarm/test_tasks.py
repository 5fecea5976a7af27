"""Files of beads are read strictly: every fault with its line, what is not ready held back with its reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_orchestrator.errors import InvalidSpec
from agent_orchestrator.systems.swarm.tasks import ParsedTasks, find_cycle, parse
from agent_orchestrator.systems.swarm.tracker import HOLDING, WAITS


def read(*lines: dict[str, Any] | str) -> ParsedTasks:
    return parse("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "beads.jsonl", 0)


def faults(*lines: dict[str, Any] | str) -> list[str]:
    with pytest.raises(InvalidSpec) as raised:
        read(*lines)
    return str(raised.value).splitlines()


def task(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "prompt": f"do {name}", "depends_on": list(needs), **more}


def issue(name: str, *needs: tuple[str, str], **more: Any) -> dict[str, Any]:
    links = [{"issue_id": name, "depends_on_id": need, "type": kind} for need, kind in needs]
    return {"id": name, "title": name, "issue_type": "task", "status": "open", "dependencies": links, **more}


def test_tasks_keep_the_order_of_the_file_and_their_fields() -> None:
    parsed = read(task("b", "a", priority=0, verify="make", timeout="10m", max_retries=3), "", task("a"))
    assert [one.id for one in parsed.tasks] == ["b", "a"]
    assert (parsed.tasks[0].depends_on, parsed.tasks[0].priority, parsed.tasks[0].verify) == (("a",), 0, "make")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "beads.jsonl:1: this line is not JSON"),
        ("[]", "beads.jsonl:1: this line is not a JSON object"),
        ({"prompt": "x"}, "beads.jsonl:1: the bead's id None is not a valid id"),
        (task("../x"), "beads.jsonl:1: the bead's id '../x' is not a valid id"),
        (task("a", prompt="  "), "beads.jsonl:1: bead a has an empty prompt"),
        (task("a", colour="red"), "beads.jsonl:1: Object contains unknown field `colour`"),
        (task("a", priority="high"), "beads.jsonl:1: Expected `int`, got `str`"),
        (task("a", "nobody"), "beads.jsonl:1: bead a depends on nobody, which is not in the file"),
        (task("a", "a"), "beads.jsonl:1: the beads wait for each other: a -> a"),
        ("", "beads.jsonl: there is no bead in it"),
    ],
)
def test_each_fault_says_where_it_is(line: dict[str, Any] | str, said: str) -> None:
    (found,) = faults(line)
    assert found.startswith(said), found


def test_every_fault_of_a_file_is_said_at_once() -> None:
    assert len(faults("{", task("a"), task("a"), task("b", colour=1))) == 3


def test_a_cycle_is_named_from_bead_to_bead() -> None:
    (found,) = faults(task("a", "b"), task("b", "c"), task("c", "a"), task("d"))
    assert found == "beads.jsonl:1: the beads wait for each other: a -> b -> c -> a"
    assert find_cycle({"a": (), "b": ("a",), "c": ("a", "b")}) == []


@pytest.mark.parametrize("kind", sorted(HOLDING - {WAITS}))
def test_these_dependencies_of_a_tracker_hold_back(kind: str) -> None:
    parsed = read(issue("b", ("a", kind)), issue("a"))
    assert parsed.tasks[0].depends_on == ("a",)


def test_waiting_for_an_issue_is_waiting_for_its_children() -> None:
    waits = issue("b", ("a", WAITS))
    assert read(waits, issue("a"), issue("a.1", ("a", "parent-child"))).tasks[0].depends_on == ("a.1",)
    assert read(waits, issue("a")).tasks[0].depends_on == (), "it has none"
    assert read(waits).held == {"b": "it waits for a: it is not in the file"}


@pytest.mark.parametrize("kind", ["related", "discovered-from", "duplicates", "parent-child"])
def test_other_dependencies_do_not(kind: str) -> None:
    assert read(issue("b", ("a", kind)), issue("a")).tasks[0].depends_on == ()


def test_closed_ones_are_satisfied_and_not_run() -> None:
    parsed = read(issue("b", ("a", "blocks")), issue("a", status="closed"))
    assert [(one.id, one.depends_on) for one in parsed.tasks] == [("b", ())]
    assert parsed.closed == 1


def test_what_is_not_open_or_waits_for_it_is_held_back() -> None:
    parsed = read(issue("a", status="blocked"), issue("b", ("a", "blocks")), issue("c", ("b", "blocks")), issue("d"))
    assert [one.id for one in parsed.tasks] == ["d"]
    assert list(parsed.held) == ["a", "b", "c"]


def test_a_link_that_is_about_another_issue_says_nothing() -> None:
    other = {"issue_id": "z", "depends_on_id": "gone", "type": "blocks"}
    assert read({**issue("a"), "dependencies": [other]}).tasks[0].depends_on == ()


def test_what_a_tracker_exports_beside_its_issues_is_no_work() -> None:
    memory = {"_type": "memory", "key": "style", "value": "tabs"}
    parsed = read({"_type": "header", "schema": 3}, {"_type": "issue", **issue("a")}, memory)
    assert [one.id for one in parsed.tasks] == ["a"]
    assert "unknown field `_type`" in faults(task("a", _type="memory"))[0], "a task of our own has no such key"
    assert faults(memory) == ["beads.jsonl: there is no bead in it: it has one JSON object a line"]


def test_only_a_line_feed_ends_a_line() -> None:
    odd = "one\u2028two\u0085three"
    lines = [json.dumps(task(name, prompt=odd), ensure_ascii=False) for name in ("a", "b")]
    parsed = parse("\r\n".join(lines) + "\r\n", "beads.jsonl", 0)
    assert [(one.id, one.prompt) for one in parsed.tasks] == [("a", odd), ("b", odd)]


def test_an_issue_becomes_an_instruction_with_its_sections() -> None:
    (made,) = read(issue("a", title="Fix it", description="The login.", acceptance_criteria="It works.", design=None)).tasks
    assert made.prompt == "Fix it\n\n## Description\n\nThe login.\n\n## Acceptance criteria\n\nIt works."
