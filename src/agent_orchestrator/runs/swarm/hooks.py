"""The hooks of swarm runs: beads work where they say, records outlive their run, and records become runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agent_orchestrator.config import load_agents
from agent_orchestrator.errors import Refused
from agent_orchestrator.git.repository import checkout_of
from agent_orchestrator.runs.hooks import Hooks
from agent_orchestrator.runs.imports import ImportOptions, TakenOver
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.start import Prepared, Start, Started
from agent_orchestrator.runs.stop import end_run
from agent_orchestrator.runs.swarm.imports import find_beads, import_beads
from agent_orchestrator.runs.swarm.options import DispatchOptions, SwarmOptions, prepare_bead, prepare_file
from agent_orchestrator.runs.swarm.start import OVER, Swarm, start_dispatch, start_run
from agent_orchestrator.runs.swarm.workspace import hidden_schemas
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.swarm.spec import SwarmSpec
from agent_orchestrator.systems.swarm.state import SwarmState


class SwarmHooks(Hooks):
    """The hooks of swarm runs. Nothing more than usual is deleted with one: analysis reads the records of its beads."""

    def prepare(self, orchestrator: Orchestrator, options: SwarmOptions | DispatchOptions) -> Prepared[SwarmSpec]:
        """Return the specification of one bead, or of a file of beads."""
        home, configured = orchestrator.settings.home, load_agents(orchestrator.settings)
        if isinstance(options, DispatchOptions):
            return prepare_bead(options, home, configured)
        return prepare_file(options, home, orchestrator.clock.now_us(), configured)

    def start(
        self, orchestrator: Orchestrator, options: SwarmOptions | DispatchOptions, spec: SwarmSpec, start: Start
    ) -> Started:
        """Create the run; a dispatch that is forced ends one of the same bead that is still going on."""
        if isinstance(options, SwarmOptions):
            path = Path(options.file).expanduser()
            if not spec.beads:
                raise Refused(why=f"There is nothing to do in {path}: no bead of it is ready.")
            return start_run(orchestrator, spec, path.stem[:80], start)
        if start.force:
            _end_dispatch(orchestrator, options.bead)
        return start_dispatch(orchestrator, spec, start)

    def places(self, orchestrator: Orchestrator, run: StoredRun) -> set[str]:
        """Return the checkouts of beads that are not over; a bead with a branch has one of its own."""
        state: SwarmState = orchestrator.fold(run).state
        beads = (spec for bead, spec in state.specs.items() if run.summary.ended or state.standing(bead) not in OVER)
        return {checkout_of(bead.repo) for bead in beads if not bead.branch}

    def hidden_files(self, home: Path) -> list[str]:
        """Return the schemas that stand there as we write them."""
        return hidden_schemas(home)

    def find_state(self, path: Path, names: Iterable[str]) -> Path | None:
        """Return a path of `state/` that means records of beads."""
        return path if find_beads(path) is not None else None

    def import_state(self, orchestrator: Orchestrator, file: Path, options: ImportOptions) -> TakenOver:
        """Make a run of each bead whose records a path means."""
        found = find_beads(file)
        assert found is not None
        made, notes = import_beads(orchestrator, *found, options)
        return TakenOver(runs=tuple(made), notes=notes)


def _end_dispatch(orchestrator: Orchestrator, bead: str) -> None:
    """End a dispatch of the bead that is still going on: a bead has one agent at a time."""
    found = Swarm(orchestrator).find(bead)
    if found is not None and not found.run.summary.ended and found.state.spec.dispatch:
        end_run(orchestrator, found.run, "dispatched anew with --force")


HOOKS = SwarmHooks()
