"""`orc merge`: brings the work of a run into a branch, tested before it lands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument, step_argument

if TYPE_CHECKING:
    from agent_orchestrator.runs.merge import MergedWork, MergeOptions, MergeReport
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.screen import Screen

EXAMPLE = """
orc merge f8c1
orc merge f8c1 --check 'make test' --into develop
orc merge 8c1f0a2b bd-101
"""

TAIL_LINES = 20


@make_command("merge", EXAMPLE)
@run_argument(required=True)
@step_argument("unit")
@click.option("--into", metavar="BRANCH", help="The target; without it, the one the run began at, or that is checked out.")
@click.option(
    "--check",
    metavar="CMD",
    help="Must pass on the merged tree; without it, the run's own checks, or `run.check`.",
)
@click.option("--no-check", is_flag=True, help="Merge without running anything.")
def command(run: str, repo: str | None, as_json: bool, **given: Any) -> int:
    """Merge the work of a run, tested before it lands.

    All of it that is done, or a UNIT's (a bead, a group, an iteration of a loop, `best`), one after another. The check runs on
    the merged tree in a worktree of its own; only then the target moves, and your checkout with it. Nothing of yours is ever
    overwritten: what is in the way is named, and nothing has changed. Merged branches and worktrees are removed. Exits with 1
    when anything did not land.
    """
    from agent_orchestrator.runs.merge import MergeOptions

    with open_orchestrator(repo) as orchestrator:
        return merge(orchestrator, pick(orchestrator, run), MergeOptions(**given), as_json=as_json)


def merge(orchestrator: Orchestrator, run: StoredRun, options: MergeOptions, *, as_json: bool) -> int:
    """Merge, and tell what came of it; returns the exit code."""
    import sys

    from agent_orchestrator.errors import UsageError
    from agent_orchestrator.runs.merge import merge_works
    from agent_orchestrator.surfaces.cli.progress import make_watcher
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    if options.check is not None and (options.no_check or not options.check.strip()):
        why = "--check and --no-check exclude each other; give one" if options.no_check else "--check is empty; give a command"
        raise UsageError(detail=f"{why}.")
    watcher = make_watcher(orchestrator, run, Screen(orchestrator.settings.environ, sys.stderr), quiet=True)
    report = merge_works(orchestrator, run, options, watcher)
    if as_json:
        print_json(_facts(run, report))
    else:
        _tell(Screen(orchestrator.settings.environ), run, report)
    return 0 if all(one.landed for one in report.works) else 1


def _facts(run: StoredRun, report: MergeReport) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "merged": sum(one.landed for one in report.works),
        "works": [
            {
                "unit": one.work.unit or None,
                "branch": one.work.branch,
                "into": one.into,
                "check": one.check,
                "verdict": one.verdict,
                "detail": one.detail,
                "commit": one.commit,
                "conflicts": list(one.conflicts),
            }
            for one in report.works
        ],
        "notes": list(report.notes),
    }


def _tell(screen: Screen, run: StoredRun, report: MergeReport) -> None:
    from agent_orchestrator.surfaces.cli.screen import plain

    for one in report.works:
        name = f"{one.work.unit}: " if one.work.unit else ""
        if one.landed:
            commit = f" ({one.commit[:12]})" if one.commit else ""
            tested = "; its check passed on the merged tree" if one.check else "; no check was run"
            said = "already merged" if one.before else "merged"
            end = "" if one.before else tested
            screen.line(f"{screen.paint(said, 'green')} {name}{one.work.branch} into {one.into}{commit}{end}")
            continue
        screen.line(f"{screen.paint('not merged', 'red')} {name}{one.verdict}{f': {plain(one.detail)}' if one.detail else ''}")
        for line in one.tail.splitlines()[-TAIL_LINES:]:
            screen.line(f"  | {plain(line)}")
        screen.line(f"  {_advice(run, one)}")
    for note in report.notes:
        screen.line(f"kept: {plain(note)}")
    landed = sum(one.landed for one in report.works)
    if len(report.works) > 1:
        targets = ", ".join(dict.fromkeys(one.into for one in report.works))
        screen.line(f"{landed} of {len(report.works)} merged into {targets}")


def _advice(run: StoredRun, one: MergedWork) -> str:
    """Say what to do about a merge that did not land."""
    unit = f" {one.work.unit}" if one.work.unit else ""
    again = f"then: orc merge {run.id}{unit}"
    ways = {
        "conflict": f"resolve it where the work is: orc open {run.id}{unit}, there `git merge {one.into}` and commit; {again}",
        "red": f"look at it: orc open {run.id}{unit}; mend and commit it there, {again}   (or --check another, or --no-check)",
        "held": again,
    }
    return ways.get(one.verdict, f"try again: orc merge {run.id}{unit}")
