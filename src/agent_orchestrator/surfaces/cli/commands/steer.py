"""`orc steer`: tells the agents of a run, or of one unit of it, something."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, run_argument

EXAMPLE = """
orc steer f8c1 "leave the parser alone, the fault is in the lexer"
orc steer f8c1 coding "use the client that is there"
orc steer f8c1 coding "stop, that is the wrong file" --now
"""


@make_command("steer", EXAMPLE)
@run_argument(required=True)
@click.argument("words", nargs=-1, required=True, metavar="[UNIT] WORDS")
@click.option("--now", is_flag=True, help="Stop the agent at work: it continues at once, in the same session, and has read it.")
def command(run: str, words: tuple[str, ...], now: bool, repo: str | None, as_json: bool) -> int:
    """Tell a run's agents something.

    It stands first in the next prompt of the unit (a step, task, bead or group), or of every unit where none is named, and
    again when the same iteration is tried again. An agent at work does not hear it, unless --now is given.
    """
    from agent_orchestrator.core.inputs import Steer
    from agent_orchestrator.errors import UsageError
    from agent_orchestrator.runs.directives import new_id, send_and_wait
    from agent_orchestrator.surfaces.cli.direct import report_sent

    if len(words) > 2:
        raise UsageError(detail="Give the words as one argument, in quotes: orc steer RUN [UNIT] 'words'.")
    unit, text = (words[0], words[1]) if len(words) == 2 else (None, words[0])
    with open_orchestrator(repo) as orchestrator:
        found = orchestrator.find(run)
        sent = send_and_wait(orchestrator, found, Steer(id=new_id(), text=text, unit=unit, now=now))
        who = unit or "every unit"
        when = "now" if now and sent.owner is not None else "with its next prompt"
        said = f"Run {found.id}: {who} is told {when}."
        said += "" if sent.owner is not None else f" Nothing is running it now; continue with: orc resume {found.id}"
        return report_sent(orchestrator, found, sent, said, as_json=as_json)
