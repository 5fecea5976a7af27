"""Records journals of this version from the transcripts: `python -m tests.journals.record`, once, before a release.

A recorded journal is never written again: later versions must fold it to the same print-outs. `next` holds one journal of
each system with what no release has written yet.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.core.budget import Amounts, Budget
from agent_orchestrator.core.effects import KeptTree, TreeReturn
from agent_orchestrator.core.events import (
    AgentSpoke,
    AgentsSet,
    BudgetWarned,
    CameLate,
    EvidenceWeighed,
    Forked,
    HoldEnded,
    LandingEnded,
    LandingsAsked,
    LandingsDropped,
    LandingStarted,
    LimitsSet,
    TakenUp,
    ToolRefused,
    TreeKept,
    TreesReturned,
    UnitHandedBack,
    UnitHeld,
    UnitSteered,
    UnitTakenOver,
    WentBack,
    WorkDiscarded,
    WorkPublished,
)
from agent_orchestrator.core.hold import Hold, HoldReason
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.inputs import Saying
from agent_orchestrator.core.queue import Landing
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.version import __version__
from tests.scenarios.test_scenarios import SCENARIOS, Stage

HERE = Path(__file__).parent


class Recorded(msgspec.Struct):
    """A run as a version left it, and what it printed."""

    system: str
    spec: Any
    context: Any
    rows: list[tuple[int, list[Any]]]
    documents: dict[str, Any]


def finished(run: str, at_us: int) -> list[Any]:
    """Return what people may do with the work of any run."""
    merge = EffectId(f"{run}/_merge/i0.a1.l1.merge")
    wanted = tuple(Landing(unit=unit, branch=f"orc/{unit}", into="main", message=f"Merge {unit}") for unit in ("one", "two"))
    return [
        LandingsAsked(landings=wanted),
        LandingStarted(unit="one", effect=merge, at_us=at_us),
        LandingEnded(unit="one", effect=merge, verdict="conflict", detail="both changed a", conflicts=("a",)),
        LandingsDropped(units=("two",), reason="Ctrl-C"),
        WorkPublished(unit="one", branch="orc/one", url="https://example.org/pull/1"),
        WorkDiscarded(kept={"orc/one": f"refs/orc/{run}/_discarded/one"}),
    ]


def record(path: Path) -> Recorded:
    stage = Stage()
    for block in path.read_text("utf-8").split("\n\n\n"):
        stage.perform(block.partition("\n----")[0].strip("\n"))
    world = stage.world
    assert world is not None
    drawn = [
        (at_us, [event for event, _ in group]) for at_us, group in itertools.groupby(world.journal, key=lambda entry: entry[1])
    ]
    first_us = drawn[0][0]
    # Some transcripts have been taken up already, by a process that the state file names.
    is_taken = any(isinstance(event, TakenUp) for event, _ in world.journal)
    taken: list[Any] = [] if is_taken else [(first_us, [TakenUp(boot="b", host="h", pid=1, version=__version__)])]
    # What the engine may say of any run, whatever its system, about a unit that is no longer at work.
    gone = f"{world.context.run}/gone/i0.a1.l1.agent"
    told = [
        CameLate(effect=EffectId(gone)),
        LimitsSet(limits=Budget(run=Amounts(cost_usd=5.0))),
        BudgetWarned(what="run.cost_usd", percent=75, spent=4.0, limit=5.0),
        UnitHeld(unit="gone", hold=Hold(effect=EffectId(gone), why=HoldReason.BUDGET, reason="nothing is left")),
        HoldEnded(unit="gone", effect=EffectId(gone)),
        ToolRefused(
            effect=EffectId(gone), unit="gone", agent="claude", tool="Bash", asked="make", allow="--allow-tool 'Bash(make:*)'"
        ),
        AgentsSet(agents={}, changes=("agent claude: max_turns 3 → 4",)),
        *finished(world.context.run, drawn[-1][0]),
        UnitSteered(text="look left", unit="gone"),
        UnitTakenOver(unit="gone"),
        UnitHandedBack(unit="gone"),
        AgentSpoke(effect=EffectId(gone), unit="gone", saying=Saying.QUESTION, text="Which port?"),
        TreeKept(kept=KeptTree(commit="c0ffee", head="c0ffee", branch="main"), unit="gone"),
        EvidenceWeighed(unit="gone", command="make test", tests=11, doubts=("11 tests ran where 12 ran before",)),
        Forked(of="earlier", at=1, point="start", shared=("s1",), stale=("s2",)),
        TreesReturned(),
    ]
    rows: list[tuple[int, list[Any]]] = [drawn[0], *taken, *drawn[1:], (drawn[-1][0], told)]
    back = TreeReturn(repo="/repo", folder="/repo", kept=KeptTree(commit="c0ffee", head="c0ffee", branch="main"))
    turned = [
        WentBack(to=len(rows), point="then", generation=1, trees=(back,)),
        TreesReturned(kept=("refs/orc/r/@before-1/tree",)),
    ]
    rows.append((drawn[-1][0], turned))
    system = world.system
    Folded(system, world.state, 0, drawn[-1][0]).apply([*told, *turned], drawn[-1][0])
    documents = {one.path: msgspec.to_builtins(one.body) for one in system.documents(world.state, world.now_us)}
    return Recorded(system.name, msgspec.to_builtins(world.spec), msgspec.to_builtins(world.context), rows, documents)


def main() -> None:
    folder = HERE / __version__
    folder.mkdir(exist_ok=True)
    for path in SCENARIOS:
        target = folder / f"{path.stem}.json"
        if not target.exists():
            target.write_bytes(msgspec.json.format(msgspec.json.encode(record(path)), indent=1) + b"\n")


if __name__ == "__main__":
    main()
