"""`orc prune`: deletes ended runs. Without --yes it only says what it would delete."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from agent_orchestrator.errors import InvalidValue
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

if TYPE_CHECKING:
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.screen import Screen

EXAMPLE = """
orc prune
orc prune --older-than 7d --keep 10 --yes
"""

_DAYS = re.compile(r"(\d{1,5})\s*([dw])\Z")


@make_command("prune", EXAMPLE)
@click.option("--older-than", metavar="AGE", default="30d", show_default=True, help="As in 12h, 30d, 8w; 0 takes every age.")
@click.option("--keep", metavar="N", default="0", show_default=True, help="The newest N ended runs always stay.")
@click.option("--yes", is_flag=True, help="Really delete; without it nothing is touched.")
def command(repo: str | None, as_json: bool, older_than: str, keep: str, yes: bool) -> int:
    """Delete ended runs.

    Their journals, outputs, state files, worktrees and refs below refs/orc/. By default those that ended within the last 30 days
    stay, and so do all that have not ended. A run with a worktree that has uncommitted changes, or a branch with commits that
    nobody merged, stays whole, unless `orc merge` or `orc discard` takes care of it. Of a run by workers, the
    refs below refs/orc/ of its remote are deleted, too, and its branch stays. What the dry run says is what --yes does.
    """
    from agent_orchestrator.core.units import US, read_count, say_count
    from agent_orchestrator.runs.prune import plan_pruning, prune
    from agent_orchestrator.store.port import Which
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    age_us = int(_read_age_s(older_than) * US)
    kept_newest = read_count(keep, "--keep", minimum=0)
    deleted: list[str] = []
    kept: dict[str, str] = {}
    with open_orchestrator(repo) as orchestrator:
        now_us = orchestrator.clock.now_us()
        ended = orchestrator.runs(Which(ended=True))
        chosen = [run for run in ended[kept_newest:] if now_us - run.updated_us >= age_us]
        if yes:
            answers = [prune(orchestrator, run) for run in chosen]
        else:
            answers = [plan.kept for plan in plan_pruning(orchestrator, chosen)]
        for run, why in zip(chosen, answers, strict=True):
            if why is None:
                deleted.append(run.id)
            else:
                kept[run.id] = why
        if as_json:
            print_json({"deleted": deleted if yes else [], "would_delete": [] if yes else deleted, "kept": kept})
            return 0
        screen = Screen(orchestrator.settings.environ)
        _tell(screen, chosen, deleted, kept, yes=yes, now_us=now_us)
        stay = len(ended) - len(chosen)
        if stay:
            young = "" if age_us == 0 else f"ended within the last {older_than}"
            newest = f"among the newest {kept_newest}" if kept_newest else ""
            why = " or ".join(part for part in (young, newest) if part)
            way = "; --older-than 0 takes every age" if young else ""
            screen.line(f"{say_count(stay, 'run')} {'stays' if stay == 1 else 'stay'}: {why}{way}.")
    return 0


def _tell(screen: Screen, chosen: list[StoredRun], deleted: list[str], kept: dict[str, str], *, yes: bool, now_us: int) -> None:
    from agent_orchestrator.core.units import say_count
    from agent_orchestrator.surfaces.cli.runs import say_age

    for run in chosen:
        if run.id in kept:
            screen.line(f"{'kept' if yes else 'would keep':<15}{run.id}  {run.name}: {kept[run.id]}")
        else:
            screen.line(f"{'deleted' if yes else 'would delete':<15}{run.id}  {run.name}  {say_age(run.updated_us, now_us)}")
    if not chosen:
        screen.line("There is nothing to prune.")
    elif not yes:
        screen.line(f"Nothing was touched; the same with --yes deletes {say_count(len(deleted), 'run')}.")


def _read_age_s(text: str) -> float:
    from agent_orchestrator.core.units import read_duration_s

    match = _DAYS.match(text.strip())
    if match is not None:
        return int(match[1]) * 86_400.0 * (7 if match[2] == "w" else 1)
    if text.strip() == "0":
        return 0.0
    try:
        return read_duration_s(text, "--older-than")
    except InvalidValue:
        raise InvalidValue(what="--older-than", value=text, expected="an age such as 12h, 30d or 8w") from None
