"""`orc swarm validate`: records against their schemas, and old ones brought up to the full format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_orchestrator.surfaces.cli.swarm.shared import open_workspace, swarm_command

if TYPE_CHECKING:
    from agent_orchestrator.runs.swarm.records import Checked
    from agent_orchestrator.surfaces.cli.screen import Screen

EXAMPLE = """
orc swarm validate --all
orc swarm validate --runs state/runs/bd-abc.json
orc swarm validate --fix --runs
"""

FAULTS_SHOWN = 10


@swarm_command("validate", EXAMPLE)
@click.argument("path", required=False, type=click.Path())
@click.option("--runs", is_flag=True, help="Run records.")
@click.option("--results", is_flag=True, help="Result records.")
@click.option("--all", "both", is_flag=True, help="Both; the same as giving none of the three.")
@click.option("--fix", is_flag=True, help="Fill in what is known; the original is kept as FILE.bak.")
def command(path: str | None, workspace: str | None, as_json: bool, fix: bool, **wanted: bool) -> int:
    """Validate records against their schemas.

    All of the workspace, or one file or folder. Exits with 0 when all pass, 1 when any fails.
    """
    from agent_orchestrator.errors import MissingPath
    from agent_orchestrator.runs.swarm.records import check_record, find_records
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    chosen = tuple(kind for kind in ("run", "result") if wanted[f"{kind}s"])
    kinds = chosen if chosen and not wanted["both"] else ("run", "result")
    given = Path(path).expanduser() if path is not None else None
    if given is not None and not given.exists():
        raise MissingPath(what="The record", path=given)
    with open_workspace(workspace) as orchestrator:
        found = find_records(orchestrator.settings.home, kinds, given)
        checked = [check_record(kind, file, fix=fix) for kind, file in found]
        failed = [one for one in checked if one.faults]
        if as_json:
            files = [
                {
                    "path": one.path,
                    "kind": one.kind,
                    "valid": not one.faults,
                    "problems": one.faults,
                    "warnings": one.warnings,
                    "changes": one.changes,
                    "backup": one.kept,
                }
                for one in checked
            ]
            print_json({"passed": len(checked) - len(failed), "failed": len(failed), "files": files})
        else:
            _tell(Screen(orchestrator.settings.environ), checked, failed)
    return 1 if failed else 0


def _tell(screen: Screen, checked: list[Checked], failed: list[Checked]) -> None:
    from agent_orchestrator.core.units import say_count
    from agent_orchestrator.surfaces.cli.screen import plain

    for one in checked:
        if one.changes:
            screen.line(f"fixed  {plain(one.path)}: {plain(', '.join(one.changes))}; the original is {plain(one.kept)}")
        for fault in one.faults[:FAULTS_SHOWN]:
            screen.line(f"{screen.paint('FAIL', 'red')}   {plain(one.path)}: {plain(fault)}")
        if len(one.faults) > FAULTS_SHOWN:
            screen.line(f"FAIL   {plain(one.path)}: … and {len(one.faults) - FAULTS_SHOWN} more")
        for text in one.warnings:
            screen.line(f"{screen.paint('warn', 'yellow')}   {plain(one.path)}: {plain(text)}")
    passed = len(checked) - len(failed)
    screen.line(f"{say_count(len(checked), 'record')}: {passed} pass, {len(failed)} fail")
