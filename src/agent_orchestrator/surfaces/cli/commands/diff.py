"""`orc diff`: the changes that a run made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument, step_argument

if TYPE_CHECKING:
    from agent_orchestrator.runs.changes import WorkChange

EXAMPLE = """
orc diff f8c1
orc diff f8c1 --stat
orc diff 8c1f0a2b bd-101 --name-only
"""


@make_command("diff", EXAMPLE)
@run_argument()
@step_argument("unit")
@click.option("--stat", is_flag=True, help="Only how many lines changed in each file.")
@click.option("--name-only", is_flag=True, help="Only the names of the files that changed.")
def command(run: str | None, unit: str | None, repo: str | None, as_json: bool, stat: bool, name_only: bool) -> int:
    """Show the changes that a run made.

    Since the point where its branch left the target or, where it worked in your own checkout, since the tree that it found.
    UNIT is a bead, a group, or an iteration of a loop (a number, or `best`); without it, all. Also while the run is running, and
    after its work was merged or discarded.
    """
    from agent_orchestrator.errors import UsageError
    from agent_orchestrator.git.diffs import show_diff
    from agent_orchestrator.runs.changes import find_changes
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    if stat and name_only:
        raise UsageError(detail="--stat and --name-only exclude each other; give one.")
    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run, or_newest=True)
        changes = find_changes(orchestrator, found, unit)
        if as_json:
            print_json({"run_id": found.id, "works": [_facts(change) for change in changes]})
            return 0
        screen = Screen(orchestrator.settings.environ)
        how = ("--stat",) if stat else ("--name-only",) if name_only else ()
        for change in changes:
            if len(changes) > 1 and not name_only:
                screen.line(screen.paint(_title(change), "bold"))
            show_diff(change.difference, how, orchestrator.settings.environ, terminal=screen.terminal)
    return 0


def _title(change: WorkChange) -> str:
    work = change.work
    return f"{work.unit}: {work.branch or work.folder}" if work.unit else work.branch or work.folder


def _facts(change: WorkChange) -> dict[str, Any]:
    import msgspec

    from agent_orchestrator.runs.changes import ChangeSize

    files, work, between = change.files(), change.work, change.difference
    return {
        "unit": work.unit or None,
        "branch": work.branch or None,
        "path": work.folder or None,
        "repo": str(between.repo),
        "from": between.old,
        "to": between.new,
        **{f"lines_{name}" if name != "files" else "files_changed": value for name, value in _size(ChangeSize.of(files)).items()},
        "files": [msgspec.to_builtins(one) for one in files],
    }


def _size(size: Any) -> dict[str, int]:
    import msgspec

    return msgspec.structs.asdict(size)
