"""`orc github watch`: issues with a label become runs, and their runs pull requests."""

from __future__ import annotations

import contextlib

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc github watch --label orc -- --check "make test"
orc github watch --label orc --once -- --check "make test" --budget-usd 5
"""

EVERY = "60s"


@make_command("watch", EXAMPLE)
@click.argument("arguments", metavar="[-- OPTIONS OF orc run]", nargs=-1)
@click.option("--label", metavar="NAME", required=True, help="The label of issues to take up.")
@click.option("--every", metavar="TIME", default=EVERY, show_default=True, help="Time between two looks.")
@click.option("--max-runs", metavar="N", default="1", show_default=True, help="Runs of issues at once.")
@click.option("--remote", metavar="NAME", help="Whose issues; without it, those of origin, or of the first remote.")
@click.option("--once", is_flag=True, help="Look once, then end; the runs go on in the background.")
def command(
    arguments: tuple[str, ...],
    label: str,
    every: str,
    max_runs: str,
    remote: str | None,
    once: bool,
    repo: str | None,
    as_json: bool,
) -> int:
    """Make a run and a pull request of each issue with a label.

    Only issues count that somebody who may write to the repository put the label on, and only as they were then: an issue
    that was changed afterwards is refused. Each has one run, issue-NUMBER, in a worktree of its own and behind a wall
    (--sandbox), in the background; the label becomes NAME-running, then NAME-done with a pull request, or NAME-failed. Put
    NAME on it again to try again. What stands behind -- goes to `orc run`. Ctrl-C ends the watch, and not the runs.
    """
    from agent_orchestrator.core.units import read_count, read_duration_s
    from agent_orchestrator.runs.exits import COMPLETED, ENVIRONMENT
    from agent_orchestrator.runs.follow import pause
    from agent_orchestrator.runs.issues import IssueWatch, IssueWatchOptions, look_kindly
    from agent_orchestrator.runs.remote import find_forge, pick_remote, refuse_unpublishable
    from agent_orchestrator.surfaces.cli.screen import Screen, plain, print_json
    from agent_orchestrator.surfaces.program import run_orc

    seconds = read_duration_s(every, "--every")
    options = IssueWatchOptions(label=label, max_runs=read_count(max_runs, "--max-runs"), arguments=arguments)
    with open_orchestrator(repo) as orchestrator:
        refuse_unpublishable(orchestrator)
        home, environ = orchestrator.settings.home, orchestrator.settings.environ
        screen, said = Screen(environ), list[str]()

        def say(text: str) -> None:
            said.append(text)
            if not as_json:
                screen.line(plain(text))

        orchestrator.say = say
        forge = find_forge(home, pick_remote(home, remote), environ)
        watch = IssueWatch(orchestrator, forge, options, lambda words: run_orc(orchestrator, *words))
        if once:
            went = watch.look()
            if as_json:
                print_json({"label": label, "said": said})
            return COMPLETED if went else ENVIRONMENT
        screen.line(f"watching issues with the label {label} of {forge.repository}; Ctrl-C ends it")
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                look_kindly(watch, say)
                pause(seconds)
        screen.line("The watch has ended; runs that were started go on.")
        return 0
