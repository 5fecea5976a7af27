"""`orc show`: everything known about a run or a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_orchestrator import typed
from agent_orchestrator.core.ids import launch_of
from agent_orchestrator.errors import UnknownUnit
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument, step_argument

if TYPE_CHECKING:
    from agent_orchestrator.surfaces.cli.screen import Screen

EXAMPLE = """
orc show f8c1
orc show f8c1 coding
orc show f8c1 --json | jq .state.steps
"""

EVIDENCE_SHOWN = 3
TAIL_LINES = 15


@make_command("show", EXAMPLE)
@run_argument()
@step_argument()
def command(run: str | None, step: str | None, repo: str | None, as_json: bool) -> int:
    """Show everything known about a run or a step.

    With --json: the state document, and what it does not carry: questions, launches, evidence of checks, feedback, usage.
    """
    import msgspec

    from agent_orchestrator.runs.details import show_facts
    from agent_orchestrator.surfaces.cli.overview import print_header, print_run
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json
    from agent_orchestrator.systems import about

    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run, or_newest=True)
        folded = orchestrator.fold(found)
        facts = show_facts(orchestrator, found, folded)
        document, details, usage = facts["state"], facts["details"], facts["usage"]
        if step is not None and step not in details["steps"]:
            raise UnknownUnit(run=found.id, unit=step, known=", ".join(list(details["steps"])[:20]))
        if about(found.system).iterates:
            step = None  # Its one unit is the run itself.
        if step is not None:
            of_unit = document["steps"][step] if "steps" in document else msgspec.to_builtins(folded.state.steps[step])
            document, details = of_unit, details["steps"][step]
            usage = [row for row in usage if row["unit"] == step]
            questions = [one for one in facts["questions"] if one["unit"] == step]
            facts |= {"step": step, "state": document, "details": details, "questions": questions, "usage": usage}
        if as_json:
            print_json(facts)
            return 0
        screen = Screen(orchestrator.settings.environ)
        if step is None:
            print_run(orchestrator, screen, found, folded)
            if (wall := found.context.sandbox) is not None:
                screen.line(f"sandbox: {wall.wall}, network {wall.proxy or wall.network}")
            _print_usage(screen, usage)
        else:
            print_header(orchestrator, screen, found, folded)
            screen.line()
            _print_step(screen, step, document, details)
            _print_usage(screen, usage)
            screen.line(f"output: orc logs {found.id} {step}")
    return 0


def _print_step(screen: Screen, step: str, document: dict[str, Any], details: dict[str, Any]) -> None:
    from agent_orchestrator.surfaces.cli.screen import plain

    screen.line(f"step {screen.paint(step, 'bold')}  {screen.paint_status(document['status'], document['status'])}")
    for name in ("attempts", "iteration_count", "started_at", "ended_at", "last_error", "blocked_by_loop", "report_path"):
        if document.get(name) is not None:
            screen.line(f"  {name.replace('_', ' '):<16}{plain(document[name])}")
    if document["status"] == "WAITING_ON_HUMAN" and document["manual_input_path"] is not None:
        screen.line(f"  {'answer file':<16}{plain(document['manual_input_path'])}")
    for name in ("artifacts", "logs"):
        for number, text in enumerate(document.get(name, ())):
            screen.line(f"  {name if not number else '':<16}{plain(text)}")
    for number, (name, value) in enumerate(document.get("metrics", {}).items()):
        screen.line(f"  {'metrics' if not number else '':<16}{plain(name)} = {plain(value)}")
    if details.get("summary"):
        screen.line(f"  {'summary':<16}{plain(details['summary'])}")
    _print_launches(screen, details)
    for evidence in details.get("evidence", ())[-EVIDENCE_SHOWN:]:
        verdict = "void" if evidence["void"] else f"exit code {evidence['exit_code']}"
        screen.line(f"  {'check':<16}{plain(evidence['command'])}: {verdict} after {evidence['duration_s']:.1f}s")
        for line in evidence["tail"].splitlines()[-TAIL_LINES:]:
            screen.line(f"      | {plain(line)}")
    for text in details.get("warnings", ()):
        screen.line(f"  {'warning':<16}{plain(text)}")


def _print_launches(screen: Screen, details: dict[str, Any]) -> None:
    from agent_orchestrator.surfaces.cli.phrases import date_time
    from agent_orchestrator.surfaces.cli.screen import plain

    for number, launch in enumerate(details["launches"]):
        end = "still running" if launch.get("ended_us") is None else f"exit code {launch.get('exit_code', 'unknown')}"
        why = f" ({plain(launch['failure'])})" if launch.get("failure") else ""
        name = launch_of(launch["effect"])
        session = f"  session {plain(launch['session'])}" if launch.get("session") else ""
        screen.line(f"  {'launches' if not number else '':<16}{date_time(launch['started_us'])}  {name}  {end}{why}{session}")


def _print_usage(screen: Screen, usage: list[dict[str, Any]]) -> None:

    from agent_orchestrator.core.inputs import Usage
    from agent_orchestrator.core.units import say_cost, say_count

    if not usage:
        return
    costs = [row["usage"].get("cost_usd") for row in usage]
    known = [cost for cost in costs if cost is not None]
    cost = say_cost(sum(known) if known else None, partly=len(known) < len(costs))
    tokens = sum(typed.convert(row["usage"], Usage).tokens or 0 for row in usage)
    screen.line(f"usage: cost {cost}, {say_count(tokens, 'token')} in {say_count(len(usage), 'launch')}")
