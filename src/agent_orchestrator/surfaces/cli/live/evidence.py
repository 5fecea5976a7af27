"""The evidence about a question: how the checks ended, and the diff, which a thread reads so that nothing waits for git."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from agent_orchestrator.agents.output import readable
from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.units import say_count, say_duration
from agent_orchestrator.errors import OrcError
from agent_orchestrator.git.diffs import read_diff
from agent_orchestrator.runs.changes import ChangeSize, find_judged_changes
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.screen import plain
from agent_orchestrator.surfaces.transcript import Line, Span

CHECKS_SHOWN = 4
DIFF_CHARS = 2_000_000


class DiffText(NamedTuple):
    """The diff behind a question: its size in words, and its lines."""

    size: str
    lines: list[Line]


def list_checks(system: Any, state: Any, unit: str) -> tuple[Span, ...]:
    """Return how the newest checks of a unit ended, or those of the units that it needs where it has none of its own."""
    steps = system.details(state)["steps"]
    needs = getattr(state.specs.get(unit), "needs", ())
    for units in ((unit,), needs):
        newest = {
            (one, evidence["command"]): evidence for one in units if one in steps for evidence in steps[one].get("evidence", ())
        }
        if newest:
            return tuple(_say_check(one if one != unit else "", evidence) for (one, _), evidence in newest.items())[
                -CHECKS_SHOWN:
            ]
    return ()


def _say_check(unit: str, evidence: dict[str, Any]) -> Span:
    of = f"{plain(unit)}: " if unit else ""
    named = f"{of}check `{plain(evidence['command'])}`"
    code, took = evidence["exit_code"], say_duration(evidence["duration_s"])
    if evidence["void"]:
        return Span(f"{named} is void: the working tree changed while it ran", "yellow")
    if evidence["failure"]:
        return Span(f"{named} could not be run to its end: {plain(evidence['failure'])}", "red")
    ended, tone = ("passed", "green") if code == 0 else ("failed", "red")
    return Span(f"{named} {ended} (exit code {code}, {took})", tone)


class DiffReader:
    """The diff of one question, read in the background."""

    def __init__(self, orchestrator: Orchestrator, run: StoredRun, question: AskHuman) -> None:
        self.question = question.id
        self.found: DiffText | None = None
        """None while git is at it."""
        given = (Orchestrator(settings=orchestrator.settings), run, question.unit)
        threading.Thread(target=self._read, args=given, daemon=True).start()

    def _read(self, orchestrator: Orchestrator, run: StoredRun, unit: str) -> None:
        try:
            with orchestrator:
                self.found = read_change(orchestrator, run, unit)
        except (OrcError, OSError) as error:
            self.found = DiffText("", [[Span(plain(error))]])


def read_change(orchestrator: Orchestrator, run: StoredRun, unit: str) -> DiffText:
    """Return the diff of a unit's work, or of the whole run where the unit has none of its own; raises Refused and GitFailed."""
    lines: list[Line] = []
    size = ChangeSize()
    changes = find_judged_changes(orchestrator, run, unit)
    for change in changes:
        size, trees = size + ChangeSize.of(change.files()), change.difference
        named = change.work.branch or change.work.folder
        lines += [[Span(f"{plain(change.work.unit)}: {plain(named)}", "bold")]] if len(changes) > 1 else []
        lines += paint_diff(read_diff(trees.repo, trees.old, trees.new, DIFF_CHARS))
    told = f"{say_count(size.files, 'file')} changed, +{size.added} -{size.removed}" if size.files else "nothing changed"
    return DiffText(told, lines)


def paint_diff(text: str) -> list[Line]:
    """Return a diff in lines with colours of our own: whatever stands in the files cannot steer the terminal."""
    return [[Span(readable(line.expandtabs(4)), _tone(line))] for line in text.splitlines()]


def _tone(line: str) -> str:
    if line.startswith(("+++", "---", "diff ", "index ")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
