"""A run between its options and its first driver: prepared, then started and owned by this process.

The hooks of a system prepare its options, which gives a `Prepared`, and start that with a `Start`, which gives a `Started`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from agent_orchestrator.config.defaults import load_configuration
from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.pull_request import PullRequestPlan
from agent_orchestrator.core.sandbox import Sandbox
from agent_orchestrator.core.system import Context, System
from agent_orchestrator.engine.owners import Owned
from agent_orchestrator.runs.agent_door import require_server_packages
from agent_orchestrator.runs.choices import NOTHING_MORE, AgentOptions, Permissions
from agent_orchestrator.runs.hooks import hooks_of
from agent_orchestrator.runs.orchestrator import Beginning, Orchestrator
from agent_orchestrator.runs.remote import refuse_unpublishable
from agent_orchestrator.runs.sandbox import SandboxOptions, choose_sandbox
from agent_orchestrator.store.port import StoredRun

SomeSpec = TypeVar("SomeSpec")


class Prepared(msgspec.Struct, Generic[SomeSpec], frozen=True, kw_only=True):
    """A specification ready to run, with what a person should know about it."""

    spec: SomeSpec
    warnings: tuple[str, ...] = ()
    worktree: bool = False
    """It works in a tree of its own unless somebody says otherwise."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """The options of starting a run that are no part of its specification."""

    run_id: str | None = None
    worktree: bool | None = None
    """A tree of its own; None where nobody said."""
    worktree_branch: str = ""
    """The branch of the worktree; empty for one that is named after the run."""
    worktree_ref: str = ""
    """The commit that it begins at; empty for the current one."""
    shared: bool = False
    """Work in a tree that another run works in."""
    force: bool = False
    publish: bool | None = None
    pull_request: PullRequestPlan | None = None
    """The pull request to open when it has completed: it works in a tree of its own unless somebody says otherwise."""
    pass_env: tuple[str, ...] = ()
    mcp: bool | None = None
    """The MCP server for its agents; None where nobody said."""
    budget: Budget = Budget()
    sandbox: SandboxOptions = SandboxOptions()
    """The wall that is asked for, as given."""
    wall: Sandbox | None = None
    """The wall that is built."""
    remote: str = ""
    """The address of the repository that workers drive it from; empty for one that is driven here."""

    def make_context(self, orchestrator: Orchestrator, run: str, workdir: Path | None = None) -> Context:
        """Return the context of a run that begins now, in the repository unless it works elsewhere."""
        home = orchestrator.settings.home
        return Context(
            run=RunId(run),
            home=str(home),
            workdir=str(workdir or home),
            created_us=orchestrator.clock.now_us(),
            pass_env=self.pass_env,
            shared_tree=self.shared,
            sandbox=self.wall,
            pull_request=self.pull_request,
            mcp=bool(self.mcp),
            remote=self.remote,
        )


NOTHING_SPECIAL = Start()


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The options that a run which goes on takes over, as given."""

    values: dict[str, Any] = {}
    """The `changes` of a `Resume`."""
    budget: Budget = Budget()
    permissions: Permissions = NOTHING_MORE
    publish: bool | None = None
    adopt: bool = False
    """Take what changed in the workflow file."""
    edits: bool | None = None
    """A person's word on state files that were edited: adopt them, put them aside, or None for none."""
    shared: bool = False
    force: bool = False


UNCHANGED = Change()


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A run that exists, owned by this process, and what a person should know."""

    run: StoredRun
    owner: Owned
    notes: tuple[str, ...] = ()


def prepare_run(orchestrator: Orchestrator, options: AgentOptions) -> Prepared[Any]:
    """Return the specification that a system's options mean; raise a UsageError where it could never work."""
    return hooks_of(options.system).prepare(orchestrator, options)


def start_prepared(orchestrator: Orchestrator, options: AgentOptions, prepared: Prepared[Any], start: Start) -> Started:
    """Create a run, owned by this process, with what is configured where nothing is given."""
    hooks, configured = hooks_of(options.system), load_configuration(orchestrator.settings)
    budget = hooks.set_budget(prepared.spec, configured.budget.override(start.budget))
    if start.pull_request is not None:
        refuse_unpublishable(orchestrator)
    own_tree = prepared.worktree or start.pull_request is not None
    said = (start.worktree, configured.run.worktree, own_tree)
    worktree = next(one for one in said if one is not None)
    wall, notes = choose_sandbox(start.sandbox.complete(configured.run), orchestrator.settings)
    mcp = configured.run.mcp if start.mcp is None else start.mcp
    if mcp:
        require_server_packages()
    how = msgspec.structs.replace(start, budget=budget, worktree=worktree, wall=wall, mcp=mcp)
    started = hooks.start(orchestrator, options, prepared.spec, how)
    return msgspec.structs.replace(started, notes=(*notes, *started.notes))


def create_owned(
    orchestrator: Orchestrator, system: System, spec: object, name: str, context: Context, budget: Budget
) -> Started:
    """Take up and create a run; nobody else can drive it in between."""
    owner = orchestrator.own(context.run)
    try:
        return Started(run=orchestrator.create(system, spec, name, context, Beginning(budget=budget)), owner=owner)
    except BaseException:
        owner.release()
        raise
