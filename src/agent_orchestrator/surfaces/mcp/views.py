"""Runs as the tools of the MCP server tell them: the same facts as the commands print, short enough for a model to read."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.ids import launch_folder
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.errors import Refused, UnknownUnit
from agent_orchestrator.git.diffs import read_diff
from agent_orchestrator.runs.changes import ChangeSize, find_changes
from agent_orchestrator.runs.departure import wait_until_left
from agent_orchestrator.runs.details import show_facts
from agent_orchestrator.runs.digest import make_digest
from agent_orchestrator.runs.facts import run_facts
from agent_orchestrator.runs.follow import LOOK_S, Follower, pause
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.secrets import make_redactor
from agent_orchestrator.store.port import StoredRun, Which
from agent_orchestrator.surfaces.cli.commands.logs import newest_launches
from agent_orchestrator.surfaces.cli.overview import STEPS_SHOWN, steps_of
from agent_orchestrator.surfaces.digest import to_markdown
from agent_orchestrator.surfaces.output import LaunchOutput
from agent_orchestrator.systems import about

RUNS_MAX = 200
TIMEOUT = "timeout"
FACTS = ("run_id", "system", "name", "status", "stop", "detail", "done", "total", "failed", "asks", "ended", "driven_by")
"""The facts of a run in a list."""


def list_runs(orchestrator: Orchestrator, limit: int, *, unfinished: bool) -> dict[str, Any]:
    """Return the runs, newest first."""
    found = orchestrator.runs(Which(ended=False if unfinished else None, most=max(1, min(limit, RUNS_MAX))))
    count = orchestrator.count()
    facts = [run_facts(run, orchestrator.owner(run)) for run in found]
    listed = [{name: one[name] for name in FACTS} for one in facts]
    return {"repo": str(orchestrator.settings.home), "runs": listed, "total": count.total, "unfinished": count.unfinished}


def describe_run(orchestrator: Orchestrator, run: StoredRun, folded: Folded | None = None) -> dict[str, Any]:
    """Return how a run stands: its units, what it asks people, and what can be done next."""
    folded = folded or orchestrator.fold(run)
    summary, owner = folded.summary(), orchestrator.owner(run)
    units = steps_of(folded, orchestrator.clock.now_us())
    return {
        **run_facts(msgspec.structs.replace(run, summary=summary), owner),
        "units": units[:STEPS_SHOWN],
        "units_left_off": max(0, len(units) - STEPS_SHOWN),
        "questions": list_questions(folded),
        "spoken": list_spoken(folded),
        "next": advise(run, folded, owner),
    }


def list_questions(folded: Folded) -> list[dict[str, str]]:
    """Return what a run asks a person."""
    if folded.state.lifecycle.ended:
        return []
    asked = [one for one in folded.state.doing if isinstance(one, AskHuman)]
    return [{"id": one.id, "unit": one.unit, "text": one.question} for one in asked]


def list_spoken(folded: Folded) -> list[dict[str, str]]:
    """Return what agents at work ask a person."""
    return [{"unit": one.unit, "text": one.text} for one in folded.state.doing.spoken.values()]


def advise(run: StoredRun, folded: Folded, owner: str | None) -> str:
    """Say what comes next, and who does it."""
    summary = folded.summary()
    if summary.status == "completed":
        return f"It is done. diff_run shows its changes; a person takes them over with `orc merge {run.id}`."
    if summary.ended:
        return f"It ended: {summary.status}. run_logs says why; resume_run tries what failed again."
    if questions := list_questions(folded):
        asked = next(one for one in folded.state.doing if isinstance(one, AskHuman))
        way = about(run.system).answer if asked.in_words else f"orc approve {run.id} {questions[0]['unit']}"
        return f"A person has to answer: `{way}`."
    if spoken := folded.state.doing.spoken:
        unit, asked = next(iter(spoken.items()))
        return f"The agent of {unit} asks the person: {asked.text} Ask them, and carry their words with steer_run."
    if owner is None:
        return "Nothing is running it; resume_run continues it."
    return "It is running; wait_run waits for it."


def wait_for_run(orchestrator: Orchestrator, run: StoredRun, timeout_s: float) -> dict[str, Any]:
    """Wait until a run has ended, needs a person or is left by whoever drove it, but no longer than asked; tell how it stands."""
    follower = Follower(orchestrator, run)
    reason = TIMEOUT
    for _ in range(1 + round(timeout_s / LOOK_S)):
        left = orchestrator.owner(run) is None  # Asked before the journal: its last facts come before it is left.
        follower.read()
        summary = follower.folded.summary()
        if summary.ended or summary.asks or left:
            reason = "ended" if summary.ended else "needs_person" if summary.asks else "not_running"
            break
        pause()
    run = orchestrator.find(run.id)
    wait_until_left(orchestrator, run)
    return {"waited_until": reason, **describe_run(orchestrator, run, follower.folded)}


def read_logs(orchestrator: Orchestrator, run: StoredRun, unit: str | None, most: int) -> dict[str, Any]:
    """Return what agents and checks said and did, as `orc logs` prints it: the end of it, without secrets."""
    follower = Follower(orchestrator, run)
    if unit is not None and unit not in follower.state.steps:
        raise UnknownUnit(run=run.id, unit=unit, known=", ".join(list(follower.state.steps)[:20]))
    root, redactor = orchestrator.settings.folder / "launches", make_redactor(orchestrator, run)
    parts: list[str] = []
    launches = newest_launches(follower, unit, None)
    for launch in reversed(launches):  # The last ones are asked for; of a thousand units the others are not read.
        output = LaunchOutput(root / launch_folder(launch["effect"]), "both", follower.state.spec.choices, redactor)
        lines = ["".join(span.text for span in line) for line in output.close()]
        parts.insert(0, "\n".join([f"==> {launch['effect']} <==", *lines]))
        if sum(map(len, parts)) >= most:
            break
    if not parts:
        raise Refused(why=f"Run {run.id} has no output of {unit or 'it'} yet.")
    text = "\n\n".join(parts)
    return {"run_id": run.id, "unit": unit, "text": text[-most:], "cut": len(text) > most or len(parts) < len(launches)}


def read_changes(orchestrator: Orchestrator, run: StoredRun, unit: str | None, most: int) -> dict[str, Any]:
    """Return the changes of a run, as `orc diff` prints them: names and sizes whole, the text as far as it fits."""
    works, left = [], most
    for change in find_changes(orchestrator, run, unit):
        files, trees = change.files(), change.difference
        size, text = ChangeSize.of(files), read_diff(trees.repo, trees.old, trees.new, left) if left else ""
        left = max(0, left - len(text))
        works.append(
            {
                "unit": change.work.unit or None,
                "branch": change.work.branch or None,
                "files": [msgspec.to_builtins(file) for file in files],
                "lines_added": size.added,
                "lines_removed": size.removed,
                "diff": text,
            }
        )
    return {"run_id": run.id, "works": works}


def show_state(orchestrator: Orchestrator, run: StoredRun) -> str:
    """Return everything known about a run, as `orc show --json` prints it."""
    facts = show_facts(orchestrator, run, orchestrator.fold(run))
    return msgspec.json.format(msgspec.json.encode(facts, enc_hook=str)).decode()


def show_report(orchestrator: Orchestrator, run: StoredRun) -> str:
    """Return what happened in a run, as `orc report --md` prints it."""
    return to_markdown(make_digest(orchestrator, 0, 1, run))
