"""The hooks of a system: its own rules for runs that are started, taken up, deleted or imported.

`Hooks` has the rule for all runs. A system with another one overrides it in `runs/<system>/hooks.py`, as `HOOKS`; one
without such a file is served by these. Generic code asks `hooks_of(run.system)` and knows no system by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from agent_orchestrator.config.defaults import load_defaults
from agent_orchestrator.core.budget import Budget
from agent_orchestrator.errors import MissingPath, OrcError, UsageError
from agent_orchestrator.git.repository import checkout_of
from agent_orchestrator.runs.budget import refuse_unmetered
from agent_orchestrator.runs.work import Work, own_work
from agent_orchestrator.systems import find_part

if TYPE_CHECKING:
    from agent_orchestrator.analysis.records import Outcome
    from agent_orchestrator.core.inputs import Posted
    from agent_orchestrator.runs.choices import AgentOptions
    from agent_orchestrator.runs.imports import ImportOptions, TakenOver
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.start import Prepared, Start, Started
    from agent_orchestrator.store.port import StoredRun

SomeOptions = TypeVar("SomeOptions", bound="AgentOptions")

Changes = dict[str, Any]
"""The changes of a `Resume`."""


class Continuation(NamedTuple):
    """The part of a system in a run that goes on: made before anything is touched, and asked as the state becomes known."""

    compare: Callable[[Any], tuple[Changes, list[str]]] = lambda state: ({}, [])
    """Gives what resuming changes besides, and what a person should know; edits of people are in the state."""
    check: Callable[[Any, Changes], None] = lambda state, changes: None
    """Raises a UsageError where the run, as it is with these changes, cannot go on."""


class UnitPlace(NamedTuple):
    """A unit on the board of its run: its own title, and the column that it stands in; empty where there is none."""

    title: str = ""
    stage: str = ""


NOWHERE = UnitPlace()


class Hooks:
    """The rule for every run."""

    skips: bool = False
    """True where a unit can be left out by a person's word."""

    def complete(self, orchestrator: Orchestrator, options: SomeOptions) -> SomeOptions:
        """Return the options with the configured defaults, for what is not given."""
        return msgspec.structs.replace(options, usual=load_defaults(orchestrator.settings))

    def prepare(self, orchestrator: Orchestrator, options: Any) -> Prepared[Any]:
        """Return the specification that the system's options mean; raise a UsageError where it could never work."""
        raise NotImplementedError

    def set_budget(self, spec: Any, budget: Budget) -> Budget:
        """Return the budget of a new run, given the one asked for; raise a UsageError where an agent would escape it."""
        refuse_unmetered(budget, spec.choices)
        return budget

    def start(self, orchestrator: Orchestrator, options: Any, spec: Any, start: Start) -> Started:
        """Create the run of a specification that `prepare` made of these options."""
        raise NotImplementedError

    def claim(self, orchestrator: Orchestrator, run: StoredRun) -> None:
        """Take the files that one run of the system has at a time for a run that goes on; raise Refused if another needs them."""

    def places(self, orchestrator: Orchestrator, run: StoredRun) -> set[str]:
        """Return the checkouts that a run's agents work in."""
        return {checkout_of(run.context.workdir)}

    def works(self, run: StoredRun, state: Any) -> list[Work]:
        """Return what a run made and where it lies; the rule is one piece of work, in the tree that the run works in."""
        return [own_work(run)]

    def place_of(self, state: Any, unit: str) -> UnitPlace:
        """Return a unit's title and its place on the run's board."""
        return NOWHERE

    def loop_backs(self, state: Any) -> list[tuple[str, str]]:
        """Return the units that may send the work back, each with the one that it goes back to."""
        return []

    def iterations(self, state: Any) -> list[dict[str, Any]]:
        """Return the iterations of a run that is one unit, as plain data, the oldest first."""
        return []

    def step_of(self, state: Any, unit: str, kind: str) -> str:
        """Return the name under which launches of that kind for a unit are compared over runs; the state may be a fresh one."""
        return kind

    def outcomes(self, orchestrator: Orchestrator) -> Iterable[Outcome]:
        """Yield how the units of all runs here ended, where the system keeps a record of each that outlives its run."""
        return ()

    def retry(self, run: StoredRun, unit: str, directive: str) -> Posted | None:
        """Return what tells a run to try a failed unit again, with that id; None where going on with the run does it."""
        return None

    def hidden_files(self, home: Path) -> list[str]:
        """Return the files below a home that git should not see and that belong to no single run."""
        return []

    def print_outs(self, run: StoredRun, printed: Iterable[str]) -> list[Path]:
        """Return the folders to delete with a run, and the files among those that it `printed`."""
        return [Path(run.context.home, ".agents", "runs", run.id)]

    def publish(self, orchestrator: Orchestrator, run: StoredRun, flag: bool | None) -> tuple[Changes, tuple[str, ...]]:
        """Return what going on changes about what a run publishes, and what a person should know."""
        if flag is not None:
            raise UsageError(detail=f"Run {run.id} is a {run.system}; only runs of phases publish.")
        return {}, ()

    def go_on(self, orchestrator: Orchestrator, run: StoredRun, changes: Mapping[str, Any], *, adopt: bool) -> Continuation:
        """Look at what a run was made of before it goes on; raise where it cannot, or cannot `adopt` what changed there."""
        if adopt:
            raise UsageError(detail=f"Run {run.id} is a {run.system}; --adopt-changes is for workflows.")
        return Continuation()

    def find_state(self, path: Path, names: Iterable[str]) -> Path | None:
        """Return the file with one of the names that a path means, itself or in it; None if there is none."""
        files = [path / name for name in names] if path.is_dir() else [path] if path.name in names else []
        return next((file for file in files if file.is_file()), None)

    def import_state(self, orchestrator: Orchestrator, file: Path, options: ImportOptions) -> TakenOver:
        """Make a run of a state file that has no journal here. Asked only for files that `find_state` found."""
        raise NotImplementedError


_HOOKS = Hooks()


def hooks_of(system: str) -> Hooks:
    """Return the hooks of a system."""
    return find_part(f"runs.{system}.hooks", "HOOKS", _HOOKS)


def say_unreadable(file: Path, error: OrcError) -> str:
    """Return the note that a file which a run was made of cannot be compared with it."""
    if isinstance(error, MissingPath):
        return f"{file} is gone; the run continues as it was begun."
    first, *more = str(error).splitlines()
    others = f" (and {len(more)} more)" if more else ""
    return f"{file.name} is not usable now; the run continues as it was begun. {first.rstrip('.')}{others}."
