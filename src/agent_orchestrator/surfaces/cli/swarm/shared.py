"""Options and arguments of the swarm commands: the workspace, and which run or bead is meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.options import SomeOptions, complete_runs, compose, drive_options, read_options

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.swarm.start import Swarm
    from agent_orchestrator.store.port import StoredRun

Function = Callable[..., Any]


def swarm_command(name: str, example: str) -> Callable[[Function], click.Command]:
    """A command with `--workspace`, `--json` and an example under its help."""
    epilog = "\b\nExample:\n" + "\n".join(f"  {line}" for line in example.strip().splitlines())

    def make(function: Function) -> click.Command:
        options = (
            click.option("--workspace", metavar="DIR", help="Where state/ and scripts/ are; without it, the current directory."),
            click.option("--json", "as_json", is_flag=True, help="Print one JSON object; all else goes to stderr."),
        )
        for option in reversed(options):
            function = option(function)
        return click.command(name, epilog=epilog)(function)

    return make


def target_argument(*, required: bool = False) -> Callable[[Function], Function]:
    """The TARGET argument: a bead, a run, or the start of one."""
    return click.argument("target", required=required, shell_complete=complete_runs)


bead_options = compose(
    click.option("--verify", metavar="CMD", help="Run by sh when an agent is done; if it fails, the attempt has failed."),
    click.option("--output-limit", metavar="MIB", help="An agent that writes more is stopped (512)."),
    click.option("--max-retries", metavar="N", help="Attempts in total (2)."),
    click.option("--var", "variables", multiple=True, metavar="K=V", help="Fills {K} in the template; repeatable."),
    click.option("--tmux", is_flag=True, help="Run each agent in tmux session agent-<bead>, which a person can attach to."),
    click.option("--bd-close", is_flag=True, help="Close a bead in the tracker (`bd close`) when it is done."),
    click.option("--bd-close-epics", is_flag=True, help="The same, and epics whose children are all closed then."),
    drive_options(people=""),
)
"""Add the options for working on beads and driving them, whatever starts them."""


def open_workspace(workspace: str | None) -> Orchestrator:
    """The orchestrator of a workspace: exactly this folder, not the repository around it."""
    from agent_orchestrator.errors import MissingPath
    from agent_orchestrator.surfaces.cli.options import open_orchestrator

    if workspace is not None and not Path(workspace).expanduser().exists():
        raise MissingPath(what="The workspace", path=workspace)
    return open_orchestrator(workspace if workspace is not None else ".")


def read_bead_options(kind: type[SomeOptions], given: dict[str, Any]) -> SomeOptions:
    """Return the options of beads; a repository is as seen from here, whatever the workspace is."""
    if given["repo"] is not None:
        given = {**given, "repo": str(Path(given["repo"]).expanduser().absolute())}
    return read_options(kind, given)


def pick_swarm_run(orchestrator: Orchestrator, target: str | None) -> tuple[StoredRun, str | None]:
    """The run that is meant, and the bead of it where one is named; left out, the run that is not finished."""
    from agent_orchestrator.errors import Refused
    from agent_orchestrator.runs.swarm.start import Swarm

    swarm = Swarm(orchestrator)
    if target is not None:
        return _named(swarm, target)
    unfinished = [run for run in swarm.runs if not run.summary.ended and run.id == run.context.run]
    if len(unfinished) == 1:
        return unfinished[0], None
    if not unfinished:
        raise Refused(why=f"No bead is at work in {orchestrator.settings.home}; name one, `orc swarm status` shows them.")
    listed = ", ".join(run.id for run in unfinished[:8])
    raise Refused(why=f"Several runs are unfinished, name one: {listed}.")


def _named(swarm: Swarm, target: str) -> tuple[StoredRun, str | None]:
    from agent_orchestrator.errors import AmbiguousRun, UnknownRun

    found = swarm.find(target)
    if found is not None:
        return found.run, target
    exact = [run for run in swarm.runs if run.id == target]
    matches = exact or [run for run in swarm.runs if run.id.startswith(target)]
    if not matches:
        raise UnknownRun(run=target, repo=swarm.orchestrator.settings.home)
    if len(matches) > 1:
        raise AmbiguousRun(run=target, matches=", ".join(run.id for run in matches[:5]))
    return matches[0], None
