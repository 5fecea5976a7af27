"""The pure loop system, played by hand; every state file is checked against the published schema."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec

import agent_orchestrator.systems.loop as package
from agent_orchestrator.core.effects import AgentChoice, Checkpoint, RunAgent
from agent_orchestrator.core.events import TakenUp
from agent_orchestrator.core.inputs import CheckpointEnded, FileChange
from agent_orchestrator.systems.loop.imports import import_state
from agent_orchestrator.systems.loop.spec import LoopSpec
from agent_orchestrator.systems.loop.system import LOOP
from tests.scenarios.played import Played

LOOP_RUN = "ralph-fix-tests-a1b2c3d4"
UNIT = "loop"


@cache
def loop_state_schema() -> Any:
    """The published schema, compiled."""
    path = Path(package.__file__).parent / "schema" / "loop_state.schema.json"
    return jsonschema_rs.validator_for(json.loads(path.read_text("utf-8")))


class LoopWorld(Played):
    """One loop and its journal, driven by process 4711."""

    def __init__(self, *also: Any, **options: Any) -> None:
        given = {"task": "fix the tests", "completion": "make test", "command": "make test", "owner": "ada", **options}
        given.setdefault("agent", AgentChoice(name="command"))
        super().__init__(LOOP, msgspec.convert(msgspec.to_builtins(given), LoopSpec), LOOP_RUN, also=also)
        self.trees = 0
        self.take_up()

    @classmethod
    def imported(cls, document: object) -> LoopWorld:
        """A loop taken over from a state file without a journal."""
        taken = import_state(document, "state.json")
        return cls(*taken.facts, **{"agent": None, "command": None, **msgspec.to_builtins(taken.spec)})

    def take_up(self, pid: int = 4711) -> list[Any]:
        """A process begins to drive the loop."""
        return self.happen(TakenUp(boot="1", host="here", pid=pid, version=""))

    def saved(self, *, tree: str | None = None, deleted: str = "", changed: str = "", failure: str = "") -> list[Any]:
        """The tree is saved; each is another one unless `tree` says which."""
        effect = self.doing(UNIT)
        assert isinstance(effect, Checkpoint), f"no tree is being saved: {effect}"
        if failure:
            return self.tell(CheckpointEnded(effect=effect.id, unavailable=failure))
        self.trees += 1
        name = tree or f"tree-{self.trees}"
        changes = [FileChange("D", path) for path in deleted.split()] + [
            FileChange("M", path, "b10b") for path in changed.split()
        ]
        outcome = CheckpointEnded(
            effect=effect.id,
            commit=f"commit-{self.trees}",
            tree=name,
            head="head",
            files_changed=1,
            lines_added=2,
            lines_removed=1,
            changed=tuple(changes),
            diff=f"+ {name}",
        )
        return self.tell(outcome)

    def begin(self, exit_code: int = 1, tail: str = "") -> None:
        """The tree is saved as it was found, and the check before the first iteration ends."""
        self.saved(tree="start")
        self.check_end(UNIT, exit_code, tail=tail)

    def iterate(self, exit_code: int = 1, tail: str = "", report: dict[str, Any] | None = None, **saved: Any) -> list[Any]:
        """One iteration: the agent ends well, its tree is saved, the check ends."""
        self.agent(UNIT, report)
        self.saved(**saved)
        return self.check_end(UNIT, exit_code, tail=tail)

    @property
    def prompt(self) -> str:
        """Return the prompt of the agent at work."""
        effect = self.doing(UNIT)
        assert isinstance(effect, RunAgent), f"no agent is at work: {effect}"
        return effect.prompt_text or ""

    def faults(self) -> list[str]:
        """Against the published schema."""
        return [f"{error.instance_path}: {error.message}" for error in loop_state_schema().iter_errors(self.document())]
