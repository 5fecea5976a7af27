"""The pure swarm system, played by hand; every record is checked against the published schemas."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.events import Ended
from agent_orchestrator.core.inputs import TimerFired
from agent_orchestrator.systems.swarm.events import Imported
from agent_orchestrator.systems.swarm.spec import SwarmSpec
from agent_orchestrator.systems.swarm.system import SWARM
from tests.scenarios.played import Played

SWARM_RUN = "8c1f0a2b"


class SwarmWorld(Played):
    """One swarm run and its journal."""

    def __init__(self, *beads: dict[str, Any], run: str = SWARM_RUN, also: tuple[Any, ...] = (), **options: Any) -> None:
        agent = msgspec.to_builtins(AgentChoice(name="claude", model="sonnet", adapter="command"))
        whole = [{"prompt": f"do {bead['id']}", "agent": agent, "repo": "/repo", **bead} for bead in beads]
        super().__init__(SWARM, msgspec.convert({"beads": whole, **options}, SwarmSpec), run, also=also)

    @classmethod
    def dispatched(cls, bead: str = "bd-1", **options: Any) -> SwarmWorld:
        """A dispatch of one bead."""
        more = {name: options.pop(name) for name in list(options) if name not in SwarmSpec.__struct_fields__}
        return cls({"id": bead, **more}, run=bead, dispatch=True, **options)

    @classmethod
    def imported(cls, facts: list[Any]) -> SwarmWorld:
        """A bead taken over from its records."""
        first, ended = msgspec.convert(facts, tuple[Imported, Ended])
        bead = {"id": first.run.bead, "attempts_before": first.run.attempt - 1}
        return cls(bead, run=first.run.bead, dispatch=True, also=(first, ended))

    def timer(self, bead: str) -> list[Any]:
        """The bead's wait is over."""
        return self.tell(TimerFired(effect=self.doing(bead).id))

    def faults(self) -> list[str]:
        """Against the published schemas."""
        return [fault for path, document in self.documents().items() for fault in SWARM.faults(path, document)]
