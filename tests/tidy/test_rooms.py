"""The rule that no system is named outside its rooms finds what it is about, and nothing else."""

from __future__ import annotations

import pytest

from tests.tidy.rooms import list_named_systems
from tests.tidy.source import Module

SRC = "src/agent_orchestrator"


def _named(path: str, text: str) -> list[str]:
    return [found.partition(": ")[2] for found in list_named_systems(Module(f"{SRC}/{path}", text))]


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("runs/prune.py", 'if run.system == "phases": pass', ["'phases'"]),
        (
            "runs/takeup.py",
            "from agent_orchestrator.systems.loop.spec import Spec",
            ["agent_orchestrator.systems.loop.spec.Spec"],
        ),
        ("runs/takeup.py", "isinstance(spec, LoopSpec)", ["LoopSpec"]),
        (
            "surfaces/cli/drive.py",
            "import agent_orchestrator.surfaces.cli.team.words",
            ["agent_orchestrator.surfaces.cli.team.words"],
        ),
        ("runs/loop/start.py", "workflow.WORKFLOW", ["WORKFLOW"]),
        ("runs/loop/start.py", "from agent_orchestrator.runs.loop.options import LoopOptions\nLoopOptions()", []),
        ("systems/workflow/parse.py", 'keys["loop"]', []),
        ("core/dag.py", '"A loop in the graph of a workflow."\nfor loop in loops: pass', []),
    ],
)
def test_the_rule_finds_names_of_systems_in_code_and_leaves_prose_alone(path: str, text: str, found: list[str]) -> None:
    assert _named(path, text) == found
