"""`orc loop status`: how one loop stands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.loop.shared import look_for_loop, loop_argument
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

if TYPE_CHECKING:
    from agent_orchestrator.engine.journal import Folded
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.surfaces.cli.screen import Screen
    from agent_orchestrator.systems.loop.state import LoopState

EXAMPLE = """
orc loop status
orc loop status ralph-fix-tests-a1b2c3d4 --json
orc loop status --all
"""

TRIED_SHOWN = 10
OUTPUT_LINES = 8


@make_command("status", EXAMPLE)
@loop_argument
@click.option("--all", "all_of_them", is_flag=True, help="All loops in a line each, as `orc loop list --all`.")
@click.option("--verbose", "-v", is_flag=True, help="Every iteration, and the state file as it would be written now.")
def command(loop: str | None, named: str | None, repo: str | None, as_json: bool, all_of_them: bool, verbose: bool) -> int:
    """Show how a loop stands.

    A loop that is only in a file of another tool is shown as it would be taken over; nothing is changed. With --json: the
    state file, and what it does not carry.
    """
    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.runs.loop.files import fold_file, list_file, say_file
    from agent_orchestrator.surfaces.cli.loop.list import print_loops
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    if all_of_them:
        if loop is not None or named is not None:
            raise click.UsageError("--all shows every loop; name none.")
        return print_loops(repo, all_of_them=True, as_json=as_json)
    with open_orchestrator(repo) as orchestrator:
        found = look_for_loop(orchestrator, loop, named)
        if isinstance(found, StoredRun):
            run, folded, file = found, orchestrator.fold(found), None
        else:
            run, folded, file = list_file(orchestrator, found), fold_file(orchestrator, found), say_file(orchestrator, found)
        if as_json:
            state, details = _document(folded, orchestrator.clock.now_us()), folded.system.details(folded.state)
            facts = {**run_facts(run, orchestrator.owner(run)), "status": state["status"], "state": state, "details": details}
            print_json(facts if file is None else {**facts, "only_in": file})
            return 0
        screen = Screen(orchestrator.settings.environ)
        _print(screen, run, folded.state)
        if file is None:
            _print_standing(orchestrator, screen, run, folded.state)
        else:
            _print_place(screen, run, file)
        _print_past(screen, folded.state, len(folded.state.tried) if verbose else TRIED_SHOWN)
        if verbose:
            screen.line(json.dumps(_document(folded, orchestrator.clock.now_us()), indent=2, ensure_ascii=False))
    return 0


def _document(folded: Folded, now_us: int) -> dict[str, Any]:
    """Return state.json."""
    import msgspec

    document: dict[str, Any] = msgspec.to_builtins(next(iter(folded.system.documents(folded.state, now_us))).body)
    return document


def _print(screen: Screen, run: StoredRun, state: LoopState) -> None:
    from agent_orchestrator.surfaces.cli.screen import plain

    status = screen.paint_status(state.status.value, state.status.value)
    screen.line(f"loop {screen.paint(run.id, 'bold')}  {status}  {state.iteration}/{state.spec.max_iterations} iterations")
    screen.line(f"  task: {plain(state.spec.task)}")
    screen.line(f"  done when: {plain(state.spec.completion)}")
    detail = state.lifecycle.detail or run.summary.detail
    if detail:
        screen.line(f"  {plain(detail)}")


def _print_place(screen: Screen, run: StoredRun, file: str) -> None:
    """Print that a loop has no journal here, and how it gets one."""
    way = "" if run.summary.ended else f", `orc loop resume {run.id} --agent NAME` continues it"
    screen.line(f"  only in {file}; `orc import {file}` takes it over{way}")


def _print_standing(orchestrator: Orchestrator, screen: Screen, run: StoredRun, state: LoopState) -> None:
    """Print who drives a loop or how to go on with it, what it asks, and where its state is."""
    from agent_orchestrator.core.effects import AskHuman
    from agent_orchestrator.core.events import StopReason
    from agent_orchestrator.runs.facts import place_line
    from agent_orchestrator.surfaces.cli.overview import print_owner
    from agent_orchestrator.surfaces.cli.screen import plain
    from agent_orchestrator.systems.loop.about import ABOUT

    owner = orchestrator.owner(run)
    print_owner(screen, run, owner, ended=state.lifecycle.ended)
    if owner is None and state.status in ("failed", "aborted", "crashed"):
        successor = state.recovered_by
        more = f" {ABOUT.raise_limit}" if state.lifecycle.stop is StopReason.LIMIT_REACHED else ""
        said = f"its successor is {successor}" if successor else f"continue its work: orc loop resume {run.id}{more}"
        screen.line(f"  {said}")
    asked = state.doing.of("loop")
    if isinstance(asked, AskHuman):
        screen.line(f"  asks: {plain(asked.question)}")
        screen.line(f"  answer with: orc approve {run.id}   or: orc reject {run.id} --comments 'why'")
    screen.line(f"  {place_line(run)}")


def _print_past(screen: Screen, state: LoopState, shown: int) -> None:
    from agent_orchestrator.surfaces.cli.loop.words import closing_lines
    from agent_orchestrator.surfaces.cli.screen import plain

    for one in state.tried[-shown:] if shown else ():
        failed = f"check failed: {one.error}" if one.error else "check failed"
        ended = one.error if one.passed is None else "check passed" if one.passed else failed
        screen.line(f"  iteration {one.iteration}: {plain(', '.join(part for part in (one.summary, ended) if part))}")
    if state.check_output.strip():
        screen.line("  the last check said:")
        for line in state.check_output.splitlines()[-OUTPUT_LINES:]:
            screen.line(f"      | {plain(line)}")
    for line in closing_lines(state):
        screen.line(f"  {plain(line)}")
