"""`orc phases run`: executes a task document and stays with it."""

from __future__ import annotations

import sys
from typing import Any

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator
from agent_orchestrator.surfaces.cli.phases.shared import read_manner, read_options, run_options

EXAMPLE = """
orc phases run task.md --agent claude --max-cost '$10'
orc phases run task.md --agent-command ./agent.sh --yes --allow-unmetered --max-time 2h
orc phases run task.md --agent claude --role supervisor=codex --plan-with claude:opus --allow-unmetered
"""


@make_command("run", EXAMPLE)
@run_options
def command(**given: Any) -> int:
    """Execute a task document and stay with it.

    Prints the run id first, then what happens, then the result. The plan is to be approved first, unless --yes is given.
    Ctrl-C once lets what runs finish, twice stops it; `orc resume` goes on in both cases.
    """
    from agent_orchestrator.config import load_agents
    from agent_orchestrator.runs.budget import refuse_unmetered
    from agent_orchestrator.runs.phases.options import prepare
    from agent_orchestrator.runs.phases.start import start_phases
    from agent_orchestrator.surfaces.cli.budget import read_run_budget
    from agent_orchestrator.surfaces.cli.detach import detach, resume_arguments
    from agent_orchestrator.surfaces.cli.drive import drive
    from agent_orchestrator.surfaces.cli.progress import Writer
    from agent_orchestrator.surfaces.cli.screen import warn
    from agent_orchestrator.systems.phases.bounds import budget_of

    manner = read_manner(given)
    with open_orchestrator(given["repo"]) as orchestrator:
        settings = orchestrator.settings
        prepared = prepare(read_options(given), settings.home, load_agents(settings))
        spec = prepared.spec
        document = budget_of(spec.plan.bounds)
        budget = read_run_budget(orchestrator, {**given, "budget_usd": None, "max_time": None}).override(document)
        refuse_unmetered(budget, spec.choices)
        pass_env = tuple(given["pass_env"])
        started = start_phases(
            orchestrator,
            spec,
            budget=budget,
            run_id=given["run_id"],
            pass_env=pass_env,
            publish=given["publish"],
            shared=given["shared_tree"],
        )
        for text in (*prepared.warnings, *started.notes):
            warn(text)
        if given["detach"]:
            started.owner.release()
            return detach(orchestrator, started.run, resume_arguments(started.run, manner), manner)
        Writer(sys.stderr if manner.as_json else sys.stdout).line(f"run {started.run.id}")
        return drive(orchestrator, started.run, started.owner, manner)
