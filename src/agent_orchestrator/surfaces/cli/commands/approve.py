"""`orc approve`: says yes to a step that waits for a person."""

from __future__ import annotations

from typing import Any

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument, step_argument

EXAMPLE = """
orc approve f8c1
orc approve f8c1 manual_approval --comments 'looks good'
"""


@make_command("approve", EXAMPLE)
@run_argument()
@step_argument("unit")
@click.option("--comments", metavar="TEXT", default="", help="Kept in the journal.")
@click.option("--question", "asked", metavar="ID", help="Only if this is what is asked; `orc show --json` names it.")
def command(run: str | None, repo: str | None, as_json: bool, **given: Any) -> int:
    """Approve the step that is waiting for approval.

    UNIT may be left out when one step waits. If nothing is running it, the answer is recorded and `orc resume` uses it.
    """
    from agent_orchestrator.core.inputs import Answer
    from agent_orchestrator.runs.directives import new_id
    from agent_orchestrator.surfaces.cli.direct import answer

    with open_orchestrator(repo) as orchestrator:
        said = Answer(id=new_id(), approved=True, **given)
        return answer(orchestrator, pick(orchestrator, run), said, as_json=as_json)
