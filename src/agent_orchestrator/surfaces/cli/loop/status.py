"""`orc loop status`: how one loop stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_orchestrator.surfaces.cli.loop.shared import loop_argument, pick_loop
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.screen import Screen

EXAMPLE = """
orc loop status
orc loop status ralph-fix-tests-a1b2c3d4 --json
"""

TRIED_SHOWN = 10
OUTPUT_LINES = 8


@make_command("status", EXAMPLE)
@loop_argument
def command(loop: str | None, named: str | None, repo: str | None, as_json: bool) -> int:
    """Show how a loop stands.

    With --json: the state file, and what it does not carry.
    """
    import msgspec

    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_orchestrator(repo) as orchestrator:
        run = pick_loop(orchestrator, loop, named, or_last=True)
        folded = orchestrator.fold(run)
        if as_json:
            document = next(iter(folded.system.documents(folded.state, orchestrator.clock.now_us()))).body
            facts = run_facts(run, orchestrator.owner(run))
            state, details = msgspec.to_builtins(document), folded.system.details(folded.state)
            print_json({**facts, "status": state["status"], "state": state, "details": details})
        else:
            _print(orchestrator, Screen(orchestrator.settings.environ), run)
    return 0


def _print(orchestrator: Orchestrator, screen: Screen, run: StoredRun) -> None:
    from agent_orchestrator.core.effects import AskHuman
    from agent_orchestrator.core.events import StopReason
    from agent_orchestrator.runs.facts import state_file
    from agent_orchestrator.surfaces.cli.loop.words import closing_lines
    from agent_orchestrator.surfaces.cli.overview import print_owner
    from agent_orchestrator.surfaces.cli.screen import plain
    from agent_orchestrator.systems.loop.about import ABOUT

    state = orchestrator.fold(run).state
    status = screen.paint_status(state.status.value, state.status.value)
    screen.line(f"loop {screen.paint(run.id, 'bold')}  {status}  {state.iteration}/{state.spec.max_iterations} iterations")
    screen.line(f"  task: {plain(state.spec.task)}")
    screen.line(f"  done when: {plain(state.spec.completion)}")
    detail = state.lifecycle.detail or run.summary.detail
    if detail:
        screen.line(f"  {plain(detail)}")
    owner = orchestrator.owner(run)
    print_owner(screen, run, owner, ended=state.lifecycle.ended)
    if owner is None and state.status in ("failed", "aborted", "crashed"):
        successor = state.recovered_by
        more = f" {ABOUT.raise_limit}" if state.lifecycle.stop is StopReason.LIMIT_REACHED else ""
        said = f"its successor is {successor}" if successor else f"go on with its work: orc loop resume {run.id}{more}"
        screen.line(f"  {said}")
    asked = state.doing.of("loop")
    if isinstance(asked, AskHuman):
        screen.line(f"  asks: {plain(asked.question)}")
        screen.line(f"  answer with: orc approve {run.id}   or: orc reject {run.id} --comments 'why'")
    screen.line(f"  state: {state_file(run)}")
    for one in state.tried[-TRIED_SHOWN:]:
        ended = "passed" if one.passed else f"failed: {one.error}" if one.error else "failed"
        screen.line(f"  iteration {one.iteration}: {plain(one.summary) + ', ' if one.summary else ''}check {plain(ended)}")
    if state.check_output.strip():
        screen.line("  the last check said:")
        for line in state.check_output.splitlines()[-OUTPUT_LINES:]:
            screen.line(f"      | {plain(line)}")
    for line in closing_lines(state):
        screen.line(f"  {plain(line)}")
