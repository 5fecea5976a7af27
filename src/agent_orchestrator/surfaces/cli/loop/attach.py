"""`orc loop attach`: follows a loop's events and its agent's output until it ends or pauses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_orchestrator.surfaces.cli.loop.shared import loop_argument, pick_run
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

if TYPE_CHECKING:
    from agent_orchestrator.runs.follow import Follower
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.outputs import Outputs
    from agent_orchestrator.surfaces.cli.screen import Screen

EXAMPLE = """
orc loop attach
orc loop attach ralph-fix-tests-a1b2c3d4
"""


@make_command("attach", EXAMPLE)
@loop_argument
def command(loop: str | None, named: str | None, repo: str | None, as_json: bool) -> int:
    """Follow what a loop does and says.

    Until it ends or rests; exits with the code of the loop. Ctrl-C leaves it alone.
    """
    import sys

    from agent_orchestrator.runs.exits import exit_code
    from agent_orchestrator.runs.follow import Follower
    from agent_orchestrator.runs.outputs import open_outputs
    from agent_orchestrator.surfaces.cli.drive import result_facts
    from agent_orchestrator.surfaces.cli.loop.words import closing_lines
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_orchestrator(repo) as orchestrator:
        run = pick_run(orchestrator, loop, named, or_last=False)
        out = sys.stderr if as_json else sys.stdout
        screen = Screen(orchestrator.settings.environ, out)
        follower = Follower(orchestrator, run)
        with open_outputs(orchestrator, run) as outputs:
            _follow(orchestrator, follower, outputs, screen)
        summary = follower.folded.summary()
        code = exit_code(summary)
        if as_json:
            print_json(result_facts(orchestrator, run, summary, code))
            return code
        detail = f": {summary.detail}" if summary.detail else ""
        screen.line(f"loop {run.id} is {follower.state.status}{detail}")
        for line in closing_lines(follower.state):
            screen.line(line)
    return code


def _follow(orchestrator: Orchestrator, follower: Follower, outputs: Outputs, screen: Screen) -> None:
    """Print what happens and what the agent writes until the loop ends, rests, or is driven by nobody."""
    from agent_orchestrator.runs.follow import POLL_S, pause
    from agent_orchestrator.surfaces.cli.progress import event_lines
    from agent_orchestrator.surfaces.cli.transcripts import TranscriptPrinter

    run = follower.run
    printer = TranscriptPrinter(outputs.root, screen, follower.state.spec.choices, live=True)
    since_us = follower.state.record.history[-1].started_us if follower.state.record.history else 0
    while True:
        outputs.refresh()
        state = follower.state
        for launch in state.record.history:
            if launch.started_us >= since_us:
                printer.print_new(launch.effect, ended=launch.ended_us is not None)
        rests = not state.lifecycle.running and not state.doing.active
        if state.lifecycle.ended or rests or orchestrator.owner(run) is None:
            break
        printer.draw()
        pause(POLL_S)
        for at_us, events in follower.read():
            for line in event_lines(run.system, events, at_us, screen):
                printer.erase()
                screen.line(line)
    printer.close()
