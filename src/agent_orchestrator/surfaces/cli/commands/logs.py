"""`orc logs`: what a step's programs wrote, also while they write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.errors import Refused, UnknownUnit
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument, step_argument, stream_options

if TYPE_CHECKING:
    import re

    from agent_orchestrator.runs.follow import Follower
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.outputs import Outputs
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.surfaces.cli.streams import StreamPrinter
    from agent_orchestrator.surfaces.cli.transcripts import LogOptions, TranscriptPrinter

EXAMPLE = """
orc logs f8c1 coding
orc logs f8c1 coding --err --attempt 1
orc logs f8c1 -f
orc logs f8c1 coding --raw > coding.jsonl
"""


@make_command("logs", EXAMPLE)
@run_argument()
@step_argument()
@click.option("--follow", "-f", is_flag=True, help="Keep printing until the run ends.")
@click.option("--attempt", metavar="N", help="Of this attempt; the newest without it.")
@stream_options
def command(run: str | None, step: str | None, repo: str | None, as_json: bool, **given: Any) -> int:
    """Show what a step's agent said and did.

    Its words, a line for each tool call, denials, retries and the cost; --raw prints the stream itself. Without STEP, of
    every step, in the order they started. The newest attempt of each, and of each thing that it did (its agents, its
    checks), unless --attempt names one.
    """
    from agent_orchestrator.surfaces.cli.transcripts import LogOptions

    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run, or_newest=True)
        return print_logs(orchestrator, found, step, LogOptions(**given), as_json=as_json)


def print_logs(orchestrator: Orchestrator, found: StoredRun, step: str | None, options: LogOptions, *, as_json: bool) -> int:
    """Print what the launches of a run's units wrote."""
    from agent_orchestrator.core.units import read_count
    from agent_orchestrator.runs.follow import Follower
    from agent_orchestrator.runs.outputs import open_outputs
    from agent_orchestrator.surfaces.cli.screen import print_json, warn
    from agent_orchestrator.surfaces.cli.streams import launch_facts
    from agent_orchestrator.surfaces.cli.transcripts import make_printer

    wanted = read_count(options.attempt, "--attempt") if options.attempt is not None else None
    follower = Follower(orchestrator, found)
    if step is not None and step not in follower.state.steps:
        raise UnknownUnit(run=found.id, unit=step, known=", ".join(list(follower.state.steps)[:20]))
    with open_outputs(orchestrator, found) as outputs:
        if as_json:
            facts = [launch_facts(outputs.root, one) for one in newest_launches(follower, step, wanted)]
            print_json({"run_id": found.id, "launches": facts})
            return 0
        choices, environ = follower.state.spec.choices, orchestrator.settings.environ
        printer = make_printer(outputs.root, environ, choices, options, headed=step is None)
        printed = _print_all(printer, follower, outputs, step, wanted, follow=options.follow)
    if not printed:
        what = f"step {step!r}" if step is not None else "it"
        what = f"{what} in attempt {wanted}" if wanted is not None else what
        raise Refused(why=f"Run {found.id} has no output of {what} yet.")
    if not printer.wrote and not options.err:
        where = found.id if step is None else f"{found.id} {step}"
        warn(f"nothing was written to the output; the error output: orc logs {where} --err")
    return 0


def _print_all(
    printer: StreamPrinter | TranscriptPrinter,
    follower: Follower,
    outputs: Outputs,
    step: str | None,
    wanted: int | None,
    *,
    follow: bool,
) -> bool:
    from agent_orchestrator.runs.follow import POLL_S, pause

    seen: dict[EffectId, bool] = {}
    while True:
        over = follower.is_over() or not follow
        newest = newest_launches(follower, step, wanted)
        outputs.refresh()
        # One that is not among the newest any more was followed by another, and has ended.
        seen = {**dict.fromkeys(seen, True), **{launch["effect"]: "ended_us" in launch for launch in newest}}
        for effect, ended in seen.items():
            printer.print_new(effect, ended=ended)
        if over:
            printer.close()
            return bool(seen)
        printer.draw()
        try:
            pause(POLL_S)
        except KeyboardInterrupt:
            printer.erase()
            raise
        follower.read()


def newest_launches(follower: Follower, step: str | None, wanted: int | None) -> list[dict[str, Any]]:
    """The launches that are meant, in the order they started."""
    from agent_orchestrator.surfaces.cli.streams import LAUNCH

    chosen: list[dict[str, Any]] = []
    details = follower.system.details(follower.state)["steps"]
    for unit in details if step is None else [step]:
        launches = [(launch, LAUNCH.search(launch["effect"])) for launch in details[unit]["launches"]]
        named = [(launch, match) for launch, match in launches if match is not None]
        if wanted is not None:
            named = [(launch, match) for launch, match in named if int(match[2]) == wanted]
        for kind in dict.fromkeys(_thing(match) for _, match in named):
            chosen += _of_last_attempt([(launch, match) for launch, match in named if _thing(match) == kind])
    return sorted(chosen, key=lambda launch: (launch["started_us"], launch["effect"]))


def _thing(match: re.Match[str]) -> str:
    """Name what a launch was for; an agent and the check of its work are one thing."""
    return "agent" if match[4] == "check" else match[4]


def _of_last_attempt(named: list[tuple[dict[str, Any], re.Match[str]]]) -> list[dict[str, Any]]:
    """The launches from the last one back to where its attempt began: counters start again when a failed step does."""
    from agent_orchestrator.core.failure import GOES_ON

    chosen: list[dict[str, Any]] = []
    later = named[-1][1] if named else None
    for launch, match in reversed(named):
        assert later is not None
        # A failed launch ends an attempt only where the same was begun again: a check belongs to the agent before it.
        again = bool(chosen) and match[4] == later[4] != "check"
        failed = again and launch.get("failure") is not None and launch["failure"] not in GOES_ON
        judged = (match[4], later[4]) == ("check", "agent")
        if failed or judged or (match[1], match[2]) != (later[1], later[2]):
            break
        chosen.append(launch)
        later = match
    return chosen
