"""The hooks of loops: starting one, checking its mode when it goes on, keeping a legacy file, and reading state files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agent_orchestrator.config import load_agents
from agent_orchestrator.engine.files import move_aside
from agent_orchestrator.runs.hooks import Continuation, Hooks
from agent_orchestrator.runs.imports import ImportOptions, TakenOver
from agent_orchestrator.runs.loop.files import KEPT, import_path
from agent_orchestrator.runs.loop.options import LoopOptions, prepare, refuse_unable
from agent_orchestrator.runs.loop.start import start_loop
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
        """Return the loop's folder; a legacy file that names the loop is kept aside, or it would be shown as a loop again."""
        home = Path(run.context.home)
        folder, legacy = (home / ABOUT.state_file.format(run=run.id)).parent, home / LEGACY
        if legacy.is_file() and loop_named_in(legacy.read_bytes()) == run.id:
            move_aside(legacy, KEPT)
        return [folder]

    def go_on(self, orchestrator: Orchestrator, run: StoredRun, changes: Mapping[str, Any], *, adopt: bool) -> Continuation:
        """Check the loop's mode when its changes are known: it may have been edited by hand."""
        super().go_on(orchestrator, run, changes, adopt=adopt)
        return Continuation(check=lambda state, adopted: refuse_unable(state.spec))

    def find_state(self, path: Path, names: Iterable[str]) -> Path | None:
        """Return the file that a path means, or the folder of a registry with all its loops."""
        for folder in (path, path / "ralph"):
            listed = [folder / name for name in ("registry.json", "current-loop.json") if (folder / name).is_file()]
            if listed or any(folder.glob("loops/*/state.json")):
                return folder
        return super().find_state(path, names)

    def import_state(self, orchestrator: Orchestrator, file: Path, options: ImportOptions) -> TakenOver:
        """Make a loop of a state file, or of every loop of a registry."""
        return import_path(orchestrator, file)


HOOKS = LoopHooks()
