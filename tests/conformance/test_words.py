"""One vocabulary for every role of every system; what asks for a judgement is never answered by being done."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.agents.scripted import AGENT
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.report import FAILURES, SUCCESSES, Report, ReportRule, check_report, common_words
from agent_orchestrator.systems.loop import effects as loop
from agent_orchestrator.systems.phases.reports import TURNS
from agent_orchestrator.systems.swarm import effects as swarm
from agent_orchestrator.systems.team.roles import Purpose, rule_of
from agent_orchestrator.systems.workflow import effects as workflow
from agent_orchestrator.testing.agents import make_task

RULES = {
    "workflow": ReportRule(words=workflow.WORDS, aliases=workflow.ALIASES),
    "loop": ReportRule(words=loop.WORDS, aliases=common_words(loop.WORDS, completed="OK"), any_status=True),
    "loop.confirm": ReportRule(words=loop.JUDGES, aliases=common_words(loop.JUDGES, completed=None)),
    "swarm": ReportRule(words=swarm.WORDS, aliases=swarm.ALIASES),
    **{
        f"phases.{name}": ReportRule(words={word: word for word in one.words}, aliases=one.aliases) for name, one in TURNS.items()
    },
    **{f"team.{purpose.value}": rule_of(purpose, "run1", "build") for purpose in Purpose},
}
DONE = {
    "workflow": "COMPLETED",
    "loop": "OK",
    "swarm": "DONE",
    "phases.execute": "SUCCESS",
    "phases.repair": "FIXED",
    "team.develop": "READY_FOR_QA",
}
"""The word of a role that has done its work, for the roles that have one."""


def read(word: str, role: str) -> str | None:
    said = check_report({"status": word}, RULES[role])
    return said.status if isinstance(said, Report) else None


@pytest.mark.parametrize("role", list(RULES))
def test_a_word_of_success_means_that_the_work_is_done_and_never_a_judgement(role: str) -> None:
    for word in SUCCESSES:
        own = RULES[role].words
        assert read(word.lower(), role) == (word if word in own else DONE.get(role)), word


@pytest.mark.parametrize("role", list(RULES))
def test_a_word_of_failure_is_known_everywhere(role: str) -> None:
    for word in FAILURES:
        own = RULES[role].words
        assert read(word, role) == (word if word in own else "FAILED"), word


@pytest.mark.parametrize("role", list(RULES))
def test_another_word_is_refused_with_the_words_of_the_role(role: str) -> None:
    said = check_report({"status": "WONDERFUL"}, RULES[role])
    if RULES[role].any_status:
        assert isinstance(said, Report)
        return
    assert isinstance(said, Failure)
    assert said.kind is FailureKind.REPORT_INVALID
    assert said.message.endswith(f"it must be one of {', '.join(RULES[role].words)}")


@pytest.mark.parametrize("script", ["[]", "- step: other\n", "- say: hello\n"])
@pytest.mark.parametrize("role", list(RULES))
def test_the_word_of_a_rehearsal_that_says_none_passes_in_every_role(role: str, script: str, tmp_path: Path) -> None:
    file = tmp_path / "script.yaml"
    file.write_text(script)
    task = make_task(tmp_path, AgentChoice(name="scripted", options={"script": str(file)}))
    rule = msgspec.structs.replace(RULES[role], required=True, ids={})
    task = msgspec.structs.replace(task, effect=msgspec.structs.replace(task.effect, report=rule))
    verdict = AGENT.act(task)
    assert verdict.failure is None
    assert verdict.report is not None
    assert verdict.report.status == next(iter(rule.words))
