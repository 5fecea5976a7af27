"""A person's yes or no, asked for through the client's own form (elicitation): a model can ask for it and never give it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from agent_orchestrator.config import Settings
from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import Answer
from agent_orchestrator.core.who import Surface
from agent_orchestrator.errors import Refused
from agent_orchestrator.runs.directives import send_judgement
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.surfaces.mcp.directives import find_sent, tell
from agent_orchestrator.surfaces.mcp.errors import tell_errors
from agent_orchestrator.surfaces.mcp.requests import RequestId, RunName, name_directive


class Question(BaseModel):
    """A question of a run, as the person is shown it."""

    run_id: str
    unit: str
    effect: str
    text: str


class Judgement(BaseModel):
    """The form that the person fills in."""

    decision: Literal["approve", "reject"] = Field(description="Your decision")
    comments: str = Field(default="", description="Comments; on a rejection the agent reads them")


def find_question(run_id: str, unit: str, ctx: Context[Settings, Any]) -> Question:
    """Return the question of a unit that is answered with yes or no; raise a ToolError where there is none."""
    with Orchestrator(settings=ctx.request_context.lifespan_context, surface=Surface.MCP) as orchestrator:
        return _find_question(orchestrator, run_id, unit)


def ask(question: Annotated[Question, Resolve(find_question)]) -> Elicit[Judgement]:
    """Ask the person; the question's id is part of it, so that an answer to an earlier one is none to this."""
    text = f"Run {question.run_id} asks about {question.unit} ({question.effect}):\n{question.text}"
    return Elicit(text, Judgement)


def ask_person_to_approve_or_reject(
    run_id: RunName,
    unit: Annotated[str, Field(description="The unit that waits for approval.")],
    request_id: RequestId,
    question: Annotated[Question, Resolve(find_question)],
    said: Annotated[ElicitationResult[Judgement], Resolve(ask)],
    ctx: Context[Settings, Any],
) -> dict[str, Any]:
    """Ask the person in front of this chat to approve or reject what a run waits for; only they decide."""
    if not isinstance(said, AcceptedElicitation):
        raise ToolError(f"The person did not answer; {unit} of run {run_id} still waits.")
    answer = Answer(
        id=name_directive(request_id),
        approved=said.data.decision == "approve",
        unit=question.unit,
        comments=said.data.comments,
        asked=EffectId(question.effect),
    )
    with Orchestrator(settings=ctx.request_context.lifespan_context, surface=Surface.MCP) as orchestrator:
        return _send(orchestrator, request_id, question.run_id, answer)


@tell_errors(ToolError)
def _find_question(orchestrator: Orchestrator, run_id: str, unit: str) -> Question:
    run = orchestrator.find(run_id)
    asked = [one for one in orchestrator.fold(run).state.doing if isinstance(one, AskHuman) and not one.in_words]
    found = next((one for one in asked if one.unit == unit), None)
    if found is None:
        waiting = ", ".join(one.unit for one in asked) or "nothing"
        raise Refused(why=f"Run {run.id} asks nothing about {unit} that is approved or rejected; there waits: {waiting}.")
    return Question(run_id=run.id, unit=unit, effect=found.id, text=found.question)


@tell_errors(ToolError)
def _send(orchestrator: Orchestrator, request_id: str, run_id: str, answer: Answer) -> dict[str, Any]:
    run = orchestrator.find(run_id)
    if (before := find_sent(orchestrator, run, request_id)) is not None:
        return before
    sent = send_judgement(orchestrator, run, answer)
    return tell(run, sent, f"the person has {'approved' if answer.approved else 'rejected'} {answer.unit}.")
