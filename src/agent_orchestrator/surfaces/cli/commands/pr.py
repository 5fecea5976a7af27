"""`orc pr`: a pull request for the work of a run."""

from __future__ import annotations

from typing import Any

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument, step_argument

EXAMPLE = """
orc pr f8c1
orc pr f8c1 --base develop --draft
orc pr f8c1 --remote fork --upstream origin
orc pr 8c1f0a2b bd-101
"""


@make_command("pr", EXAMPLE)
@run_argument(required=True)
@step_argument("unit")
@click.option("--base", metavar="BRANCH", help="The branch to merge into; without it, the one the run began at, or is on.")
@click.option("--title", metavar="TEXT", help="Without it, the name of the run.")
@click.option("--draft", is_flag=True, help="Open it as a draft.")
@click.option("--remote", metavar="NAME", help="Where to push; without it, origin, or the first there is.")
@click.option("--upstream", metavar="NAME", help="The remote that gets the pull request, where --remote is your fork of it.")
def command(run: str, repo: str | None, as_json: bool, **given: Any) -> int:
    """Push the branch of a run and open a pull request.

    With your own `git push` and `gh`. The text has the changed files, what the checks showed, and the cost, and a mark by which
    the pull request is found again: asked twice, or killed in between, there is one. A run with several branches gets one for
    each that is done; UNIT names one.
    """
    import msgspec

    from agent_orchestrator.runs.pull_request import PullRequestOptions, publish_works
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run)
        published = publish_works(orchestrator, found, PullRequestOptions(**given))
        if as_json:
            print_json({"run_id": found.id, "pull_requests": [msgspec.to_builtins(one) for one in published]})
            return 0
        screen = Screen(orchestrator.settings.environ)
        for one in published:
            said = "opened" if one.made else "pushed; its pull request is open already"
            screen.line(f"{said}: {one.url} ({one.branch} into {one.base})")
    return 0
