"""Commands that only list runs load nothing that they do not need: the modules are counted, not the time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.store.sqlite import SqliteStore
from agent_orchestrator.testing.store import new_run

PROGRAM = """
import sys
from agent_orchestrator.surfaces.cli.main import main
for command in ("status", "list"):
    assert main([command, "--repo", sys.argv[1]]) == 0
print(*sys.modules)
"""
COSTLY = (
    *("asyncio", "yaml", "mcp", "pydantic", "starlette"),
    *("agent_orchestrator.agents", "agent_orchestrator.engine.journal", "agent_orchestrator.runs.budget"),
)


def test_listing_runs_loads_neither_agents_nor_what_folds_journals(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / ".agents" / "orc")
    store.create(*new_run(RunId("one")))
    store.close()
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "agent_orchestrator.store.sqlite" in loaded
    assert [name for name in COSTLY if name in loaded] == []
