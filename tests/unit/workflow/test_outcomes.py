"""The outcomes of a step, rule by rule; the transcripts in tests/scenarios show them together."""

from __future__ import annotations

import pytest

from agent_orchestrator.core.effects import RunAgent, RunCheck, Wait
from agent_orchestrator.core.failure import DETERMINISTIC, FailureKind
from agent_orchestrator.core.inputs import Pause, Resume, TimerFired
from agent_orchestrator.core.limits import FEEDBACK_ENTRIES_MAX
from agent_orchestrator.core.units import US
from agent_orchestrator.systems.workflow.system import WORKFLOW
from tests.scenarios.world import World, failing


def steps(*lines: str) -> str:
    return "name: test\nsteps:\n" + "".join(f"  - {{{line}}}\n" for line in lines)


PLAIN = steps("id: a, agent: coder, prompt: p.md")
PAIR = steps("id: a, agent: coder, prompt: p.md", "id: b, agent: coder, prompt: p.md, needs: [a]")
LOOP = steps("id: a, agent: coder, prompt: p.md", "id: b, agent: reviewer, prompt: p.md, needs: [a], loop_back_to: a")


def agent_of(world: World, step: str) -> RunAgent:
    effect = world.doing(step)
    assert isinstance(effect, RunAgent)
    return effect


ATTEMPT_GOES_ON = [FailureKind.STOPPED, FailureKind.RATE_LIMITED, FailureKind.BUDGET]
RETRIED = [kind for kind in FailureKind if kind not in (*DETERMINISTIC, *ATTEMPT_GOES_ON)]


@pytest.mark.parametrize("kind", ATTEMPT_GOES_ON)
def test_what_is_no_failure_of_the_agent_costs_no_attempt(kind: FailureKind) -> None:
    world = World(PLAIN, max_attempts=1)
    world.agent("a", failure=failing(kind, "not now"), session="s1")
    again = agent_of(world, "a")
    assert (world.step("a").attempts, again.attempt, again.session) == (1, 1, "s1")
    assert again.feedback == ()


@pytest.mark.parametrize("kind", RETRIED)
def test_what_may_end_differently_is_tried_again(kind: FailureKind) -> None:
    world = World(PLAIN)
    world.agent("a", failure=failing(kind, "went wrong"))
    assert isinstance(world.doing("a"), Wait)
    assert (world.step("a").status, world.step("a").last_error, world.step("a").attempts) == ("PENDING", "went wrong", 1)


@pytest.mark.parametrize("kind", sorted(DETERMINISTIC))
def test_what_would_only_happen_again_is_not(kind: FailureKind) -> None:
    world = World(PLAIN, max_attempts=9)
    world.agent("a", failure=failing(kind, "never"))
    assert (world.step("a").status, world.step("a").last_error, world.step("a").attempts) == ("FAILED", "never", 1)
    assert WORKFLOW.summary(world.state).status == "failed"


def test_a_step_may_have_its_own_number_of_attempts() -> None:
    world = World(steps("id: a, agent: coder, prompt: p.md, max_attempts: 1"), max_attempts=9)
    world.agent("a", failure=failing(FailureKind.EXIT))
    assert world.step("a").status == "FAILED"


def test_a_retry_is_told_what_went_wrong_and_forgets_it_when_done() -> None:
    world = World(PLAIN)
    world.agent("a", failure=failing(FailureKind.EXIT, "no network"), tail="connecting…\nno network")
    world.tell(TimerFired(effect=world.doing("a").id))
    effect = agent_of(world, "a")
    assert effect.feedback == ({"attempt": 1, "error": "no network", "tail": "connecting…\nno network"},)
    assert (effect.attempt, effect.iteration) == (2, 0)
    world.agent("a")
    assert world.state.works["a"].feedback == ()


def test_feedback_is_bounded_and_keeps_the_newest() -> None:
    world = World(LOOP, max_iterations=50)
    for turn in range(FEEDBACK_ENTRIES_MAX + 3):
        world.agent("a")
        world.agent("b", {"gate_failure": f"issue {turn}"})
    feedback = agent_of(world, "a").feedback
    assert len(feedback) == FEEDBACK_ENTRIES_MAX
    assert feedback[-1]["error"] == f"Gate failure: issue {FEEDBACK_ENTRIES_MAX + 2}"


def test_last_error_is_cleared_when_the_step_starts_again() -> None:
    world = World(PLAIN)
    world.agent("a", failure=failing(FailureKind.EXIT))
    world.tell(TimerFired(effect=world.doing("a").id))
    assert (world.step("a").status, world.step("a").last_error, world.step("a").ended_at) == ("RUNNING", None, None)


@pytest.mark.parametrize(
    ("report", "text"),
    [
        ({"gate_failure": "P0 found", "summary": "s"}, "Gate failure: P0 found"),
        ({"gate_failure": True, "summary": "three issues", "logs": ["l"]}, "Gate failure: three issues"),
        ({"gate_failure": True, "logs": ["first", "last", ""]}, "Gate failure: last"),
        ({"gate_failure": True}, "Gate failure: the report says so"),
        ({"gate_failure": "no", "status": "FAILED"}, "Gate failure: no"),
    ],
)
def test_a_failed_gate_says_why(report: dict[str, object], text: str) -> None:
    world = World(LOOP)
    world.agent("a")
    world.agent("b", report)
    assert world.step("b").last_error == text
    assert (world.step("b").status, world.step("b").iteration_count, world.step("a").iteration_count) == ("PENDING", 1, 1)


@pytest.mark.parametrize("value", [False, None, ""])
def test_a_gate_failure_that_says_no_is_none(value: object) -> None:
    world = World(LOOP)
    world.agent("a")
    world.agent("b", {"gate_failure": value})
    assert WORKFLOW.summary(world.state).status == "completed"


@pytest.mark.parametrize("value", [1, 0, ["x"], {"why": "x"}])
def test_a_gate_failure_that_is_neither_is_not_guessed_at(value: object) -> None:
    world = World(LOOP)
    world.agent("a")
    world.agent("b", {"gate_failure": value})
    assert isinstance(world.doing("b"), Wait)
    assert "gate_failure is" in (world.step("b").last_error or "")


def test_the_gate_runs_at_most_max_iterations_times() -> None:
    world = World(LOOP, max_iterations=4)
    executions = 0
    while world.step("b").status != "FAILED":
        world.agent("a")
        executions += 1
        world.agent("b", {"gate_failure": True})
    assert executions == 4
    assert (world.step("b").iteration_count, world.step("a").iteration_count) == (3, 3)
    assert WORKFLOW.summary(world.state).status == "limit_reached"


def test_attempts_begin_at_0_again_after_a_loop_back() -> None:
    world = World(LOOP)
    world.agent("a", failure=failing(FailureKind.EXIT))
    world.tell(TimerFired(effect=world.doing("a").id))
    world.agent("a")
    world.agent("b", {"gate_failure": True})
    assert (world.step("a").attempts, world.step("b").attempts, world.step("b").started_at) == (1, 0, None)


def test_a_loop_back_sets_a_failed_branch_back_too() -> None:
    text = steps(
        "id: a, agent: coder, prompt: p.md",
        "id: side, agent: coder, prompt: p.md, needs: [a], max_attempts: 1",
        "id: gate, agent: reviewer, prompt: p.md, needs: [a], loop_back_to: a",
    )
    world = World(text)
    world.agent("a")
    world.agent("side", failure=failing(FailureKind.EXIT))
    assert world.step("side").status == "FAILED"
    world.agent("gate", {"gate_failure": True})
    assert world.statuses() == {"a": "RUNNING", "side": "PENDING", "gate": "PENDING"}
    assert WORKFLOW.summary(world.state).failed == 0


def test_a_stopped_siblings_attempt_is_recorded_as_interrupted() -> None:
    text = steps(
        "id: a, agent: coder, prompt: p.md",
        "id: side, agent: coder, prompt: p.md, needs: [a]",
        "id: gate, agent: reviewer, prompt: p.md, needs: [a], loop_back_to: a",
    )
    world = World(text)
    world.agent("a")
    stopped = world.doing("side").id
    world.agent("gate", {"gate_failure": True})
    assert not world.state.doing.wants(stopped)
    assert WORKFLOW.details(world.state)["steps"]["side"]["launches"][0]["failure"] == "stopped"
    assert world.step("side").last_error == "interrupted: gate looped back to a"


def test_evidence_of_a_check_is_kept() -> None:
    world = World(steps("id: a, agent: coder, prompt: p.md, check: make test"))
    world.agent("a")
    assert isinstance(world.doing("a"), RunCheck)
    world.check_end("a", tail="ok", tree_before="t", tree_after="t")
    (evidence,) = WORKFLOW.details(world.state)["steps"]["a"]["evidence"]
    kept = {key: evidence[key] for key in ("command", "exit_code", "duration_s", "tail", "tree", "void")}
    assert kept == {"command": "make test", "exit_code": 0, "duration_s": 1.0, "tail": "ok", "tree": "t", "void": False}


def test_a_green_check_in_an_unknown_tree_counts() -> None:
    world = World(steps("id: a, agent: coder, prompt: p.md, check: make test"))
    world.agent("a")
    world.check_end("a", tree_before=None, tree_after="t")
    assert world.step("a").status == "COMPLETED"


def test_a_void_check_that_then_holds_completes_the_step() -> None:
    world = World(steps("id: a, agent: coder, prompt: p.md, check: make test"))
    world.agent("a")
    world.check_end("a", exit_code=1, tree_before="t1", tree_after="t2")
    world.check_end("a", exit_code=0, tree_before="t2", tree_after="t2")
    assert world.step("a").status == "COMPLETED"
    assert [one["void"] for one in WORKFLOW.details(world.state)["steps"]["a"]["evidence"]] == [True, False]


def test_an_interrupted_attempt_is_not_counted_again_and_has_less_time_left() -> None:
    world = World(steps("id: a, agent: coder, prompt: p.md, timeout: 10m"), idle_timeout_s=30.0)
    first = agent_of(world, "a")
    world.tell(Pause(id="p", now=True))
    world.agent("a", failure=failing(FailureKind.STOPPED))
    world.tell(Resume(id="r"))
    second = agent_of(world, "a")
    assert (first.timeout_s, second.timeout_s, second.idle_timeout_s) == (600.0, 599.0, 30.0)
    assert (first.attempt, second.attempt, world.step("a").attempts) == (1, 1, 1)
    assert first.id != second.id
    world.agent("a", failure=failing(FailureKind.EXIT))
    world.tell(TimerFired(effect=world.doing("a").id))
    assert agent_of(world, "a").timeout_s == 600.0


def test_an_agent_that_ended_before_the_stop_reached_it_still_counts() -> None:
    world = World(PAIR)
    world.tell(Pause(id="p", now=True))
    world.agent("a")
    assert world.statuses() == {"a": "COMPLETED", "b": "PENDING"}
    assert WORKFLOW.summary(world.state).status == "paused"


def test_a_stop_that_outlives_the_pause_starts_the_attempt_again() -> None:
    world = World(PLAIN)
    world.tell(Pause(id="p", now=True))
    world.tell(Resume(id="r"))
    world.agent("a", failure=failing(FailureKind.STOPPED))
    assert agent_of(world, "a").id.endswith("i0.a1.l2.agent")


def test_ten_thousand_steps_in_a_chain_run_through() -> None:
    needs = ("", *(f", needs: [s{n}]" for n in range(9_999)))
    text = steps(*(f"id: s{n}, agent: x, prompt: p{need}" for n, need in enumerate(needs)))
    world = World(text, careful=False)
    for n in range(10_000):
        world.agent(f"s{n}")
    assert WORKFLOW.summary(world.state).done == 10_000
    assert world.now_us == world.context.created_us + 10_000 * US
    world.check()


def test_the_environment_of_a_condition_is_the_captured_one() -> None:
    text = steps("id: a, agent: x, prompt: p, when: env.CI == '1'", "id: b, agent: x, prompt: p, when: env.OTHER == null")
    world = World(text, environment={"CI": "0", "OTHER_NAME": "x"})
    assert world.statuses() == {"a": "SKIPPED", "b": "RUNNING"}
    assert world.spec.when_env == {"CI": "0"}
