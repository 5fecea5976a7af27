"""Starts runs and goes on with them, here or in another process of ours: the same for every system."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click
import msgspec

from agent_orchestrator.config.defaults import load_defaults
from agent_orchestrator.core.inputs import SetAgents, SetLimits
from agent_orchestrator.core.pull_request import PullRequestPlan
from agent_orchestrator.core.units import read_count
from agent_orchestrator.engine.owners import Owned
from agent_orchestrator.errors import EditsUnconfirmed, RunExists
from agent_orchestrator.runs.choices import AgentOptions, Permissions
from agent_orchestrator.runs.directives import Sent, new_id, send_and_wait
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.sandbox import SandboxOptions
from agent_orchestrator.runs.settings import reread
from agent_orchestrator.runs.start import Change, Prepared, Start, Started, prepare_run, start_prepared
from agent_orchestrator.runs.takeup import TakeUp, refuse_unkept, take_up
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.cli.budget import read_flag_budget
from agent_orchestrator.surfaces.cli.detach import detach, resume_arguments
from agent_orchestrator.surfaces.cli.drive import Manner, drive
from agent_orchestrator.surfaces.cli.options import read_options
from agent_orchestrator.surfaces.cli.progress import Writer
from agent_orchestrator.surfaces.cli.queue import queue_started
from agent_orchestrator.surfaces.cli.screen import warn
from agent_orchestrator.systems import about

if TYPE_CHECKING:
    from agent_orchestrator.cluster.submission import Submitting


def read_manner(orchestrator: Orchestrator, given: Mapping[str, Any]) -> Manner:
    """Return how a run is shown and left, and who is told: by flags, else by the configuration."""
    usual = load_defaults(orchestrator.settings)
    names = ("quiet", "as_json", "no_wait", "on_wait", "on_end")
    said = {name: given[name] for name in names if given.get(name) is not None}
    return Manner(**{"on_wait": usual.on_wait, "on_end": usual.on_end, **said})


def read_change(given: Mapping[str, Any], **more: Any) -> Change:
    """Return what a run is to go on with."""
    permissions = Permissions(allow_tools=given["allow_tools"], mode=given["permission_mode"])
    edits = given.get("adopt_edits")  # Not every command that goes on with a run has the option.
    return Change(budget=read_flag_budget(given), permissions=permissions, shared=given["shared_tree"], edits=edits, **more)


def read_pull_request(given: Mapping[str, Any]) -> PullRequestPlan | None:
    """Return the pull request that is asked for, with the issue that it closes; None without `--pr`."""
    if not given.get("pr"):
        return None
    issue = given.get("issue_number")
    return PullRequestPlan(closes=read_count(issue, "--issue-number") if issue is not None else 0)


def start(
    orchestrator: Orchestrator, options: AgentOptions, given: Mapping[str, Any], prepared: Prepared[Any] | None = None
) -> int:
    """Start a run and stay with it, or let it go on in the background; returns the exit code."""
    prepared = prepared or prepare_run(orchestrator, options)
    warn_all(prepared.warnings)
    under_way: Submitting | None = given.get("submitting")
    how = Start(
        run_id=given.get("run_id"),
        worktree=_wants_worktree(given),
        worktree_branch=given.get("git_worktree_branch") or "",
        worktree_ref=given.get("git_worktree_ref") or "",
        shared=given["shared_tree"],
        force=given.get("force", False),
        publish=given.get("publish"),
        pull_request=read_pull_request(given),
        pass_env=tuple(given["pass_env"]),
        mcp=given.get("mcp"),
        budget=read_flag_budget(given),
        sandbox=read_options(SandboxOptions, dict(given)),
        remote=under_way.submission.remote.url if under_way is not None else "",
    )
    try:
        started = start_prepared(orchestrator, options, prepared, how)
    except RunExists as error:
        if under_way is None or not under_way.clear(error.values["run"]):
            raise
        started = start_prepared(orchestrator, options, prepared, how)
    if under_way is not None:
        warn_all(started.notes)
        return queue_started(under_way, started, as_json=given["as_json"])
    return drive_started(orchestrator, started, given)


def _wants_worktree(given: Mapping[str, Any]) -> bool | None:
    """Return what is said about a worktree; a run that workers do has one, so that all of its work is committed on its branch."""
    said: bool | None = given.get("git_worktree")
    return True if said is None and given.get("submitting") is not None else said


def drive_started(orchestrator: Orchestrator, started: Started, given: Mapping[str, Any]) -> int:
    """Drive a run that was just made, here or in the background."""
    run, manner = started.run, read_manner(orchestrator, given)
    warn_all(started.notes)
    if given["detach"]:
        started.owner.release()
        return drive_behind(orchestrator, run, manner)
    announce(run, manner)
    return drive(orchestrator, run, started.owner, manner)


def drive_behind(orchestrator: Orchestrator, run: StoredRun, manner: Manner, given: Mapping[str, Any] | None = None) -> int:
    """Let another process of ours go on with the run, by the `resume` of its system."""
    group = about(run.system).resume.split()[1:-1]
    return detach(orchestrator, run, [*group, *resume_arguments(run, manner, given)], manner)


def take_up_asking(orchestrator: Orchestrator, run: StoredRun, change: Change) -> TakeUp:
    """Take a run up; at a terminal its person is asked about state files that were edited."""
    try:
        return take_up(orchestrator, run, change)
    except EditsUnconfirmed as error:
        if error.values["lived"] or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        warn_all(str(error).splitlines())
        if not click.confirm("Continue with these edits?", default=False, err=True):
            raise
        return take_up(orchestrator, run, msgspec.structs.replace(change, edits=True))


def drive_again(orchestrator: Orchestrator, run: StoredRun, owner: Owned, taken: TakeUp, manner: Manner) -> int:
    """Drive a run that was taken up."""
    announce(run, manner)
    warn_all(taken.notes)
    return drive(orchestrator, run, owner, manner, taken.inputs)


def tell_change(orchestrator: Orchestrator, run: StoredRun, change: Change) -> Sent | None:
    """Tell the run, whoever drives it, what its agents may do and spend from now on; None when that changes nothing."""
    sent = None
    if change.permissions.any:
        read = reread(orchestrator, orchestrator.fold(run).state.spec, change.permissions)
        warn_all((*read.notes, *read.changes))
        if read.agents:
            agents = orchestrator.sign(run, SetAgents(id=new_id(), agents=read.agents, changes=read.changes))
            sent = send_and_wait(orchestrator, run, agents)
    if change.budget.is_set:
        limits = orchestrator.sign(run, SetLimits(id=new_id(), limits=change.budget))
        refuse_unkept(orchestrator.fold(run), change.budget)
        sent = send_and_wait(orchestrator, run, limits)
    return sent


def warn_all(notes: Iterable[str]) -> None:
    """Tell each of these to the person, beside the output."""
    for note in notes:
        warn(note)


def announce(run: StoredRun, manner: Manner) -> None:
    """Print the first line: whoever started us can find the run again, whatever happens next."""
    Writer(sys.stderr if manner.as_json else sys.stdout).line(f"{about(run.system).noun} {run.id}")
