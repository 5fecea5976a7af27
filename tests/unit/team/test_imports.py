"""Teams of other tools: files as their agents wrote them, and variations that nobody listed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_orchestrator.core.effects import AgentChoice, RunAgent
from agent_orchestrator.core.inputs import Resume
from agent_orchestrator.errors import InvalidDocument
from agent_orchestrator.systems.team.imports import BranchState, ImportedTeam, import_files, read_requirements
from agent_orchestrator.systems.team.spec import TeamSpec, split_requirements
from agent_orchestrator.systems.team.system import TEAM
from tests.scenarios.played import Played
from tests.unit.variations import example, find_unsaid, vary

RUN = "v4_20250106_100000"


class Taken:
    """A team made of files: what was said, and what the team prints."""

    def __init__(self, branch: BranchState = BranchState.MISSING, **files: Any) -> None:
        found = {f"coordination/{name.replace('__', '/')}.json": document for name, document in files.items()}
        text = read_requirements(found["coordination/pm_state.json"])
        if text is None:
            raise InvalidDocument(path="pm_state.json", what="state file", detail="no team")
        agents = {"": AgentChoice(name="command")}
        self.spec = TeamSpec(requirements=text, wanted=split_requirements(text), agents=agents, into="main")
        self.made: ImportedTeam = import_files(found, "pm_state.json", self.spec, lambda name: branch)
        self.played = Played(TEAM, self.spec, RUN, also=self.made.facts)

    @property
    def files(self) -> dict[str, Any]:
        found = self.played.documents()
        return {path.removeprefix("coordination/").removesuffix(".json"): body for path, body in found.items()}

    @property
    def plan(self) -> dict[str, Any]:
        document: dict[str, Any] = self.files["pm_state"]
        return document

    @property
    def statuses(self) -> dict[str, str]:
        return {group["id"]: group["status"] for group in self.plan["task_groups"]}

    @property
    def said(self) -> str:
        return "\n".join(self.made.account.all)

    def resume(self) -> set[str]:
        """Go on, and say for whom agents are started."""
        self.played.tell(Resume(id=self.played.directive()))
        return {effect.unit for effect in self.played.state.doing if isinstance(effect, RunAgent)}


def pm_state(**more: Any) -> dict[str, Any]:
    return {"session_id": RUN, "mode": "simple", "original_requirements": "Fix the tests", "iteration": 3, **more}


FINISHED = pm_state(
    session_id="v4_20251106_async_security_fixes",
    all_tasks=["T1: Add a job queue", "T2: Answer 202 at once", "T11: SECURITY FIX - Check the owner of GET /api/backtests/{id}"],
    task_groups=[
        {
            "id": "A",
            "name": "Background jobs + security",
            "tasks": ["T1: Add a job queue", "T2: Answer 202", "T11: SECURITY FIX - Check the owner"],
            "branch_name": "claude/handler-011C",
            "depends_on": [],
            "complexity": "high",
            "priority": "CRITICAL",
            "status": "COMPLETED",
            "progress": {"async": "COMPLETE ✅ (176/176)"},
            "final_commit": "bef41de5 - Check owners",
        },
        {
            "id": "B",
            "name": "OPTIONAL: order of tests",
            "tasks": ["T9: Find out why", "T11: See that 2 tests pass"],
            "branch_name": "claude/handler-011C",
            "depends_on": ["A"],
            "status": "SKIPPED",
            "skip_reason": "no time left",
        },
    ],
    execution_phases=[{"phase": 1, "groups": ["A"], "description": "Jobs", "status": "COMPLETED"}],
    completed_groups=["A"],
    in_progress_groups=[],
    pending_groups=[],
    skipped_groups=["B"],
    completion_percentage=100,
    final_test_status={"final": {"passing": 176}},
    status="COMPLETED_SUCCESS",
    bazinga_timestamp="2025-11-06T20:00:00Z",
)
"""The shape that such a file had in the wild at its end."""


def test_a_finished_team_stays_finished() -> None:
    taken = Taken(BranchState.OPEN, pm_state=FINISHED)
    assert (taken.statuses, taken.plan["completion_percentage"]) == ({"A": "complete"}, 100.0)
    assert taken.files["orchestrator_state"]["status"] == "completed"
    assert [task["status"] for task in taken.plan["all_tasks"]] == ["complete"] * 3
    assert taken.plan["all_tasks"][0] == {"id": "T1", "description": "Add a job queue", "group_id": "A", "status": "complete"}
    for change in (
        "task_groups[0].priority (a team has no such field)",
        "task_groups[0].progress (a team has no such field)",
        "task_groups[0].final_commit (a team has no such field)",
        "task_groups[1]: left out, group B was skipped",
        "task_groups[1].skip_reason (a team has no such field)",
        "execution_phases: made anew",
        "final_test_status (a team has no such field)",
        "bazinga_timestamp (a team has no such field)",
        "group A: is complete, though claude/handler-011C is not merged into main; merge it yourself",
    ):
        assert change in taken.said


@pytest.mark.parametrize("word", ["complete", "completed", "COMPLETED", "Done", "done ✅", "merged", "APPROVED", "✅"])
def test_words_for_done_are_done(word: str) -> None:
    taken = Taken(pm_state=pm_state(task_groups=[{"id": "A", "status": word}, {"id": "B", "status": "in-progress"}]))
    assert taken.statuses == {"A": "complete", "B": "assigned"}
    assert taken.resume() == {"B"}


@pytest.mark.parametrize(
    "files",
    [
        {"pm_state": pm_state(task_groups=[{"id": "A"}, {"id": "B"}], completed_groups=["A"])},
        {"pm_state": pm_state(task_groups=[{"id": "A", "status": "pending"}, {"id": "B"}], completedGroups=["Group A"])},
        {"pm_state": pm_state(task_groups=[{"id": "B"}], completed_groups=[{"id": "A", "completed_at": "today"}])},
        {"pm_state": pm_state(task_groups=["A: Sign in", "B: Sign out"], completed_groups=["Sign in"])},
        {"pm_state": pm_state(task_groups={"A": {"status": "done"}, "B": {}})},
        {"pm_state": pm_state(task_groups={"A": "done", "B": "todo"})},
        {"pm_state": pm_state(task_groups={"A": ["✅ 1.1: Sign in"], "B": ["1.2: Sign out"]})},
        {"pm_state": pm_state(taskGroups=[{"groupId": "A", "state": "done"}, {"groupId": "B", "state": "todo"}])},
        {
            "pm_state": pm_state(
                all_tasks=["1.1: Sign in", "1.2: Sign out"],
                task_groups=[{"id": "A", "tasks": ["1.1"]}, {"id": "B", "tasks": ["1.2"]}],
                completed_tasks=["1.1: Sign in"],
            )
        },
        {"pm_state": pm_state(task_groups=["A", "B"]), "group_status": {"A": {"status": "complete"}}},
        {"pm_state": pm_state(task_groups=["A", "B"], completed_groups=["A"]), "group_status": {"A": {"status": "qa_testing"}}},
        {"pm_state": pm_state(), "group_status": {"_comment": "-", "A": {"status": "completed"}, "B": {"status": "pending"}}},
        {"pm_state": pm_state(task_groups=["A", "B"]), "group_status": {"groups": [{"group_id": "A", "status": "done"}]}},
    ],
)
def test_a_group_that_any_place_calls_done_is_done(files: dict[str, Any]) -> None:
    taken = Taken(**files)
    assert (taken.statuses["A"], taken.plan["completed_groups"]) == ("complete", ["A"]), taken.said
    assert taken.statuses["B"] in ("pending", "assigned")
    assert taken.resume() == {"B"}


def test_tasks_that_were_done_stay_done_in_a_group_that_goes_on() -> None:
    tasks = ["1.1: Write it", "1.2: Test it"]
    taken = Taken(
        pm_state=pm_state(all_tasks=tasks, task_groups=[{"id": "A", "tasks": tasks}], completed_tasks=["1.1: Write it"])
    )
    assert [(task["id"], task["status"]) for task in taken.plan["all_tasks"]] == [("1.1", "complete"), ("1.2", "pending")]
    assert taken.resume() == {"A"}
    (effect,) = taken.played.state.doing
    assert '"status": "complete"' in (effect.prompt_text or "")


def test_a_team_at_100_percent_without_any_status_is_done() -> None:
    taken = Taken(pm_state=pm_state(task_groups=["A", "B"], completion_percentage=100))
    assert set(taken.statuses.values()) == {"complete"}
    assert taken.files["orchestrator_state"]["status"] == "completed"


def test_a_team_before_its_last_check_gets_it() -> None:
    done = pm_state(task_groups=["A"], completed_groups=["A"], completion_percentage=100)
    taken = Taken(
        pm_state=done, orchestrator_state={"status": "running", "current_phase": "pm_final_check", "token_usage": {"pm": 3}}
    )
    assert taken.statuses == {"A": "complete"}
    assert "orchestrator_state.token_usage (a team has no such field)" in taken.said
    assert "completion_percentage: was" not in taken.said
    assert taken.resume() == {"pm"}


def test_the_branch_of_a_group_may_stand_in_its_status_alone() -> None:
    told = {"status": "in_progress", "branch_name": "feature/mine", "group_name": "Sign in"}
    taken = Taken(BranchState.OPEN, pm_state=pm_state(task_groups=["A"]), group_status={"A": told})
    (group,) = taken.plan["task_groups"]
    assert (group["branch_name"], group["name"], group["status"]) == ("feature/mine", "Sign in", "in_progress")
    assert "branch" not in "\n".join((*taken.made.account.lines("changed"), *taken.made.account.lines("left")))


def test_a_group_that_was_skipped_by_its_status_alone_is_not_begun() -> None:
    taken = Taken(pm_state=pm_state(task_groups=["A", "B"]), group_status={"A": {"status": "skipped"}})
    assert "group_status.A.status: was skipped, is complete" in taken.said
    assert taken.resume() == {"B"}


def test_tasks_without_groups_are_one_group() -> None:
    taken = Taken(pm_state={"requirements": ["one", "two"], "tasks": {"T1": "done", "T2": "Write it"}})
    assert taken.statuses == {"main": "assigned"}
    assert [task["status"] for task in taken.plan["all_tasks"]] == ["complete", "pending"]
    assert taken.plan["original_requirements"] == "one\ntwo"


@pytest.mark.parametrize("document", [{}, {"a": 1}, pm_state(), pm_state(task_groups=[]), {"task_groups": 5}])
def test_a_file_without_a_plan_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(InvalidDocument):
        Taken(pm_state=document)


NAMES = st.sampled_from(["A", "B", "C", "D"])
DONE = st.sampled_from(["complete", "completed", "done", "DONE", "Finished ✅", "merged"])
UNDONE = st.sampled_from(["pending", "in_progress", "in-progress", "inProgress", "todo", "odd", None, 7, "qa_testing", "blocked"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
PLAN_KEYS = [
    "session_id",
    "mode",
    "all_tasks",
    "tasks",
    "task_groups",
    "taskGroups",
    "groups",
    "completed_groups",
    "completedGroups",
]
MORE_KEYS = [
    "skipped_groups",
    "completed_tasks",
    "execution_phases",
    "iteration",
    "completion_percentage",
    "status",
    "last_update",
]
GROUP_KEYS = ["id", "groupId", "name", "tasks", "files_affected", "branch_name", "status", "dependsOn", "complexity"]
STATUS_KEYS = ["status", "iterations", "start_time", "end_time", "commits", "test_results", "tech_lead_feedback", "blockers"]
STORY_KEYS = ["status", "current_phase", "active_agents", "iteration", "total_spawns", "decisions_log", "end_time"]


def objects(keys: list[str], values: st.SearchStrategy[Any] = JSON) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(keys) | st.text(max_size=4), values, max_size=6)


@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(
    manager=objects(PLAN_KEYS + MORE_KEYS, JSON | st.lists(objects(GROUP_KEYS) | st.text(max_size=9), max_size=3)),
    statuses=objects(["A", "B", "groups"], JSON | objects(STATUS_KEYS)),
    story=objects(STORY_KEYS),
    sent=objects(["messages"]),
)
def test_whatever_a_file_holds_it_is_taken_or_refused(
    manager: dict[str, Any], statuses: dict[str, Any], story: dict[str, Any], sent: dict[str, Any]
) -> None:
    try:
        taken = Taken(pm_state=manager, group_status=statuses, orchestrator_state=story, messages__dev_to_qa=sent)
    except InvalidDocument:
        return
    check_stable(taken)


@st.composite
def plans(draw: st.DrawFn) -> tuple[dict[str, Any], set[str]]:
    """Draw the files of a team in some spelling, and the groups that they call done."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    done = set(draw(st.lists(st.sampled_from(names), unique=True)))
    by = {name: draw(st.sampled_from(["status", "list", "group_status", "tasks"])) for name in names}
    groups: dict[str, dict[str, Any]] = {}
    for name in names:
        group = groups[name] = {
            "name": f"Work {name}",
            "tasks": [f"{name}.1: Begin {name}", f"{name}.2: End {name}"],
            "x_group": 1,
        }
        if name in done and by[name] == "status":
            group[draw(st.sampled_from(["status", "state"]))] = draw(DONE)
        elif name not in done or by[name] != "tasks":
            group["status"] = draw(UNDONE)
    listed = [name for name in names if name in done and by[name] == "list"]
    tasks = [f"{name}.{number}: said" for name in names if name in done and by[name] == "tasks" for number in (1, 2)]
    shaped: Any = (
        groups if draw(st.booleans()) else [{draw(st.sampled_from(["id", "groupId"])): name, **groups[name]} for name in names]
    )
    manager = pm_state(x_top=[1], **{draw(st.sampled_from(["task_groups", "taskGroups", "groups"])): shaped})
    manager[draw(st.sampled_from(["completed_groups", "completedGroups"]))] = listed
    manager["completed_tasks"] = tasks
    statuses = {name: {"status": draw(DONE), "x_status": 1} for name in done if by[name] == "group_status"}
    files = {"pm_state": manager, "group_status": statuses, "orchestrator_state": {"status": "running", "x_story": 1}}
    return files, done


@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(plans())
def test_in_any_spelling_done_stays_done_and_nothing_is_lost_unsaid(drawn: tuple[dict[str, Any], set[str]]) -> None:
    files, done = drawn
    taken = Taken(**files)
    assert {name for name, status in taken.statuses.items() if status == "complete"} == done, taken.said
    for extra in ("x_top", "x_group", "x_story", *(["x_status"] if files["group_status"] else [])):
        assert f"{extra} (a team has no such field)" in taken.said
    check_stable(taken)
    assert not taken.resume() & done


def check_stable(taken: Taken) -> None:
    """Check that importing what was printed gives the same files; taking over is itself a change that `iteration` counts."""
    first = taken.files
    again = Taken(**{name.replace("/", "__"): document for name, document in first.items()}).files
    for files in (first, again):
        files["orchestrator_state"].pop("iteration")
    assert again == first


PLANS = ("pm_state", "group_status", "orchestrator_state")
BOXES = ("dev_to_qa", "qa_to_techlead", "techlead_to_dev")
SEEDED = {name: example(f"team_{name}_example.json") for name in PLANS}
SEEDED |= {f"messages__{box}": example(f"team_{box}_example.json") for box in BOXES}
"""The files that the seed shows: groups A and B are complete, C is not."""
VARIED = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
KEPT_WHOLE = r"(?i)messages\[\d+\]\.[^.\[]+$"


@VARIED
@given(st.fixed_dictionaries({name: vary(document, most=2) for name, document in SEEDED.items()}))
def test_every_field_of_every_file_may_be_odd_and_each_is_accounted_for(files: dict[str, Any]) -> None:
    try:
        taken = Taken(**files)
    except InvalidDocument:
        return
    for name, document in files.items():
        root = "" if name == "pm_state" else name.replace("__", "/")
        assert find_unsaid(document, taken.made.account, root, KEPT_WHOLE) == []
    check_stable(taken)


@VARIED
@given(st.sampled_from(PLANS).flatmap(lambda name: vary(SEEDED[name], most=1).map(lambda document: {**SEEDED, name: document})))
def test_groups_stay_done_when_one_place_is_odd(files: dict[str, Any]) -> None:
    taken = Taken(**files)
    assert {taken.statuses.get("A", "complete"), taken.statuses.get("B", "complete")} == {"complete"}, taken.said
    assert not taken.resume() & {"A", "B"}


def test_a_list_that_stands_twice_in_two_spellings_is_read_once_and_the_other_is_said() -> None:
    story = SEEDED["orchestrator_state"]
    doubled = {**story, "activeAgents": story["active_agents"]}
    taken = Taken(**{**SEEDED, "orchestrator_state": doubled})
    assert find_unsaid(doubled, taken.made.account, "orchestrator_state", KEPT_WHOLE) == []
    assert "orchestrator_state.activeAgents (it says the same as orchestrator_state.active_agents)" in taken.said


def test_one_odd_entry_of_a_history_takes_no_other_with_it() -> None:
    told = {
        "status": "complete",
        "iterations": {"developer": 2, "qa": "x", "techLead": -1},
        "tech_lead_feedback": [{"decision": "meh", "feedback": "Why?"}, "Looks good", 7],
        "testResults": {"unit_tests": {"total": 3, "passed": 3, "failed": 0, "odd": 1}, "e2e_tests": {"total": 1}},
        "blockers": ["No key"],
    }
    story = {"decisionsLog": ["begun, at last", {"action": "spawn_pm", "who": "me"}], "current_phase": "odd"}
    taken = Taken(pm_state=pm_state(task_groups=["A"]), group_status={"groups": {"A": told}}, orchestrator_state=story)
    group = taken.files["group_status"]["A"]
    assert group["iterations"] == {"developer": 2, "qa": 0, "tech_lead": 0}
    assert [(one["decision"], one["feedback"]) for one in group["tech_lead_feedback"]] == [
        ("changes_requested", "Why?"),
        ("changes_requested", "Looks good"),
    ]
    assert group["test_results"] == {"unit_tests": {"total": 3, "passed": 3, "failed": 0}}
    assert group["blockers"][0]["description"] == "No key"
    assert not {"start_time", "end_time", "duration_minutes"} & {*group}, "no time is made up"
    assert [one["decision"] for one in taken.files["orchestrator_state"]["decisions_log"]] == ["begun, at last", "spawn_pm"]
    for line in (
        "group_status.groups.A.iterations.qa: 'x' is not a usable number, it is left out",
        "group_status.groups.A.iterations.techLead: -1 is not a usable number, it is left out",
        "group_status.groups.A.tech_lead_feedback[0].decision: 'meh' is not usable, it is left out",
        "group_status.groups.A.tech_lead_feedback[2]: 7 is not an object; left out",
        "group_status.groups.A.testResults.unit_tests.odd (a team has no such field)",
        "group_status.groups.A.testResults.e2e_tests: it lacks one of total, passed and failed; left out",
        "orchestrator_state.decisionsLog[1].who",
        "orchestrator_state.current_phase: 'odd' is no known phase, it is left out",
    ):
        assert line in taken.made.account.all, taken.said


def test_two_lists_of_what_is_done_both_count() -> None:
    two = pm_state(task_groups=["A", "B", "C"], completed_groups=["A"], completedGroups=["B"])
    assert Taken(pm_state=two).plan["completed_groups"] == ["A", "B"]
    twice = {"A": {"status": "pending", "state": "done"}, "group_b": "pending", "B": {"status": "complete"}}
    assert Taken(pm_state=pm_state(task_groups=["A", "B"]), group_status=twice).plan["completed_groups"] == ["A", "B"]
