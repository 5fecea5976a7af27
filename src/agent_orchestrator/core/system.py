"""A system: a value with pure functions over one run's state. The engine knows systems only through this.

No function may look at a clock, a file or a random number; `now_us` and ids come in from outside. `evolve` changes
the state in place and touches only what the event names: this, and nothing else, keeps a long run's cost flat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from agent_orchestrator.core.events import Event
from agent_orchestrator.core.forms import Forms
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.inputs import Input
from agent_orchestrator.core.pull_request import PullRequestPlan
from agent_orchestrator.core.sandbox import Sandbox
from agent_orchestrator.core.summary import Summary


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The place and time of a run's creation: recorded once, never recomputed."""

    run: RunId
    home: str
    """The repository: print-outs are written below it."""
    workdir: str
    """The tree agents work in: the repository, or a worktree of it."""
    created_us: int
    pass_env: tuple[str, ...] = ()
    """Names of variables that agents get from the environment of whoever drives the run; values are never stored."""
    shared_tree: bool = False
    """True for a run that was started to work in one tree with other runs."""
    sandbox: Sandbox | None = None
    """The wall around its agents and checks; None without one."""
    pull_request: PullRequestPlan | None = None
    """The pull request to open when it has completed; None for none."""
    mcp: bool = False
    """True for a run whose agents get its MCP server."""
    remote: str = ""
    """The address of the repository that workers drive it from; empty for one that is driven where it was started."""
    generation: int = 0
    """The number of times that the run has gone back to an earlier point; the journal has it, not the store."""


class ListedRun(Protocol):
    """A run as the store lists it."""

    @property
    def id(self) -> RunId:
        """The run."""

    @property
    def context(self) -> Context:
        """The place and time of its creation."""

    @property
    def summary(self) -> Summary:
        """The run in one line."""

    @property
    def updated_us(self) -> int:
        """When that line was written."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One print-out: a path below the run's home and what stands in it."""

    path: str
    body: Any
    """Encoded as JSON unless it is text or bytes."""
    once: bool = False
    """Never rewritten (a checkpoint, a record): synced to disk when it is made."""
    onto: Callable[[bytes], Any] | None = None
    """Makes the body of what stands in the file already, None to leave it; written only where there is one."""
    checked: bool = False
    """True when `faults` must find nothing wrong with it before it is written."""
    append: bool = False
    """Lines that are added to the file where they are missing: what others wrote there stays."""


class Snapshots(msgspec.Struct, frozen=True, kw_only=True):
    """The way to keep a system's states, so that a long run need not be folded from its first row: a cache, never a truth."""

    kind: Any
    """The type of the struct that has all of a state but what follows from the rest of it."""
    take: Callable[[Any], Any]
    """Makes one of a state."""
    restore: Callable[[Any, Context], Any]
    """Makes the state again."""


class System(msgspec.Struct, frozen=True, kw_only=True):
    """One way of working. Specs and states are opaque to everybody else."""

    name: str
    spec_type: type[Any]
    event_type: Any
    """The union of all events this system's journals may hold."""
    forms: Forms
    """The fields that its roles may add to their reports."""
    fresh: Callable[[Any, Context], Any]
    """Makes the state before the first event, of the spec."""
    begin: Callable[[Any, Context], Sequence[Event]]
    """Gives the first facts of a run."""
    decide: Callable[[Any, Input, int], Sequence[Event]]
    """Says what this input means now; all judging lives here. Outcomes that arrive here are wanted ones."""
    advance: Callable[[Any, int], Sequence[Event]]
    """Says what follows by itself now; asked until it is silent."""
    evolve: Callable[[Any, Any, int], None]
    """Applies one fact of that time. Never judges, never fails on an event of a released version."""
    documents: Callable[[Any, int], Iterable[Document]]
    """Gives the run's print-outs, exactly as the seed spells them."""
    moments: dict[type[Event], bool] = {}
    """Facts after which the print-outs are written before the next fact changes them, though that follows at once: by kind,
    True for always, False as long as it is not too much. Of all others a reader finds the newest state."""
    files: Callable[[Any, str], Iterable[str]]
    """Lists what a run of the spec writes below its home, as `core.files` describes: git leaves these out, and nothing else."""
    summary: Callable[[Any], Summary]
    """Puts the run in one line."""
    details: Callable[[Any], dict[str, Any]]
    """Gives everything worth showing that the print-outs do not carry."""
    faults: Callable[[str, Any], list[str]]
    """Lists what is wrong with a document, by its path, that was edited by hand; nothing means it may be adopted."""
    points: Callable[[Any], tuple[str, ...]] = lambda event: ()
    """Names the point that an event makes, as people do: a step that is done, an iteration, a checkpoint; mostly none."""
    imported_points: Callable[[Any], tuple[str, ...]] = lambda event: ()
    """Names the points that an event took over from files of another tool: no tree of them was kept here."""
    snapshots: Snapshots | None = None
    """None for a system whose runs have so few events that a fold is quick."""
    overview: Callable[[Sequence[ListedRun], Callable[[RunId], bool], int], Iterable[Document]] | None = None
    """Gives the print-outs over all its runs in one home, where it has any; the function says whether a process drives a run."""
