"""What the swarm commands share: the workspace, which run or bead is meant, how a run is driven."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.options import (
    check_names,
    complete_runs,
    idle_option,
    permission_options,
    shared_tree_option,
)

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.swarm.options import BeadOptions
    from agent_orchestrator.runs.swarm.start import Started, Swarm
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.drive import Manner
    from agent_orchestrator.systems.swarm.spec import SwarmSpec
    from agent_orchestrator.systems.swarm.state import SwarmState

Function = Callable[..., Any]

MIB = 1024 * 1024
NAMED = (
    *("agent", "agent_command", "rehearse", "repo", "branch", "template", "verify", "timeout", "max_retries", "variables"),
    *("allow_tools", "permission_mode"),
)


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


def bead_options(function: Function) -> Function:
    """How beads are worked on, whatever starts them."""
    options = (
        click.option("--agent-command", metavar="CMD", help="A program that stands in for the agent: the prompt on its input."),
        click.option("--rehearse", metavar="SCRIPT", help="Play the agents from a YAML script, without a model."),
        permission_options,
        click.option("--verify", metavar="CMD", help="Run by sh when an agent is done; if it fails, the attempt has failed."),
        click.option("--timeout", metavar="TIME", help="Running time of one attempt (3600)."),
        idle_option,
        click.option("--output-limit", metavar="MIB", help="An agent that writes more is stopped (512)."),
        click.option("--max-retries", metavar="N", help="Attempts in total (2)."),
        click.option("--var", "variables", multiple=True, metavar="K=V", help="Fills {K} in the template; repeatable."),
        click.option("--env", multiple=True, metavar="K=V", help="Set for the agents; stored with the run; repeatable."),
        click.option(
            "--pass-env",
            multiple=True,
            metavar="NAME",
            callback=check_names,
            help="Let the agents see this variable; repeatable.",
        ),
        shared_tree_option,
        click.option("--tmux", is_flag=True, help="Run each agent in tmux session agent-<bead>, which a person can attach to."),
        click.option("--bd-close", is_flag=True, help="Close a bead in the tracker (`bd close`) when it is done."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def driving_options(function: Function) -> Function:
    """How a run is shown and left."""
    options = (
        click.option("--no-wait", is_flag=True, help="Exit with 6 when everything is parked on a rate limit."),
        click.option("--detach", is_flag=True, help="Run in the background; the id is printed."),
        click.option("--on-end", metavar="CMD", help="A shell command started when the run ends."),
        click.option("--quiet", is_flag=True, help="Only the id and the result."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def open_workspace(workspace: str | None) -> Orchestrator:
    """The orchestrator of a workspace: exactly this folder, not the repository around it."""
    from agent_orchestrator.errors import MissingPath
    from agent_orchestrator.surfaces.cli.options import open_orchestrator

    if workspace is not None and not Path(workspace).expanduser().exists():
        raise MissingPath(what="The workspace", path=workspace)
    return open_orchestrator(workspace if workspace is not None else ".")


def read_bead_options(given: dict[str, Any]) -> BeadOptions:
    """The options as control takes them."""
    from agent_orchestrator.runs.swarm.options import BeadOptions

    known = {name: given[name] for name in NAMED if name in given}
    if known.get("repo") is not None:
        known["repo"] = str(Path(known["repo"]).expanduser().absolute())  # as seen from here, whatever the workspace is
    return BeadOptions(**known)


def read_run_options(given: dict[str, Any], **more: Any) -> SwarmSpec:
    """What is the same for all beads of a run."""
    from agent_orchestrator.core.units import read_count
    from agent_orchestrator.runs.choices import read_env, read_idle_s
    from agent_orchestrator.systems.swarm.spec import SwarmSpec

    idle, limit = given["idle_timeout"], given["output_limit"]
    if limit is not None:
        more["output_limit_bytes"] = read_count(limit, "--output-limit") * MIB
    return SwarmSpec(
        beads=(),
        tmux=_possible(given["tmux"], "--tmux", "tmux"),
        bd_close=_possible(given["bd_close"], "--bd-close", "bd"),
        env=read_env(given["env"]),
        idle_timeout_s=read_idle_s(idle),
        **more,
    )


def _possible(wanted: bool, flag: str, program: str) -> bool:
    """Whether it is wanted; raises Unavailable where the program that it needs is missing."""
    import shutil

    from agent_orchestrator.errors import Unavailable

    if wanted and shutil.which(program) is None:
        raise Unavailable(detail=f"{flag} needs {program}, and it was not found on the PATH; install it, or leave {flag} out.")
    return wanted


def read_manner(given: dict[str, Any]) -> Manner:
    """How to show and leave."""
    from agent_orchestrator.surfaces.cli.drive import Manner

    return Manner(**{name: given[name] for name in ("quiet", "as_json", "no_wait", "on_end")})


def drive_started(orchestrator: Orchestrator, started: Started, manner: Manner, *, detach: bool) -> int:
    """Drives a run that was just made, here or behind."""
    from agent_orchestrator.git.exclude import exclude
    from agent_orchestrator.runs.swarm.workspace import write_schemas
    from agent_orchestrator.surfaces.cli.drive import drive
    from agent_orchestrator.surfaces.cli.progress import Writer
    from agent_orchestrator.surfaces.cli.screen import warn

    # Nobody asked for these files: they are hidden like all that a run writes. Those of `orc swarm init` are a person's.
    exclude(orchestrator.settings.home, write_schemas(orchestrator.settings.home))
    for note in started.notes:
        warn(note)
    if detach:
        started.owner.release()
        return drive_behind(orchestrator, started.run, manner)
    Writer(sys.stderr if manner.as_json else sys.stdout).line(f"run {started.run.id}")
    return drive(orchestrator, started.run, started.owner, manner)


def drive_behind(orchestrator: Orchestrator, run: StoredRun, manner: Manner) -> int:
    """Lets another process of ours go on with the run."""
    from agent_orchestrator.surfaces.cli.detach import detach, resume_arguments

    return detach(orchestrator, run, resume_arguments(run, manner), manner)


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


def mergeable(state: SwarmState) -> list[str]:
    """Beads that are done on a branch of their own and not merged yet."""
    return [
        bead
        for bead, held in state.beads.items()
        if state.specs[bead].branch
        and state.standing(bead) == "done"
        and (held.merge is None or held.merge.verdict != "landed")
        and bead not in state.merging
    ]
