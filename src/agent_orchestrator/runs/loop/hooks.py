"""The hooks of loops: the mode is checked when one goes on, a legacy file is deleted with it, a state.json becomes one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent_orchestrator.config import load_agents
from agent_orchestrator.runs.hooks import Continuation, Hooks
from agent_orchestrator.runs.imports import ImportOptions, TakenOver
from agent_orchestrator.runs.inputs import read_object
from agent_orchestrator.runs.loop.options import LoopOptions, prepare, refuse_unable
from agent_orchestrator.runs.loop.start import import_loop, start_loop
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.start import Prepared, Start, Started
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.loop.about import ABOUT
from agent_orchestrator.systems.loop.registry import LEGACY, loop_named_in
from agent_orchestrator.systems.loop.spec import LoopSpec


class LoopHooks(Hooks):
    """The hooks of loops."""

    def prepare(self, orchestrator: Orchestrator, options: LoopOptions) -> Prepared[LoopSpec]:
        """Return the specification of a loop."""
        return prepare(options, orchestrator.settings.home, load_agents(orchestrator.settings))

    def start(self, orchestrator: Orchestrator, options: LoopOptions, spec: LoopSpec, start: Start) -> Started:
        """Create the loop."""
        return start_loop(orchestrator, spec, start)

    def print_outs(self, run: StoredRun, printed: Iterable[str]) -> list[Path]:
        """Return the loop's folder; a legacy file that names the loop is moved there first, or it would be taken over again."""
        home = Path(run.context.home)
        folder, legacy = (home / ABOUT.state_file.format(run=run.id)).parent, home / LEGACY
        if legacy.is_file() and loop_named_in(legacy.read_bytes()) == run.id:
            folder.mkdir(parents=True, exist_ok=True)
            legacy.rename(folder / legacy.name)
        return [folder]

    def go_on(self, orchestrator: Orchestrator, run: StoredRun, changes: Mapping[str, Any], *, adopt: bool) -> Continuation:
        """Check the loop's mode when its changes are known: it may have been edited by hand."""
        super().go_on(orchestrator, run, changes, adopt=adopt)
        return Continuation(check=lambda state, adopted: refuse_unable(state.spec))

    def import_state(self, orchestrator: Orchestrator, file: Path, options: ImportOptions) -> TakenOver:
        """Make a loop of a state.json or a legacy current-loop.json."""
        run, notes = import_loop(orchestrator, file, read_object(file))
        return TakenOver(runs=(run,), notes=notes)


HOOKS = LoopHooks()
