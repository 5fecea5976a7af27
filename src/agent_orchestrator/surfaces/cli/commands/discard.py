"""`orc discard`: removes the work of a run, which a ref keeps."""

from __future__ import annotations

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument

EXAMPLE = """
orc discard f8c1
"""


@make_command("discard", EXAMPLE)
@run_argument(required=True)
def command(run: str, repo: str | None, as_json: bool) -> int:
    """Discard the work of a run, kept under a ref.

    Its worktrees and branches are removed; a ref below refs/orc/ keeps every commit and every uncommitted file until `orc prune`
    deletes the run, and the command that brings it back is printed. What a run changed in your own checkout is taken back only
    while nothing else has changed there since. What was merged stays merged.
    """
    from agent_orchestrator.runs.discard import discard_work
    from agent_orchestrator.surfaces.cli.screen import Screen, plain, print_json

    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run)
        report = discard_work(orchestrator, found)
        if as_json:
            facts = {"kept": report.kept, "bring_back": list(report.ways_back), "notes": list(report.notes)}
            print_json({"run_id": found.id, **facts})
            return 0
        screen = Screen(orchestrator.settings.environ)
        for name, ref in report.kept.items():
            screen.line(f"discarded {plain(name)}, kept as {ref}")
        for way in report.ways_back:
            screen.line(f"bring it back: {plain(way)}")
        for note in report.notes:
            screen.line(f"left: {plain(note)}")
    return 0
