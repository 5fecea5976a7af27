"""`orc swarm status`: the beads of a run, of all unfinished runs, or one bead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_orchestrator.surfaces.cli.swarm.shared import open_workspace, pick_swarm_run, swarm_command, target_argument

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.screen import Screen
    from agent_orchestrator.systems.swarm.state import SwarmState

EXAMPLE = """
orc swarm status
orc swarm status bd-101 --json
"""

RUNS_SHOWN = 10
BEADS_SHOWN = 200


@swarm_command("status", EXAMPLE)
@target_argument()
def command(target: str | None, workspace: str | None, as_json: bool) -> int:
    """Show the beads.

    Of one run, or one bead; without TARGET, of all runs that are not finished, and the newest that are.
    """
    from agent_orchestrator.runs.facts import run_facts
    from agent_orchestrator.runs.swarm.start import Swarm
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_workspace(workspace) as orchestrator:
        bead = None
        if target is not None:
            run, bead = pick_swarm_run(orchestrator, target)
            runs = [run]
        else:
            every = Swarm(orchestrator).runs
            runs = [run for run in every if not run.summary.ended] or every[:RUNS_SHOWN]
        shown = [(run, orchestrator.fold(run).state) for run in runs]
        if as_json:
            found = [{**run_facts(run, orchestrator.owner(run)), "beads": bead_facts(state, bead)} for run, state in shown]
            print_json(found[0] if target is not None else {"runs": found})
            return 0
        screen = Screen(orchestrator.settings.environ)
        if not shown:
            screen.line("No bead was dispatched from here yet: orc swarm dispatch --help")
        for run, state in shown:
            _print(orchestrator, screen, run, state, bead)
    return 0


def bead_facts(state: SwarmState, only: str | None = None) -> list[dict[str, Any]]:
    """The beads as data."""
    return [
        {
            "bead": bead,
            "standing": state.standing(bead).value,
            "attempt": held.attempt,
            "max_retries": held.limit,
            "agent": state.specs[bead].agent.name,
            "model": state.specs[bead].agent.model,
            "repo": state.specs[bead].repo,
            "branch": state.specs[bead].branch or None,
            "priority": state.specs[bead].priority,
            "needs": list(state.specs[bead].needs),
            "cost_usd": held.cost_usd,
            "failure_reason": state.failed.get(bead),
            "error": held.error or None,
            "merge": {"into": held.merge.into, "verdict": held.merge.verdict} if held.merge is not None else None,
            "warnings": list(held.warnings),
        }
        for bead, held in state.beads.items()
        if only is None or bead == only
    ]


def _print(orchestrator: Orchestrator, screen: Screen, run: StoredRun, state: SwarmState, only: str | None) -> None:
    from agent_orchestrator.surfaces.cli.overview import print_header

    print_header(orchestrator, screen, run, orchestrator.fold(run))
    rows = []
    for one in bead_facts(state, only)[:BEADS_SHOWN]:
        who = f"{one['agent']}:{one['model']}" if one["model"] else one["agent"]
        rows.append((one["bead"], one["standing"], f"{one['attempt']}/{one['max_retries']}", who, _why(state, one)))
    screen.table(("BEAD", "STATUS", "TRY", "AGENT", "WHY"), rows, status=1, whole=0)
    if only is None and len(state.beads) > BEADS_SHOWN:
        screen.line(f"… and {len(state.beads) - BEADS_SHOWN} more beads; --json has all.")
    screen.line()


def _why(state: SwarmState, one: dict[str, Any]) -> str:
    hold = state.doing.holds.get(one["bead"])
    if hold is not None:
        return hold.told
    if one["error"]:
        return str(one["error"])
    waits = [need for need in one["needs"] if state.standing(need) != "done"] if one["standing"] == "waiting" else []
    return f"waits for {', '.join(waits[:3])}" if waits else "; ".join(one["warnings"][-1:])
