"""`orc phases status`: how a run of phases stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.core.units import say_count
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import complete_runs, open_orchestrator

if TYPE_CHECKING:
    from agent_orchestrator.surfaces.cli.screen import Screen
    from agent_orchestrator.systems.phases.state import PhasesState

EXAMPLE = """
orc phases status
orc phases status f8c1 --json
"""

MARKS = {"COMPLETED": "x", "RUNNING": ">", "WAITING_ON_HUMAN": "?", "SKIPPED": "-", "PENDING": " "}


@make_command("status", EXAMPLE)
@click.argument("run", required=False, shell_complete=complete_runs)
def command(run: str | None, repo: str | None, as_json: bool) -> int:
    """Show how a run of phases stands.

    Without RUN, the newest. With --json: the state file, and what it does not carry.
    """
    import msgspec

    from agent_orchestrator.runs.facts import place_line, run_facts
    from agent_orchestrator.runs.phases.start import find_phases, out_of_step
    from agent_orchestrator.surfaces.cli.overview import print_owner
    from agent_orchestrator.surfaces.cli.phases.words import closing_lines
    from agent_orchestrator.surfaces.cli.screen import Screen, plain, print_json
    from agent_orchestrator.systems.phases.documents import state_document

    with open_orchestrator(repo) as orchestrator:
        found = find_phases(orchestrator, run)
        folded = orchestrator.fold(found)
        state: PhasesState = folded.state
        owner = orchestrator.owner(found)
        document = msgspec.to_builtins(state_document(state))
        if as_json:
            print_json({**run_facts(found, owner), "state": document, "details": folded.system.details(state)})
            return 0
        screen = Screen(orchestrator.settings.environ)
        _print_head(screen, found.id, state, document)
        print_owner(screen, found, owner, ended=state.lifecycle.ended)
        odd = out_of_step(found, state)
        for line in [*closing_lines(state), *([f"warning: {odd}"] if odd is not None else []), place_line(found)]:
            screen.line(f"  {plain(line)}")
    return 0


def _print_head(screen: Screen, run: str, state: PhasesState, document: dict[str, Any]) -> None:
    from agent_orchestrator.core.effects import AskHuman
    from agent_orchestrator.surfaces.cli.screen import plain

    where = document["orchestrator"]
    status = screen.paint_status(state.status.value, state.status.value)
    position = f"phase {where['current_phase'] + 1}/{where['total_phases']}, task {where['current_task']}"
    screen.line(f"run {screen.paint(run, 'bold')}  {status}  {position}  {plain(state.spec.plan.name)}")
    if state.lifecycle.detail:
        screen.line(f"  {plain(state.lifecycle.detail)}")
    steps = state.steps
    for number, phase in enumerate(state.spec.plan.phases):
        screen.line(f"  {screen.paint(f'Phase {number + 1}', 'bold')}: {plain(phase.name)}")
        for task in state.tasks_of(number):
            step = steps[task.id]
            times = f", {say_count(step.iteration_count, 'iteration')}" if step.iteration_count else ""
            why = f": {plain(step.last_error)}" if step.last_error else ""
            screen.line(f"    [{MARKS[step.status]}] {task.id} {plain(task.name)}{times}{why}")
    for agent in document["active_agents"]:
        screen.line(f"  at work: {agent['type']} on {agent['task']} ({agent['status']}, iteration {agent['iteration']})")
    for effect in state.doing:
        if isinstance(effect, AskHuman):
            screen.line(f"  asks: {plain(effect.question)}")
            screen.line(f"  answer with: orc approve {run} {effect.unit}   or: orc reject {run} {effect.unit} --comments 'why'")
