"""The hooks of loops: starting one, checking its mode when it goes on, keeping a legacy file, and reading state files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.config.defaults import load_agents
from agent_orchestrator.engine.files import move_aside
from agent_orchestrator.runs.hooks import Continuation, Hooks
from agent_orchestrator.runs.imports import ImportOptions, TakenOver
from agent_orchestrator.runs.loop.files import KEPT, import_path, names_loop
from agent_orchestrator.runs.loop.options import LoopOptions, prepare, refuse_unable
from agent_orchestrator.runs.loop.start import best_branch, start_loop
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.start import Prepared, Start, Started
from agent_orchestrator.runs.work import Work, own_work
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.loop.about import ABOUT
from agent_orchestrator.systems.loop.registry import LEGACY
from agent_orchestrator.systems.loop.spec import LoopSpec
from agent_orchestrator.systems.loop.state import LoopState


class LoopHooks(Hooks):
    """The hooks of loops."""

    def prepare(self, orchestrator: Orchestrator, options: LoopOptions) -> Prepared[LoopSpec]:
        """Return the specification of a loop."""
        return prepare(self.complete(orchestrator, options), orchestrator.settings.home, load_agents(orchestrator.settings))

    def start(self, orchestrator: Orchestrator, options: LoopOptions, spec: LoopSpec, start: Start) -> Started:
        """Create the loop."""
        return start_loop(orchestrator, spec, start)

    def print_outs(self, run: StoredRun, printed: Iterable[str]) -> list[Path]:
        """Return the loop's folder; a legacy file that names the loop is kept aside, or it would be shown as a loop again."""
        home = Path(run.context.home)
        folder, legacy = (home / ABOUT.state_file.format(run=run.id)).parent, home / LEGACY
        if names_loop(home, run.id):
            move_aside(legacy, KEPT, home)
        return [folder]

    def works(self, run: StoredRun, state: LoopState) -> list[Work]:
        """Return the loop's work as it left it, and the tree of each iteration, the best one by that name, too."""
        own = own_work(run, check=state.spec.command)
        begin = state.start.commit if state.start is not None else own.begin
        own = own if own.branch else msgspec.structs.replace(own, begin=begin)
        saved = {str(one.number): one.saved.commit for one in state.iterations if one.saved is not None}
        if state.best is not None and state.best.saved is not None:
            saved["best"] = state.best.saved.commit
        return [own, *(self._kept(run, own, begin, name, commit) for name, commit in saved.items())]

    def iterations(self, state: LoopState) -> list[dict[str, Any]]:
        """Return the iterations, each with its check, its change, and what it cost."""
        checks = {check.iteration: check for check in state.checks}
        return [
            {
                "iteration": one.number,
                "status": "failed" if one.failed else "passed" if one.passed else "not passed",
                "started_us": one.started_us,
                "ended_us": one.ended_us or None,
                "check": {"command": state.spec.command, "passed": check.passed, "tail": check.output} if check else None,
                "tests": {"count": one.tests, "passed": one.tests_passed} if one.tests is not None else None,
                "changed": msgspec.to_builtins(one.saved) if one.saved is not None else None,
                "score": one.score,
                "summary": one.summary,
                "error": one.error or one.agent_error,
                "blocked": list(one.blocked),
                "told": list(one.told),
                "cost_usd": one.cost_usd,
                "tokens": one.tokens,
            }
            for one in state.iterations
            for check in (checks.get(one.number),)
        ]

    def _kept(self, run: StoredRun, own: Work, begin: str, name: str, commit: str) -> Work:
        branch = best_branch(run.id) if name == "best" else f"orc-iteration/{run.id}/{name}"
        changed = {"unit": name, "branch": branch, "tip": commit, "begin": begin, "folder": "", "aside": True, "end": ""}
        return msgspec.structs.replace(own, **changed)

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
