"""The hooks of swarm runs: beads work where they say, records outlive their run, and records become runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agent_orchestrator.analysis.records import CUSTOM, Outcome
from agent_orchestrator.config.defaults import load_agents
from agent_orchestrator.core.inputs import Instruct, Posted, Resume
from agent_orchestrator.core.text import clip_line
from agent_orchestrator.errors import Refused
from agent_orchestrator.git.repository import checkout_of
from agent_orchestrator.git.worktree import folder_of
from agent_orchestrator.runs.hooks import Hooks, UnitPlace
from agent_orchestrator.runs.imports import ImportOptions, TakenOver
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.start import Prepared, Start, Started
from agent_orchestrator.runs.stop import end_run
from agent_orchestrator.runs.swarm.imports import find_beads, import_beads
from agent_orchestrator.runs.swarm.options import DispatchOptions, SwarmOptions, prepare_bead, prepare_file
from agent_orchestrator.runs.swarm.records import costs_of, outcomes_of_files
from agent_orchestrator.runs.swarm.start import OVER, Swarm, start_dispatch, start_run
from agent_orchestrator.runs.swarm.workspace import hidden_schemas
from agent_orchestrator.runs.work import Work, in_place, is_apart, own_work
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.swarm.effects import title_of
from agent_orchestrator.systems.swarm.spec import SwarmSpec
from agent_orchestrator.systems.swarm.state import BeadStanding, SwarmState

TITLE_CHARS = 100


class SwarmHooks(Hooks):
    """The hooks of swarm runs. Nothing more than usual is deleted with one: analysis reads the records of its beads."""

    def prepare(self, orchestrator: Orchestrator, options: SwarmOptions | DispatchOptions) -> Prepared[SwarmSpec]:
        """Return the specification of one bead, or of a file of beads."""
        home, configured = orchestrator.settings.home, load_agents(orchestrator.settings)
        options = self.complete(orchestrator, options)
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

    def place_of(self, state: SwarmState, unit: str) -> UnitPlace:
        """Return a bead's task and its column."""
        spec = state.specs[unit]
        return UnitPlace(clip_line(spec.task or spec.prompt, TITLE_CHARS), _COLUMNS.get(state.standing(unit), "failed"))

    def step_of(self, state: SwarmState, unit: str, kind: str) -> str:
        """Return the template of a bead."""
        return state.specs[unit].template or CUSTOM if unit in state.specs else kind

    def outcomes(self, orchestrator: Orchestrator) -> Iterable[Outcome]:
        """Yield what became of the beads, as `orc swarm analyze` counts them: other tools' records, too."""
        return outcomes_of_files(orchestrator.settings.home, costs_of(orchestrator), [])

    def retry(self, run: StoredRun, unit: str, directive: str) -> Posted:
        """Return what `orc swarm retry` sends: a run that has ended goes on with the bead."""
        if run.summary.ended:
            return Resume(id=directive, changes={"retry": [unit]})
        return Instruct(id=directive, what="retry", values={"beads": [unit]})

    def works(self, run: StoredRun, state: SwarmState) -> list[Work]:
        """Return the work of each bead: on its branch, or in the checkout that it worked in."""
        return list(dict.fromkeys(_work(run, state, bead) for bead in state.beads if not state.beads[bead].released))

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
        return import_beads(orchestrator, *found, options)


def _work(run: StoredRun, state: SwarmState, bead: str) -> Work:
    spec, merge, standing = state.specs[bead], state.beads[bead].merge, state.standing(bead)
    if not spec.branch and is_apart(run) and checkout_of(spec.repo) == checkout_of(run.context.workdir):
        return own_work(run)  # A fork of beads that share a tree has one of its own for all of them.
    if not spec.branch:
        return in_place(run, spec.repo, bead)
    waiting = (one for one, other in state.specs.items() if bead in other.needs and state.standing(one) is not BeadStanding.DONE)
    return Work(
        unit=bead,
        title=title_of(state, bead),
        repo=spec.repo,
        folder=str(folder_of(Path(run.context.home), run.context.run, spec.tree)),
        branch=spec.branch,
        check=spec.verify,
        landed=merge.commit or "" if merge is not None and merge.verdict == "landed" else "",
        unready="" if standing is BeadStanding.DONE else f"it is {standing}, and only what is done is merged",
        needed=next(waiting, None) is not None,
    )


def _end_dispatch(orchestrator: Orchestrator, bead: str) -> None:
    """End a dispatch of the bead that is still going on: a bead has one agent at a time."""
    found = Swarm(orchestrator).find(bead)
    if found is not None and not found.run.summary.ended and found.state.spec.dispatch:
        end_run(orchestrator, found.run, "dispatched anew with --force")


_COLUMNS = {
    BeadStanding.WAITING: "blocked",
    BeadStanding.QUEUED: "ready",
    **dict.fromkeys((BeadStanding.RUNNING, BeadStanding.VERIFYING), "running"),
    BeadStanding.DONE: "done",
}
"""The columns of a swarm's board; a bead of any other standing has failed, and may be tried again."""


HOOKS = SwarmHooks()
