"""The real claude and codex take the schema of every role, and a whole report with everything in it arrives decoded."""

from __future__ import annotations

import subprocess
import tomllib
from typing import Any

import msgspec
import pytest

from agent_orchestrator.agents import claude, codex
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.forms import example_of, read_fields, shape_of
from agent_orchestrator.core.report import Report, check_report
from agent_orchestrator.testing.agents import make_ending, make_task
from agent_orchestrator.testing.model_server import Reply
from agent_orchestrator.testing.strict_schema import answer_faults
from tests.clients.rig import MODELS, PATIENCE_S, Rig
from tests.conformance.test_reports import ROLES, folded

AGENTS = {"claude": claude.AGENT, "codex": codex.AGENT}
DISTINCT = {form: role for role, form in reversed(ROLES.items())}
"""Roles that add different things: two with one form are asked in the same way."""


@pytest.mark.parametrize("role", DISTINCT.values())
@pytest.mark.parametrize("client", list(AGENTS))
def test_a_report_of_every_role_arrives(client: str, role: str, rig: Rig) -> None:
    form, agent = ROLES[role], AGENTS[client]
    learned = [{"type": "pattern", "lesson": "less is more"}]
    told = {**example_of(form, "COMPLETED"), "metrics": {"tests": 3.0}, "learnings": learned}
    rig.lane(client, [Reply(folded(told, shape_of(form)))])
    options: dict[str, Any] = tomllib.loads((rig.repo / ".orc.toml").read_text())["agents"][client]
    del options["model"]
    task = make_task(rig.repo.parent, AgentChoice(name=client, model=MODELS[client], options=options), form=form)
    task = msgspec.structs.replace(task, workdir=rig.repo, inherited_env=rig.environ)
    plan, ending = agent.plan(task), make_ending(task)
    assert plan.stdin is not None
    with plan.stdin.open() as prompt, ending.out.open("wb") as out, ending.err.open("wb") as err:
        done = subprocess.run(plan.argv, env=plan.env, cwd=rig.repo, stdin=prompt, stdout=out, stderr=err, timeout=PATIENCE_S)
    verdict = agent.judge(task, msgspec.structs.replace(ending, exit_code=done.returncode))
    assert verdict.failure is None, (verdict.failure, ending.err.read_text()[-2000:])
    wanted = check_report(told | task.effect.report.ids, task.effect.report)
    assert isinstance(wanted, Report)
    assert verdict.report == wanted
    if form is not None:
        assert read_fields(wanted, form) == read_fields(verdict.report, form)
        assert set(verdict.report.fields) == {*form.__struct_fields__, *task.effect.report.ids}


def test_claude_asks_its_model_again_for_an_answer_that_breaks_the_schema(rig: Rig) -> None:
    lane = rig.lane("claude", [Reply({"status": "WONDERFUL"}, fits=False), Reply({"status": "COMPLETED", "summary": "done"})])
    summary, run = rig.run(agent="claude")
    assert summary.status == "completed", rig.state(run)
    assert "Output does not match required schema" in str(lane.requests[1]["messages"][-1])
    schema = next(tool["input_schema"] for tool in lane.requests[0]["tools"] if tool["name"] == "StructuredOutput")
    assert answer_faults({"status": "WONDERFUL"}, schema)
    assert schema["properties"]["status"] == {"type": "string", "enum": ["COMPLETED", "FAILED"]}
