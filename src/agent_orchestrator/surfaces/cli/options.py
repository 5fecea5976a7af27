"""Options that commands share: written once, so that they mean and say the same everywhere.

Also how a RUN is found, and shell completion of runs and steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from agent_orchestrator.errors import OrcError, Refused
from agent_orchestrator.surfaces.cli.budget import budget_options

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun

Function = Callable[..., Any]
SomeOptions = TypeVar("SomeOptions")

LISTED_MAX = 8


def check_names(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Check the names of `--pass-env`, as a callback of the option."""
    if not given:
        return given
    from agent_orchestrator.runs.choices import read_names

    return read_names(given)


def compose(*options: Function) -> Function:
    """Return one decorator of several, in the order in which the help lists them."""

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


idle_option = click.option(
    "--idle-timeout",
    metavar="TIME",
    help="How long an agent may stay silent (30m; 2h for programs that are no known client); none: for ever.",
)

mcp_option = click.option(
    "--mcp/--no-mcp", default=None, help="Give agents tools to note progress, ask you and read what you say, as an MCP server."
)

permission_options = compose(
    click.option(
        "--allow-tool",
        "allow_tools",
        multiple=True,
        metavar="TOOL",
        help="Let agents use this tool, as their client names it: 'Bash(make:*)'; repeatable.",
    ),
    click.option("--permission-mode", metavar="MODE", help="What agents may do, in their client's words."),
)


sandbox_options = (
    click.option(
        "--sandbox",
        is_flag=False,
        flag_value="auto",
        metavar="[WALL]",
        help="Wall agents and checks in: auto (the best that this machine has), bwrap, landlock, none, or a command line.",
    ),
    click.option(
        "--sandbox-network",
        metavar="WHO",
        help="Who reaches the network: on (all, the default), agents (no checks), off, or the URL of a proxy as the only way.",
    ),
    click.option("--sandbox-write", multiple=True, metavar="PATH", help="Writable besides the working tree; repeatable."),
    click.option(
        "--sandbox-read", multiple=True, metavar="PATH", help="Readable although secrets lie there: ~/.npmrc; repeatable."
    ),
    click.option("--yolo", is_flag=True, help="Agents use all their tools without asking; needs --sandbox."),
)


def choice_options(does: str = "works", *, named: bool = True, roles: bool = False, wrapper: bool = False) -> Function:
    """Return the options that say who works; `named` is whether one of them names an agent."""
    wrappers = (
        click.option("--wrapper", metavar="FILE", help="A program that performs every step, called with --run-id, --step-id, …"),
        click.option(
            "--command-template",
            metavar="CMD",
            help="A command for every step, with {run_id}, {step_id}, {agent}, {prompt}, {repo} and {report} filled in.",
        ),
        click.option("--wrapper-arg", "wrapper_args", multiple=True, metavar="ARG", help="Passed on to the wrapper; repeatable."),
    )
    another = "Another agent, or a command, for one role; repeatable."
    return compose(
        *(wrappers if wrapper else ()),
        *((click.option("--agent", metavar="NAME[:MODEL]", help=f"The agent that {does}."),) if named else ()),
        click.option("--agent-command", metavar="CMD", help="Any program as the agent: the prompt on its standard input."),
        click.option("--rehearse", metavar="SCRIPT", help="Play the agents from a YAML script, without a model."),
        *((click.option("--role", "roles", multiple=True, metavar="ROLE=AGENT", help=another),) if roles else ()),
    )


def agent_options(does: str = "works", *, timeout: str = "--timeout", time: str = "one attempt", **which: bool) -> Function:
    """Return the options that say who works and how: `timeout` limits the running time of `time`."""
    return compose(
        choice_options(does, **which),
        permission_options,
        click.option("--env", multiple=True, metavar="K=V", help="Set for agents; stored with the run; repeatable."),
        click.option(
            "--pass-env",
            multiple=True,
            metavar="NAME",
            callback=check_names,
            help="Let agents see this variable; never stored; repeatable.",
        ),
        click.option(timeout, metavar="TIME", help=f"Running time of {time}, as in 90s, 10m, 2h."),
        idle_option,
        mcp_option,
        *sandbox_options,
    )


def drive_options(noun: str = "run", *, people: str = "a person") -> Function:
    """Return the options of driving a run: what it may spend, where it works, how it is shown and left.

    `people` are those whom it may wait for; nobody, then only a rate limit can hold it up.
    """
    left = f"4 when only {people} can move the {noun}" if people else "6 when everything is parked on a rate limit"
    waits = f"A shell command started when the {noun} begins to wait for a person."
    return compose(
        budget_options,
        click.option("--shared-tree", is_flag=True, help="Work in a tree that another run works in: their work mixes."),
        click.option("--no-wait", is_flag=True, help=f"Exit with {left}."),
        click.option("--detach", is_flag=True, help="Run in the background."),
        *((click.option("--on-wait", metavar="CMD", help=waits),) if people else ()),
        click.option("--on-end", metavar="CMD", help=f"A shell command started when the {noun} ends."),
        click.option("--quiet", is_flag=True, help=f"Only the {noun}'s id and the result."),
    )


queue_options = compose(
    click.option("--queue", is_flag=True, help="Let a worker do it (`orc worker`); returns at once. Needs a shared store."),
    click.option("--pool", metavar="NAME", help="The workers that may take it; with --queue (default)."),
    click.option("--priority", metavar="N", help="Taken before those with a lower one; with --queue (0)."),
    click.option("--firing", metavar="TOKEN", hidden=True, help="For workers: the due time of a schedule that it is the run of."),
)
"""The options of handing a run to workers."""


edits_option = click.option(
    "--adopt-edits/--no-adopt-edits",
    default=None,
    help="Use a state file that was edited, or put it aside; without either you are asked.",
)
"""A person's word on edited state files, for the commands that go on with a run."""


def read_options(kind: type[SomeOptions], given: dict[str, Any]) -> SomeOptions:
    """Return a system's options: the fields of the struct that the command was given."""
    fields: tuple[str, ...] = kind.__struct_fields__  # type: ignore[attr-defined]
    return kind(**{name: given[name] for name in fields if name in given})


def command(name: str, example: str) -> Callable[[Function], click.Command]:
    """A command with `--repo`, `--store`, `--json` and an example under its help."""
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
        function = click.option(
            "--store",
            metavar="URL",
            expose_value=False,
            callback=_choose_store,
            help="Where runs are kept: postgresql://HOST/DATABASE; without it, what is configured, else the repository's own.",
        )(function)
        return click.command(name, epilog=epilog)(function)

    return make


def _choose_store(ctx: click.Context, param: click.Parameter, given: str | None) -> None:
    """Take the store for this command, and for nothing that the process does after it."""
    if given is None:
        return
    from agent_orchestrator.config import choose_store

    choose_store(given)
    ctx.call_on_close(lambda: choose_store(None))


def _complete_folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


def run_argument(*, required: bool = False) -> Callable[[Function], Function]:
    """The RUN argument: an id or the start of one."""
    return click.argument("run", required=required, shell_complete=complete_runs)


def step_argument(name: str = "step") -> Callable[[Function], Function]:
    """The STEP argument."""
    return click.argument(name, required=False, shell_complete=complete_steps)


def stream_options(function: Function) -> Function:
    """The options of commands that show what launches wrote."""
    function = click.option("--raw", is_flag=True, help="The stream as it was written; a terminal shows its escapes.")(function)
    return click.option("--err", is_flag=True, help="The error output instead of the output.")(function)


def open_orchestrator(repo: str | None) -> Orchestrator:
    """The orchestrator of a repository; imported here so that `--help` does not pay for it."""
    from agent_orchestrator.core.who import Surface
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.surfaces.cli.screen import warn

    return Orchestrator(repo, surface=Surface.CLI, say=warn)


def pick(orchestrator: Orchestrator, given: str | None, *, or_newest: bool = False) -> StoredRun:
    """The run that is meant; left out, the one that is not finished or, for a look, the newest if all are finished."""
    if given is not None:
        return orchestrator.find(given)
    from agent_orchestrator.store.port import Which

    unfinished = orchestrator.runs(Which(ended=False, most=LISTED_MAX))
    if len(unfinished) == 1:
        return unfinished[0]
    if not unfinished:
        newest = orchestrator.runs(Which(most=1))
        if newest and or_newest:
            return newest[0]
        if not newest:
            raise Refused(why=f"There are no runs in {orchestrator.settings.home} yet; start one with `orc run`.")
        raise Refused(why=f"There is no unfinished run in {orchestrator.settings.home}; name one, `orc list` shows them.")
    known = ", ".join(f"{run.id} ({run.name}, {run.summary.status})" for run in unfinished)
    hidden = orchestrator.count().unfinished - len(unfinished)
    more = f" and {hidden} more" if hidden > 0 else ""
    raise Refused(why=f"Several runs are unfinished, name one: {known}{more}.")


def complete_runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Run ids that begin so, newest first."""
    from agent_orchestrator.store.port import Which

    try:
        with open_orchestrator(ctx.params.get("repo")) as orchestrator:
            found = orchestrator.runs(Which(begins=incomplete))
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


publish_option = click.option(
    "--publish/--no-publish",
    default=None,
    help="Push the branch, and make issues and a pull request with gh; without it (or `publish = true`) nothing is published.",
)

pr_option = click.option("--pr", is_flag=True, help="Push the branch and open a pull request when the run has completed.")
