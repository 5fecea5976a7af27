"""The effects of a step, its results, and the items of a loop."""

from __future__ import annotations

import msgspec
import pytest

from agent_orchestrator.core.effects import AgentChoice, AskHuman, AwaitGates, ReadFile
from agent_orchestrator.core.events import AgentsSet
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.inputs import FileRead, TimerFired
from agent_orchestrator.core.report import Report, check_report
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.systems.workflow.decide.outcomes import inside, stringify
from agent_orchestrator.systems.workflow.events import SpecReplaced, StateEdited
from agent_orchestrator.systems.workflow.items import items_in_text
from agent_orchestrator.systems.workflow.system import WORKFLOW
from tests.scenarios.world import HOME, RUN, World, failing, rule_of
from tests.unit.workflow.test_outcomes import PAIR, PLAIN, agent_of, steps


def test_the_effect_carries_what_the_agent_needs() -> None:
    text = steps(
        "id: a, agent: coder, prompt: p.md",
        "id: b, agent: reviewer, prompt: p.md, needs: [a], human_in_the_loop: true, model: big",
    )
    world = World(
        text,
        agents={"": AgentChoice(name="command"), "reviewer": AgentChoice(name="claude", model="small")},
        variables={"X": "1"},
        env={"K": "V"},
        timeout_s=9.0,
    )
    world.agent("a", {"artifacts": ["x.py"]})
    effect = agent_of(world, "b")
    assert effect.agent == AgentChoice(name="claude", model="big")
    assert (effect.role, effect.prompt_file, effect.timeout_s) == ("reviewer", "p.md", 9.0)
    assert (effect.variables, effect.env, effect.inputs) == ({"X": "1", "run_id": RUN}, {"K": "V"}, {"a": ("x.py",)})
    assert effect.answer_file == f".agents/runs/{RUN}/manual_inputs/{RUN}__b.json"
    assert effect.report.ids == {"run_id": RUN, "step_id": "b", "agent": "reviewer"}


def test_an_agent_has_what_there_was_when_it_started_however_late_somebody_looks() -> None:
    world = World(steps("id: a, agent: x, prompt: p.md", "id: b, agent: x, prompt: p.md, needs: [a]"), variables={"X": "1"})
    world.agent("a", {"artifacts": ["x.py"]})
    began = world.doing("b")
    late = Folded(WORKFLOW, WORKFLOW.fresh(world.spec, world.context), 0, world.context.created_us)
    other = msgspec.structs.replace(world.spec, variables={"X": "2"}, timeout_s=1.0, env={"K": "V"})
    later = (
        AgentsSet(agents={"": AgentChoice(name="claude")}),
        StateEdited(changes={"a": {"artifacts": ["y.py"]}, "b": {"attempts": 7, "iteration_count": 7}}),
        SpecReplaced(spec=other),
    )
    for event, at_us in (*world.journal, *((event, world.now_us) for event in later)):
        late.apply([event], at_us)
    assert late.state.doing.of("b") == began


@pytest.mark.parametrize(
    ("step", "choice", "required"),
    [
        ("id: b, agent: x, prompt: p.md, needs: [a]", "command", False),
        ("id: b, agent: x, prompt: p.md, needs: [a]", "wrapper", True),
        ("id: b, agent: x, prompt: p.md, needs: [a], loop_back_to: a", "command", True),
        ("id: b, agent: x, prompt: p.md, needs: [a], human_in_the_loop: true", "command", True),
    ],
)
def test_a_report_is_required_where_its_words_are_needed(step: str, choice: str, required: bool) -> None:
    world = World(steps("id: a, agent: x, prompt: p.md", step), agents={"": AgentChoice(name=choice)})
    world.agent("a", {})
    assert rule_of(world.doing("b")).required is required


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        *((word, "COMPLETED") for word in ("success", "OK", "Done", "PASSED", "completed")),
        *((word, "FAILED") for word in ("failed", "FAIL", "error")),
    ],
)
def test_the_words_of_a_report_and_their_aliases(word: str, meaning: str) -> None:
    report = check_report({"status": word}, rule_of(World(PLAIN).doing("a")))
    assert isinstance(report, Report)
    assert report.status == meaning


def test_a_shell_step_is_the_shells_whatever_the_default_is() -> None:
    world = World(steps("id: a, agent: shell, prompt: run.sh"), agents={"": AgentChoice(name="wrapper", options={"path": "w"})})
    assert agent_of(world, "a").agent == AgentChoice(name="shell")


def test_metrics_are_strings() -> None:
    metrics = {"a": "text", "b": 87.5, "c": 245, "d": True, "e": False, "f": None, "g": [1, "x"], "h": {"i": 1.0}, "j": 10**20}
    assert stringify(metrics) == {
        "a": "text",
        "b": "87.5",
        "c": "245",
        "d": "true",
        "e": "false",
        "f": "null",
        "g": '[1,"x"]',
        "h": '{"i":1.0}',
        "j": "100000000000000000000",
    }


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("PLAN.md", "PLAN.md"),
        ("./a/../b.py", "b.py"),
        ("/repo/src/x.py", "src/x.py"),
        ("..hidden", "..hidden"),
        ("../x", None),
        ("a/../../x", None),
        ("/etc/passwd", None),
        ("/repository/x", None),
        ("/repo", None),
        (".", None),
        ("", None),
        ("..", None),
        ("a\0b", None),
    ],
)
def test_artifacts_stay_inside_the_tree(path: str, kept: str | None) -> None:
    assert inside(HOME, path) == kept


def test_artifacts_are_relative_to_the_worktree_and_print_outs_to_the_repository() -> None:
    world = World(PLAIN, workdir="/trees/one")
    world.agent("a", {"artifacts": ["/trees/one/x.py", "/repo/y.py"]})
    assert world.step("a").artifacts == ["x.py"]
    assert world.step("a").report_path == f"/repo/.agents/runs/{RUN}/reports/{RUN}__a.json"
    assert world.document()["repo_dir"] == "/trees/one"
    assert "'/repo/y.py' was refused" in WORKFLOW.details(world.state)["steps"]["a"]["warnings"][0]


def test_the_same_warning_is_kept_once() -> None:
    world = World(PLAIN)
    world.agent("a", {"status": "FAILED", "artifacts": ["../x"]})
    world.tell(TimerFired(effect=world.doing("a").id))
    world.agent("a", {"status": "FAILED", "artifacts": ["../x"]})
    assert len(WORKFLOW.details(world.state)["steps"]["a"]["warnings"]) == 1


def test_results_of_an_earlier_attempt_do_not_linger() -> None:
    world = World(PLAIN)
    world.agent("a", {"status": "FAILED", "artifacts": ["half.py"], "logs": ["tried"], "metrics": {"x": 1}})
    assert world.step("a").logs == ["tried"]
    world.tell(TimerFired(effect=world.doing("a").id))
    world.agent("a", {"logs": ["done"]})
    assert (world.step("a").artifacts, world.step("a").logs, world.step("a").metrics) == ([], ["done"], {})


def test_report_path_is_null_until_a_report_was_collected() -> None:
    world = World(PAIR)
    world.agent("a")
    world.agent("b", {})
    assert world.step("a").report_path is None
    assert (world.step("b").report_path or "").endswith(f"/reports/{RUN}__b.json")


def test_an_item_reaches_the_agent_as_json_and_in_the_prompt() -> None:
    world = World(steps("id: a, agent: coder, prompt: p.md, loop: {items: [x, {y: 1}], item_var: Module}"), env={"K": "V"})
    first = agent_of(world, "a")
    assert first.env == {"K": "V", "LOOP_MODULE": '"x"', "LOOP_INDEX": "0"}
    assert (first.variables["Module"], first.variables["index"]) == ("x", "0")
    world.agent("a")
    second = agent_of(world, "a")
    assert second.env == {"K": "V", "LOOP_MODULE": '{"y":1}', "LOOP_INDEX": "1"}
    assert WORKFLOW.details(world.state)["steps"]["a"]["item"] == 1


LOOPED = steps("id: a, agent: x, prompt: p", "id: b, agent: x, prompt: p, needs: [a], loop: {items_from_step: a}")


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ('["x", {"y": 1}]', ("x", {"y": 1})),
        ('{"items": [1, 2], "more": true}', (1, 2)),
        ('{"items": "x"}', ("one.md", "two.md")),
        ('{"stories": []}', ("one.md", "two.md")),
        ('"x"', ("one.md", "two.md")),
        ("# A plan\n- not JSON\n", ("one.md", "two.md")),
        ("[" * 100_000, ("one.md", "two.md")),
        (None, ("one.md", "two.md")),
    ],
)
def test_items_from_a_step_are_what_its_first_artifact_lists_or_else_its_artifacts(
    text: str | None, items: tuple[object, ...]
) -> None:
    world = World(LOOPED)
    world.agent("a", {"artifacts": ["one.md", "two.md"], "metrics": {"items": "not a list"}})
    effect = world.doing("b")
    assert isinstance(effect, ReadFile)
    assert effect.path == "one.md"
    missing = failing(FailureKind.LAUNCH, "one.md does not exist") if text is None else None
    world.tell(FileRead(effect=effect.id, text=text or "", failure=missing))
    assert world.state.works["b"].items == items


def test_items_from_a_step_without_artifacts_are_none() -> None:
    world = World(LOOPED)
    world.agent("a", {})
    assert (world.step("b").status, world.step("b").logs) == ("COMPLETED", ["The loop has no items: nothing was done."])


def test_more_than_a_hundred_items_fail_a_step_that_does_not_say_how_many_to_take() -> None:
    world = World(LOOPED)
    world.agent("a", {"metrics": {"items": list(range(101))}})
    assert world.step("b").status == "FAILED"
    assert world.step("b").last_error == "the loop has 101 items, more than 100; its max_iterations must say how many to take"


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ('["a", 1]', ["a", 1]),
        ("- a\n- {b: 1}\n", ["a", {"b": 1}]),
        ("one\n\n  two  \n", ["one", "two"]),
        ("key: value\n", ["key: value"]),
        ("[broken\nlines", ["[broken", "lines"]),
        ('{"a": 1}', None),
        ("", []),
    ],
)
def test_a_file_of_items_is_a_list_or_lines(text: str, items: list[object] | None) -> None:
    assert items_in_text(text) == items


def test_a_file_of_items_that_is_missing_fails_the_step() -> None:
    world = World(steps("id: a, agent: x, prompt: p, loop: {items_from_artifact: todo.json}"))
    assert isinstance(world.doing("a"), ReadFile)
    world.tell(FileRead(effect=world.doing("a").id, failure=failing(FailureKind.LAUNCH, "todo.json does not exist")))
    assert world.step("a").last_error == "the loop's items could not be read: todo.json does not exist"
    assert world.step("a").status == "FAILED"


def test_a_gate_in_the_middle_of_a_loop_begins_the_items_again() -> None:
    text = steps("id: a, agent: x, prompt: p", "id: b, agent: x, prompt: p, needs: [a], loop_back_to: a, loop: {items: [1, 2]}")
    world = World(text)
    world.agent("a")
    world.agent("b", {"artifacts": ["one"]})
    world.agent("b", {"gate_failure": True})
    world.agent("a")
    assert (agent_of(world, "b").env["LOOP_ITEM"], world.step("b").artifacts) == ("1", [])


def test_a_human_step_is_asked_about_the_work_of_its_agent() -> None:
    world = World(steps("id: a, agent: x, prompt: p, human_in_the_loop: true"))
    launch = world.doing("a").id
    world.agent("a", {"summary": "All done."})
    question = world.doing("a")
    assert isinstance(question, AskHuman)
    assert (question.after, question.question) == (launch, "Approve step a? All done.")
    assert world.step("a").manual_input_path == f"/repo/{question.answer_file}"


def test_gates_are_asked_of_the_file() -> None:
    world = World(steps("id: a, agent: x, prompt: p, gates: [qa, legal]"), gate_state_file="/repo/gates.json")
    effect = world.doing("a")
    assert isinstance(effect, AwaitGates)
    assert (effect.file, effect.names) == ("/repo/gates.json", ("qa", "legal"))
    assert WORKFLOW.summary(world.state).status == "waiting"


def test_summary_names_a_few_at_work() -> None:
    world = World(steps(*(f"id: s{n}, agent: x, prompt: p" for n in range(9))), max_parallel=9)
    summary = WORKFLOW.summary(world.state)
    assert (summary.status, summary.done, summary.total, summary.doing) == ("running", 0, 9, ("s0", "s1", "s2", "s3", "s4"))


def test_a_person_waited_for_is_in_the_summary() -> None:
    world = World(steps("id: a, agent: x, prompt: p, human_in_the_loop: true"))
    world.agent("a", {})
    summary = WORKFLOW.summary(world.state)
    assert (summary.status, summary.stop, summary.detail, summary.ended) == ("waiting", "waiting_on_human", "approval: a", False)
