"""A decision through the chat is the person's: asked for in the client's own form, and never a model's argument."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitResult

from agent_orchestrator.core.who import Surface
from agent_orchestrator.systems.workflow.events import HumanJudged
from tests.mcp.chat import Chat, Place

REPORTS = """echo '{"status": "COMPLETED"}' > "$REPORT_PATH"\n"""
HUMAN = "name: human\nsteps:\n  - {id: work, agent: coder, prompt: prompt.md, human_in_the_loop: true}\n"
TOOL = "ask_person_to_approve_or_reject"


class Person:
    """A person in front of the client's form."""

    def __init__(self, *answers: ElicitResult) -> None:
        self.answers, self.asked = list(answers), list[str]()

    async def __call__(self, _: Any, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        return self.answers.pop(0)


async def start(chat: Chat) -> str:
    """Start a run and wait until it asks."""
    run = str((await chat.call("start_run", request_id="start", workflow="workflow.yaml"))["run_id"])
    found = await chat.wait(run)
    assert found["waited_until"] == "needs_person"
    assert found["next"] == f"A person has to answer: `orc approve {run} work`."
    return run


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_only_what_the_person_says_in_the_form_counts(tmp_path: Path, mode: str) -> None:
    place = Place(tmp_path, REPORTS, HUMAN)
    yes = ElicitResult(action="accept", content={"decision": "approve", "comments": "well done"})
    person = Person(ElicitResult(action="decline"), yes)
    found: dict[str, str] = {}

    async def say(chat: Chat) -> None:
        tool = next(one for one in (await chat.client.list_tools()).tools if one.name == TOOL)
        assert sorted(tool.input_schema["properties"]) == ["request_id", "run_id", "unit"], "no argument decides"
        run = found["run"] = await start(chat)
        declined = await chat.fail(TOOL, run_id=run, unit="work", request_id="a")
        assert declined == f"The person did not answer; work of run {run} still waits."
        assert (await chat.call("run_status", run_id=run))["asks"] == ["work"]
        told = await chat.call(TOOL, run_id=run, unit="work", request_id="b")
        assert told["message"] == f"Run {run}: the person has approved work."
        assert (await chat.wait(run))["status"] == "completed"
        assert "asks nothing about work" in await chat.fail(TOOL, run_id=run, unit="work", request_id="c")

    place.talk(say, "--allow-approve", mode=mode, elicitation_callback=person)
    assert len(person.asked) == 2
    assert person.asked[0].startswith(f"Run {found['run']} asks about work")
    (judged,) = place.events(found["run"], HumanJudged)
    assert (judged.approved, judged.comments, judged.who.surface) == (True, "well done", Surface.MCP)


def test_without_a_form_and_without_the_option_nothing_is_decided(tmp_path: Path) -> None:
    place = Place(tmp_path, REPORTS, HUMAN)

    async def say(chat: Chat) -> None:
        run = await start(chat)
        assert TOOL not in await chat.tools()
        await chat.fail(TOOL, run_id=run, unit="work", request_id="a", decision="approve")

    async def say_without_a_form(chat: Chat) -> None:
        run = place.runs()[0]
        with pytest.raises(Exception, match=r"(?i)elicitation|capabilit"):
            await chat.client.call_tool(TOOL, {"run_id": run, "unit": "work", "request_id": "a"})
        assert (await chat.call("run_status", run_id=run))["asks"] == ["work"]

    place.talk(say)
    place.talk(say_without_a_form, "--allow-approve")
    place.orc("abort", place.runs()[0])
