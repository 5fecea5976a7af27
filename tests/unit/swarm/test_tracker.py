"""Issues of a tracker are ready as `bd ready` has it: only what blocks holds back, also what is part of the blocked one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_orchestrator.errors import InvalidSpec
from agent_orchestrator.systems.swarm.tasks import ParsedTasks, parse
from agent_orchestrator.systems.swarm.tracker import CONTAINERS

NOW_US = 1_770_000_000_000_000  # in February 2026
AT = "2026-03-03T11:11:38.846088-06:00"


def issue(name: str, *links: tuple[str, str], kind: str = "task", **more: Any) -> dict[str, Any]:
    """A line with the fields that `bd export` writes."""
    told = [
        {"issue_id": name, "depends_on_id": other, "type": what, "created_at": AT, "created_by": "me", "metadata": "{}"}
        for what, other in links
    ]
    line = {"_type": "issue", "id": name, "title": f"Do {name}", "description": "", "status": "open", "priority": 2}
    line |= {"issue_type": kind, "owner": "me@example.org", "created_at": AT, "created_by": "me", "updated_at": AT}
    counts = {"dependency_count": len(told), "dependent_count": 0, "comment_count": 0}
    return {**line, **({"dependencies": told} if told else {}), **counts, **more}


def read(*lines: dict[str, Any]) -> ParsedTasks:
    return parse("\n".join(json.dumps(line) for line in lines) + "\n", "beads.jsonl", NOW_US)


def needs(parsed: ParsedTasks) -> dict[str, tuple[str, ...]]:
    return {task.id: task.depends_on for task in parsed.tasks}


@pytest.mark.parametrize("status", ["open", "in_progress", "hooked", "closed"])
def test_a_parent_does_not_hold_its_children_and_is_not_dispatched(status: str) -> None:
    parsed = read(
        issue("bd-e", kind="epic", status=status),
        issue("bd-e.1", ("parent-child", "bd-e")),
        issue("bd-e.2", ("parent-child", "bd-e"), ("blocks", "bd-e.1")),
    )
    assert needs(parsed) == {"bd-e.1": (), "bd-e.2": ("bd-e.1",)}
    assert parsed.held == {}


def test_an_epic_hands_down_what_it_waits_for() -> None:
    parsed = read(
        issue("bd-e1", kind="epic"),
        issue("bd-e2", ("blocks", "bd-plan"), ("parent-child", "bd-e1"), kind="epic"),
        issue("bd-e2.1", ("parent-child", "bd-e2")),
        issue("bd-e2.1.1", ("parent-child", "bd-e2.1"), ("blocks", "bd-x")),
        issue("bd-plan"),
        issue("bd-x", status="closed"),
    )
    assert needs(parsed) == {"bd-e2.1": ("bd-plan",), "bd-e2.1.1": ("bd-plan",), "bd-plan": ()}


def test_the_children_of_an_epic_that_waits_for_another_are_held_back_with_the_reason() -> None:
    parsed = read(
        issue("bd-e1", kind="epic"),
        issue("bd-e1.1", ("parent-child", "bd-e1")),
        issue("bd-e2", ("blocks", "bd-e1"), kind="epic"),
        issue("bd-e2.1", ("parent-child", "bd-e2")),
        issue("bd-e2.2", ("blocks", "bd-e2.1")),
    )
    assert needs(parsed) == {"bd-e1.1": ()}
    assert parsed.held == {
        "bd-e2.1": "bd-e2, which it is part of, waits for bd-e1: it is an epic, no work itself, and open",
        "bd-e2.2": "it waits for bd-e2.1, which is held back",
    }


def test_an_epic_that_waits_for_its_children_is_no_cycle() -> None:
    parsed = read(
        issue("bd-e", ("blocks", "bd-e.1"), ("blocks", "bd-e.2"), ("blocks", "bd-check"), kind="epic"),
        issue("bd-e.1", ("parent-child", "bd-e")),
        issue("bd-e.2", ("parent-child", "bd-e")),
        issue("bd-check", ("blocks", "bd-e.1")),
    )
    assert needs(parsed) == {"bd-e.1": (), "bd-e.2": (), "bd-check": ("bd-e.1",)}


def test_a_task_with_parts_is_work_and_may_wait_for_them() -> None:
    parsed = read(issue("bd-1", ("blocks", "bd-1.1")), issue("bd-1.1", ("parent-child", "bd-1")))
    assert needs(parsed) == {"bd-1": ("bd-1.1",), "bd-1.1": ()}


@pytest.mark.parametrize("kind", sorted(CONTAINERS))
def test_containers_are_no_work_and_hold_back_who_waits_for_them(kind: str) -> None:
    parsed = read(issue("bd-c", kind=kind), issue("bd-1", ("parent-child", "bd-c")), issue("bd-2", ("blocks", "bd-c")))
    assert needs(parsed) == {"bd-1": ()}
    assert list(parsed.held) == ["bd-2"]
    assert needs(read(issue("bd-c", kind=kind, status="closed"), issue("bd-2", ("blocks", "bd-c")))) == {"bd-2": ()}


def test_an_epic_without_children_is_mentioned() -> None:
    assert read(issue("bd-e", kind="epic"), issue("bd-1")).held == {"bd-e": "it is an epic, no work itself, and open"}


@pytest.mark.parametrize("status", ["blocked", "deferred"])
def test_what_a_person_set_aside_is_set_aside_with_its_children(status: str) -> None:
    parsed = read(issue("bd-e", kind="epic", status=status), issue("bd-1", ("parent-child", "bd-e")), issue("bd-2"))
    assert needs(parsed) == {"bd-2": ()}
    assert parsed.held == {"bd-1": f"bd-e, which it is part of, is {status}"}


def test_what_is_put_off_waits_for_its_time_with_its_children() -> None:
    later, earlier = "2099-01-01T00:00:00Z", "2026-01-01T00:00:00.5-06:00"
    parsed = read(
        issue("bd-1", defer_until=later),
        issue("bd-2", defer_until=earlier),
        issue("bd-e", kind="epic", defer_until=later),
        issue("bd-e.1", ("parent-child", "bd-e")),
        issue("bd-3", ("blocks", "bd-1")),
    )
    assert needs(parsed) == {"bd-2": ()}
    assert parsed.held == {
        "bd-1": f"it is deferred until {later}",
        "bd-e.1": f"bd-e, which it is part of, is deferred until {later}",
        "bd-3": f"it waits for bd-1: it is deferred until {later}",
    }


@pytest.mark.parametrize("flag", ["pinned", "ephemeral", "is_template"])
def test_what_is_no_work_by_a_flag_is_held_back(flag: str) -> None:
    parsed = read({**issue("bd-1"), flag: True}, {**issue("bd-2"), flag: False})
    assert list(parsed.held) == ["bd-1"]


def test_waiting_for_a_fan_out_is_waiting_for_its_parts() -> None:
    parsed = read(
        issue("bd-m", kind="molecule"),
        issue("bd-m.1", ("parent-child", "bd-m")),
        issue("bd-m.2", ("parent-child", "bd-m"), status="closed"),
        issue("bd-review", ("waits-for", "bd-m")),
    )
    assert needs(parsed) == {"bd-m.1": (), "bd-review": ("bd-m.1",)}


@pytest.mark.parametrize(
    ("gate", "closed", "waits"),
    [
        ({}, (), ("bd-plan.1", "bd-plan.2")),
        ({"gate": "any-children"}, (), ("bd-plan.1", "bd-plan.2")),
        ({"gate": "any-children"}, ("bd-plan.1",), ()),
        ({"gate": "any-children", "also_blocks": True}, ("bd-plan.1",), ("bd-plan",)),
        ({"also_blocks": "true"}, ("bd-plan.1", "bd-plan.2"), ("bd-plan",)),
        ({}, ("bd-plan.1", "bd-plan.2"), ()),
    ],
)
def test_a_gate_says_which_children_are_waited_for(gate: object, closed: tuple[str, ...], waits: tuple[str, ...]) -> None:
    review = issue("bd-review", ("waits-for", "bd-plan"))
    review["dependencies"][0]["metadata"] = json.dumps(gate)
    parts = [issue(f"bd-plan.{n}", ("parent-child", "bd-plan")) for n in (1, 2)]
    parsed = read(issue("bd-plan"), *({**one, "status": "closed"} if one["id"] in closed else one for one in parts), review)
    assert needs(parsed)["bd-review"] == waits


def test_a_part_that_waits_for_all_parts_of_the_whole_does_not_wait_for_itself() -> None:
    parsed = read(
        issue("bd-e", kind="epic"),
        issue("bd-e.1", ("parent-child", "bd-e")),
        issue("bd-e.last", ("parent-child", "bd-e"), ("waits-for", "bd-e")),
    )
    assert needs(parsed) == {"bd-e.1": (), "bd-e.last": ("bd-e.1",)}


def test_a_part_of_two_wholes_does_not_wait_for_the_one_that_waits_for_the_parts_of_the_other() -> None:
    parsed = read(
        issue("bd-e", kind="epic"),
        issue("bd-after", ("waits-for", "bd-e")),
        issue("bd-e.1", ("parent-child", "bd-e"), ("parent-child", "bd-after")),
    )
    assert needs(parsed) == {"bd-e.1": (), "bd-after": ("bd-e.1",)}, "it would wait for itself, for ever"


def test_nobody_waits_for_what_is_pinned_open() -> None:
    parsed = read(issue("bd-1", status="pinned"), issue("bd-2", ("blocks", "bd-1")), issue("bd-3", ("waits-for", "bd-2")))
    assert needs(parsed) == {"bd-2": (), "bd-3": ()}, "what fans out to nothing is waited for by nobody"


def test_a_parent_that_is_not_in_the_file_holds_nothing() -> None:
    parsed = read(issue("bd-1", ("parent-child", "bd-gone")), issue("bd-2", ("blocks", "bd-gone")))
    assert needs(parsed) == {"bd-1": ()}
    assert parsed.held == {"bd-2": "it waits for bd-gone: it is not in the file"}


def test_parents_in_a_circle_are_survived() -> None:
    parsed = read(issue("bd-1", ("parent-child", "bd-2")), issue("bd-2", ("parent-child", "bd-1")))
    assert needs(parsed) == {"bd-1": (), "bd-2": ()}


def test_links_as_a_listing_has_them_are_read() -> None:
    above = {"id": "bd-e", "title": "Do bd-e", "issue_type": "epic", "status": "open", "dependency_type": "parent-child"}
    before = {"id": "bd-1", "title": "Do bd-1", "status": "open", "dependency_type": "blocks"}
    parsed = read(issue("bd-e", kind="epic"), issue("bd-1"), {**issue("bd-2"), "dependencies": [above, before]})
    assert needs(parsed) == {"bd-1": (), "bd-2": ("bd-1",)}


KINDS = ["blocks", "conditional-blocks", "waits-for", "parent-child", "related", "discovered-from"]
GATES: list[dict[str, Any]] = [{}, {"gate": "all-children"}, {"gate": "any-children"}, {"also_blocks": True}]
GATES.append({"gate": "any-children", "also_blocks": "true"})
STATUSES = ["open", "open", "in_progress", "hooked", "pinned", "closed"]


@st.composite
def trackers(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Issues that only ever point to earlier ones, in any order."""
    lines = []
    for number in range(draw(st.integers(1, 9))):
        others = st.integers(0, number - 1).map(lambda other: f"bd-{other}") if number else st.nothing()
        links = draw(st.lists(st.tuples(st.sampled_from(KINDS), others), max_size=3)) if number else []
        parents = {other for what, other in links if what == "parent-child"}
        links = [(what, other) for what, other in links if what != "waits-for" or other not in parents]  # bd waits for ever
        kind = draw(st.sampled_from(["task", "bug", "epic", "molecule"]))
        line = issue(f"bd-{number}", *links, kind=kind, status=draw(st.sampled_from(STATUSES)))
        for link in line.get("dependencies", ()):
            gate = draw(st.sampled_from(GATES))
            link["metadata"] = json.dumps(gate) if draw(st.booleans()) else gate
        lines.append(line)
    return draw(st.permutations(lines))


def ready(lines: list[dict[str, Any]]) -> set[str]:
    """Say what `bd ready` shows, containers aside, by the rules that beads 1.3 has for it.

    Its store shows what is open, neither pinned nor marked as blocked (internal/storage/sqlbuild).
    """
    marked = blocked(lines)
    shown = [line["id"] for line in lines if line["status"] == "open" and line["issue_type"] not in CONTAINERS]
    return {name for name in shown if name not in marked}


def never_ready(lines: list[dict[str, Any]]) -> set[str]:
    """Say what stays blocked though all that is not is closed, again and again: it waits for itself in the end."""
    while True:
        marked = blocked(lines)
        open_still = {line["id"] for line in lines if line["status"] not in ("closed", "pinned")}
        if open_still <= marked:
            return open_still
        lines = [{**line, "status": "closed"} if line["id"] in open_still - marked else line for line in lines]


def blocked(lines: list[dict[str, Any]]) -> set[str]:
    """Say what beads 1.3 marks as blocked, until nothing changes (internal/storage/issueops/blocked_state.go).

    Its rules are kept here in their own form, to compare with ours.
    """
    known = {line["id"]: line for line in lines}
    over = {name for name, line in known.items() if line["status"] in ("closed", "pinned")}
    children: dict[str, list[str]] = {}
    for name, line in known.items():
        for link in line.get("dependencies", ()):
            if link["type"] == "parent-child":
                children.setdefault(link["depends_on_id"], []).append(name)
    marked: set[str] = set()

    def marks(link: dict[str, Any]) -> bool:
        other, metadata = link["depends_on_id"], link["metadata"]
        metadata = json.loads(metadata) if isinstance(metadata, str) else metadata
        match link["type"]:
            case "blocks" | "conditional-blocks":
                return other not in over
            case "parent-child":
                return other in marked
            case "waits-for":
                below = children.get(other, [])
                early = metadata.get("gate") == "any-children" and any(known[child]["status"] == "closed" for child in below)
                held = any(child not in over for child in below) and not early
                return held or (metadata.get("also_blocks") in (True, "true") and other not in over)
        return False

    while True:
        fresh = {name for name in known.keys() - over - marked if any(map(marks, known[name].get("dependencies", ())))}
        if not fresh:
            return marked
        marked |= fresh


@settings(deadline=None)
@given(trackers())
def test_what_may_start_at_once_is_what_bd_ready_shows(lines: list[dict[str, Any]]) -> None:
    parsed, refused = None, ""
    try:
        parsed = read(*lines)
    except InvalidSpec as error:
        refused = str(error)
    if parsed is None:  # A later child may wait for whoever waits for all children: bd shows neither, ever.
        assert "the beads wait for each other" in refused
        return
    ours, shown = {name for name, waits in needs(parsed).items() if not waits}, ready(lines)
    # What waits for itself through its parents bd would never show; here it does not wait for that.
    assert shown <= ours <= shown | never_ready(lines)
    mentioned = {*needs(parsed), *parsed.held}
    left = {line["id"] for line in lines if line["status"] != "closed" and line["issue_type"] not in CONTAINERS}
    assert left <= mentioned, "nothing is dropped without a word"
