"""`orc loop logs`: what a loop's agent and checks wrote."""

from __future__ import annotations

from typing import Any

import click

from agent_orchestrator.core.ids import launch_of
from agent_orchestrator.errors import Refused
from agent_orchestrator.surfaces.cli.loop.shared import loop_argument, pick_run
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, stream_options

EXAMPLE = """
orc loop logs
orc loop logs ralph-fix-tests-a1b2c3d4 --iteration 3 --err
"""


@make_command("logs", EXAMPLE)
@loop_argument
@click.option("--iteration", metavar="N", help="Of this iteration; the newest without it.")
@stream_options
def command(loop: str | None, named: str | None, repo: str | None, as_json: bool, iteration: str | None, **given: Any) -> int:
    """Show what a loop's agent said and did.

    And what its checks wrote, in the order they ran; --raw prints the streams themselves. `orc loop attach` follows it.
    """
    from agent_orchestrator.core.units import read_count
    from agent_orchestrator.runs.outputs import open_outputs
    from agent_orchestrator.surfaces.cli.screen import print_json
    from agent_orchestrator.surfaces.cli.streams import launch_facts
    from agent_orchestrator.surfaces.cli.transcripts import LogOptions, make_printer

    wanted = read_count(iteration, "--iteration", minimum=0) if iteration is not None else None
    with open_orchestrator(repo) as orchestrator:
        run = pick_run(orchestrator, loop, named)
        state = orchestrator.fold(run).state
        number = state.number if wanted is None else wanted
        shown = [one for one in state.record.history if launch_of(one.effect).startswith(f"i{number}.")]
        if not shown:
            raise Refused(why=f"Loop {run.id} has no output of iteration {number}.")
        with open_outputs(orchestrator, run) as outputs:
            if as_json:
                effects = [one.effect for one in shown]
                launches = folded_launches(orchestrator.fold(run).system.details(state), effects)
                facts = [launch_facts(outputs.root, one) for one in launches]
                print_json({"run_id": run.id, "iteration": number, "launches": facts})
                return 0
            options, environ = LogOptions(**given), orchestrator.settings.environ
            printer = make_printer(outputs.root, environ, state.spec.choices, options, headed=True)
            for one in shown:
                printer.print_new(one.effect, ended=one.ended_us is not None)
            printer.close()
    return 0


def folded_launches(details: dict[str, object], effects: list[str]) -> list[dict[str, object]]:
    """Return the launches with these ids, as details lists them."""
    steps = details["steps"]
    assert isinstance(steps, dict)
    return [launch for launch in steps["loop"]["launches"] if launch["effect"] in effects]
