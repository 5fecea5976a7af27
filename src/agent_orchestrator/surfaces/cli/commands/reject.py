"""`orc reject`: says no to a step that waits for a person, and why."""

from __future__ import annotations

from typing import Any

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument, step_argument

EXAMPLE = """
orc reject f8c1 --comments 'the error handling is missing'
"""


@make_command("reject", EXAMPLE)
@run_argument()
@step_argument("unit")
@click.option("--comments", metavar="TEXT", default="", help="What to change; the next iteration's agents read it.")
@click.option("--question", "asked", metavar="ID", help="Only if this is what is asked; `orc show --json` names it.")
def command(run: str | None, repo: str | None, as_json: bool, **given: Any) -> int:
    """Reject the step that is waiting for approval.

    The run loops back where the step has `loop_back_to`, and fails where it has not. UNIT may be left out when one waits.
    """
    from agent_orchestrator.core.inputs import Answer
    from agent_orchestrator.runs.directives import new_id
    from agent_orchestrator.surfaces.cli.direct import answer

    with open_orchestrator(repo) as orchestrator:
        said = Answer(id=new_id(), approved=False, **given)
        return answer(orchestrator, pick(orchestrator, run), said, as_json=as_json)
