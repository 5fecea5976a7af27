"""What a command imports: `orc --help` and `orc status` must stay instant, so they may not pay for what they do not use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.acceptance.rig import Rig

HEAVY = ("asyncio", "rich", "yaml", "apsw", "msgspec", "subprocess", "jsonschema_rs")


def _imported(rig: Rig, *arguments: str) -> set[str]:
    command = [sys.executable, "-X", "importtime", "-m", "agent_orchestrator.cli", *arguments]
    done = subprocess.run(command, cwd=rig.repo, env=rig.environment(), capture_output=True, text=True, check=True)
    modules = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    return {name for name in HEAVY if name in modules}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["version"], ["run", "--help"], ["status", "--help"]])
def test_help_imports_nothing_that_costs(rig: Rig, arguments: list[str]) -> None:
    assert _imported(rig, *arguments) == set()


@pytest.mark.parametrize("arguments", [["status"], ["list"], ["status", "one"], ["show", "one"], ["history", "one"]])
def test_looking_imports_neither_an_event_loop_nor_rich_nor_yaml(rig: Rig, arguments: list[str]) -> None:
    assert rig.run("--run-id", "one").code == 0
    assert _imported(rig, *arguments) == {"apsw", "msgspec"}
