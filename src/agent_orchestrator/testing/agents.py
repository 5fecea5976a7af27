"""The contract that every agent adapter keeps, as one function: run it over an adapter of your own.

It starts nothing: an adapter only plans and judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_orchestrator.agents.adapter import Agent, AgentTask, Announcing, Ending, InProcessAgent, Invocation, Verdict
from agent_orchestrator.core.effects import AgentChoice, RunAgent
from agent_orchestrator.core.failure import DETERMINISTIC, Failure, FailureKind
from agent_orchestrator.core.forms import Form
from agent_orchestrator.core.ids import RunId, UnitId, effect_id
from agent_orchestrator.core.report import ReportRule
from agent_orchestrator.errors import OrcError

CONTRACT = (
    "RUN_ID", "STEP_ID", "AGENT_ID", "ITERATION", "STEP_ATTEMPT", "REPO_DIR", "PROMPT_PATH", "REPORT_PATH", "ARTIFACTS_DIR",
)  # fmt: skip
"""Variables that every agent finds in its environment."""

NONSENSE_CHOICES: tuple[dict[str, Any], ...] = ({}, {"path": 7}, {"argv": []}, {"argv": ["a\0b"]}, {"argv": 1}, {"script": 3})
NONSENSE_OUTPUTS = (b"", b"\xff\xfe\x00", b"\x1b[31m", b"{", b"[" * 5000, b'{"type": "result"}\n', b"x" * 300_000)
FOREIGN_REPORTS = (
    b'{"status": "COMPLETED", "run_id": "other"}',
    b'{"status": "COMPLETED", "step_id": "other"}',
    b'{"status": "WONDERFUL"}',
    b'{"status": null}',
    b"not json",
    b"[" * 100_000,
    b"",
)


def make_task(folder: Path, choice: AgentChoice, *, required: bool = False, form: Form | None = None) -> AgentTask:
    """Return a task whose files stand in `folder`, as the engine would make it."""
    launch = folder / "launch"
    workdir = folder / "tree"
    for made in (launch, workdir, folder / "artifacts"):
        made.mkdir(parents=True, exist_ok=True)
    effect = RunAgent(
        id=effect_id(RunId("run1"), UnitId("build"), 2, 3, 4, "agent"),
        unit="build",
        agent=choice,
        role="coder",
        report=ReportRule(
            words={"COMPLETED": "COMPLETED", "FAILED": "FAILED"}, required=required, ids={"run_id": "run1", "step_id": "build"}
        ),
        iteration=2,
        attempt=3,
        prompt_text="Do it.\n",
        env={"GIVEN": "by the step"},
        inputs={"plan-1": ("docs/plan.md",)},
        artifacts_dir="artifacts",
    )
    task = AgentTask(
        effect=effect,
        run="run1",
        home=folder,
        workdir=workdir,
        launch_dir=launch,
        inherited_env={"INHERITED": "yes"},
        form=form,
    )
    task.prompt.write_text("Do it.\n", "utf-8")
    return task


def make_ending(task: AgentTask, exit_code: int | None = 0, cause: Failure | None = None) -> Ending:
    """Return the end of that task's launch."""
    out, err = task.launch_dir / "out", task.launch_dir / "err"
    return Ending(exit_code=exit_code, cause=cause, started_us=1, ended_us=2, out=out, err=err)


def check_agent(
    agent: Agent | InProcessAgent, choice: AgentChoice, folder: Path, environ: Mapping[str, str] | None = None
) -> None:
    """Raise AssertionError where the adapter breaks the contract.

    `choice` is one that could start. `environ` is the environment of the calling process: nothing of it may be handed on.
    """
    assert agent.name == choice.name, "an adapter goes by its own name"
    _check_preflight(agent, choice)
    if isinstance(agent, InProcessAgent):
        _check_part(agent, choice, folder)
        return
    assert agent.appends_feedback in {True, False}
    task = make_task(folder / "plan", choice)
    _check_plan(agent.plan(task), task, environ or {})
    _check_judging(agent, choice, folder)


def _check_preflight(agent: Agent | InProcessAgent, choice: AgentChoice) -> None:
    agent.preflight(choice)
    for options in NONSENSE_CHOICES:
        with suppress(OrcError):
            agent.preflight(AgentChoice(name=choice.name, options=options))


def _check_plan(plan: Invocation, task: AgentTask, environ: Mapping[str, str]) -> None:
    assert plan.argv, "there is a program"
    assert plan.argv[0], "the program has a name"
    words: list[object] = [*plan.argv, *plan.env, *plan.env.values()]
    assert all(isinstance(word, str) and "\0" not in word for word in words), "nothing but strings without NUL bytes"
    assert all(name and "=" not in name for name in plan.env)
    for name in CONTRACT:
        assert name in plan.env, f"{name} is part of the contract"
    assert plan.env["REPORT_PATH"] == str(task.report)
    assert plan.env["GIVEN"] == "by the step", "the step's own variables have the last word"
    assert plan.env["DEP_PLAN_1_ARTIFACTS"] == str(task.workdir / "docs/plan.md")
    assert plan.env["INHERITED"] == task.inherited_env["INHERITED"], "what is inherited is handed on"
    ours = {name for name, value in environ.items() if len(value) > 1 and plan.env.get(name) == value}
    assert not ours, f"nothing of this process is handed on unasked: {', '.join(sorted(ours))}"
    assert plan.stdin is None or plan.stdin.is_file()


def _check_judging(agent: Agent, choice: AgentChoice, folder: Path) -> None:
    task = make_task(folder / "judge", choice, required=True)
    good = b'{"status": "COMPLETED"}'
    ending = make_ending(task)
    for output in NONSENSE_OUTPUTS:
        ending.out.write_bytes(output)
        if isinstance(agent, Announcing):
            assert agent.watch_result(task, ending.out)() in {True, False}, "a look at nonsense is a look"
        ending.err.write_bytes(output)
        for exit_code in (1, 2, 126, 127, 137, 255):
            task.report.write_bytes(good)
            _is_failure(agent.judge(task, make_ending(task, exit_code)), f"exit code {exit_code}")
        _is_failure(agent.judge(task, make_ending(task, None)), "no exit code")
        for kind in FailureKind:
            cause = Failure(kind=kind, message="because")
            verdict = agent.judge(task, make_ending(task, 0, cause))
            _is_failure(verdict, f"the cause {kind}")
    for report in FOREIGN_REPORTS:
        task.report.write_bytes(report)
        _is_failure(agent.judge(task, ending), f"the report {report[:60]!r}")
    task.report.unlink()
    ending.out.unlink()
    ending.err.unlink()
    for exit_code in (126, 127):
        failure = _is_failure(agent.judge(task, make_ending(task, exit_code)), f"exit code {exit_code}")
        assert failure.kind in DETERMINISTIC, "a program that cannot be run is not tried again"


def _check_part(agent: InProcessAgent, choice: AgentChoice, folder: Path) -> None:
    task = make_task(folder / "part", choice)
    assert agent.delay_s(task) >= 0
    verdict = agent.act(task)
    assert (verdict.failure is None) == (verdict.report is not None and verdict.report.status != "FAILED")


def _is_failure(verdict: Verdict, why: str) -> Failure:
    assert verdict.failure is not None, f"{why} is never success"
    assert verdict.failure.message.strip(), f"{why}: a failure says why"
    return verdict.failure
