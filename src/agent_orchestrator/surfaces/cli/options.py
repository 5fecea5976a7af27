"""What the commands share: the options every one takes, how a RUN is found, and shell completion of runs and steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from agent_orchestrator.errors import OrcError, Refused

if TYPE_CHECKING:
    from agent_orchestrator.runs.choices import Permissions
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun

Function = Callable[..., Any]

LISTED_MAX = 8


def check_names(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """The names of `--pass-env`, as a callback of the option."""
    if not given:
        return given
    from agent_orchestrator.runs.choices import read_names

    return read_names(given)


def idle_option(function: Function) -> Function:
    """How long agents may be silent; the same wherever agents are chosen."""
    words = "How long an agent may stay silent (30m; 2h for programs that are no known client); none: for ever."
    return click.option("--idle-timeout", metavar="TIME", help=words)(function)


def permission_options(function: Function) -> Function:
    """What agents may do beyond what they are allowed anyway; the same wherever agents are chosen."""
    options = (
        click.option(
            "--allow-tool",
            "allow_tools",
            multiple=True,
            metavar="TOOL",
            help="Let agents use this tool, as their client names it: 'Bash(make:*)'; repeatable.",
        ),
        click.option("--permission-mode", metavar="MODE", help="What agents may do, in their client's words."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def read_permissions(given: dict[str, Any]) -> Permissions:
    """What agents may do besides."""
    from agent_orchestrator.runs.choices import Permissions

    return Permissions(allow_tools=given["allow_tools"], mode=given["permission_mode"])


def permission_arguments(given: dict[str, Any]) -> list[str]:
    """What agents may do besides, as it was given, for another process."""
    tools = [word for tool in given["allow_tools"] for word in ("--allow-tool", tool)]
    return [*tools, *(("--permission-mode", given["permission_mode"]) if given["permission_mode"] is not None else ())]


def command(name: str, example: str) -> Callable[[Function], click.Command]:
    """A command with `--repo`, `--json` and an example under its help."""
    epilog = "\b\nExample:\n" + "\n".join(f"  {line}" for line in example.strip().splitlines())

    def make(function: Function) -> click.Command:
        function = click.option("--json", "as_json", is_flag=True, help="Print one JSON object; all else goes to stderr.")(
            function
        )
        function = click.option(
            "--repo",
            metavar="DIR",
            help="The repository; without it, the one around the current directory.",
            shell_complete=_complete_folders,
        )(function)
        return click.command(name, epilog=epilog)(function)

    return make


def _complete_folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


def run_argument(*, required: bool = False) -> Callable[[Function], Function]:
    """The RUN argument: an id or the start of one."""
    return click.argument("run", required=required, shell_complete=complete_runs)


def step_argument(name: str = "step") -> Callable[[Function], Function]:
    """The STEP argument."""
    return click.argument(name, required=False, shell_complete=complete_steps)


def open_orchestrator(repo: str | None) -> Orchestrator:
    """The orchestrator of a repository; imported here so that `--help` does not pay for it."""
    from agent_orchestrator.core.who import Surface
    from agent_orchestrator.runs.orchestrator import Orchestrator

    return Orchestrator(repo, surface=Surface.CLI)


def pick(orchestrator: Orchestrator, given: str | None) -> StoredRun:
    """The run that is meant; left out, the one that is not finished."""
    if given is not None:
        return orchestrator.find(given)
    unfinished = [run for run in orchestrator.runs() if not run.summary.ended]
    if len(unfinished) == 1:
        return unfinished[0]
    if not unfinished:
        raise Refused(why=f"There is no unfinished run in {orchestrator.settings.home}; name one, `orc list` shows them.")
    known = ", ".join(f"{run.id} ({run.name}, {run.summary.status})" for run in unfinished[:LISTED_MAX])
    more = f" and {len(unfinished) - LISTED_MAX} more" if len(unfinished) > LISTED_MAX else ""
    raise Refused(why=f"Several runs are unfinished, name one: {known}{more}.")


def complete_runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Run ids that begin so, newest first."""
    try:
        with open_orchestrator(ctx.params.get("repo")) as orchestrator:
            found = [run for run in orchestrator.runs() if run.id.startswith(incomplete)]
    except OrcError:
        return []
    return [CompletionItem(run.id, help=f"{run.name}, {run.summary.status}") for run in found]


def complete_steps(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Step ids of the run given before."""
    import msgspec

    try:
        with open_orchestrator(ctx.params.get("repo")) as orchestrator:
            run = pick(orchestrator, ctx.params.get("run"))
            spec = msgspec.json.decode(orchestrator.store.spec(run.id))
    except OrcError:
        return []
    return [CompletionItem(step["id"]) for step in spec.get("steps", ()) if step["id"].startswith(incomplete)]


shared_tree_option = click.option(
    "--shared-tree", is_flag=True, help="Work in a tree that another run works in: their work mixes."
)
