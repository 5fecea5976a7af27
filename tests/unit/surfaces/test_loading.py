"""Commands that only list runs load nothing that they do not need: the modules are counted, not the time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.summary import Proof, Summary
from agent_orchestrator.store.sqlite import SqliteStore
from agent_orchestrator.testing.store import new_run
from tests.stores import OWN_STORE

PROGRAM = """
import sys
from agent_orchestrator.surfaces.cli.main import main
for command in ("status", "list", "report"):
    assert main([command, "--repo", sys.argv[1]]) == 0
print(*sys.modules)
"""
COSTLY = (
    *("asyncio", "yaml", "mcp", "pydantic", "starlette"),
    *("agent_orchestrator.agents", "agent_orchestrator.engine.journal", "agent_orchestrator.runs.budget"),
)


NOW_US = 4_000_000_000_000_000
"""Later than any report begins: the run is in it."""


@OWN_STORE
def test_listing_runs_loads_neither_agents_nor_what_folds_journals(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / ".agents" / "orc")
    new, first = new_run(RunId("one"))
    over = Summary(status="completed", proofs=(Proof(unit="code", command="make test", duration_s=1.0),))
    store.create(
        msgspec.structs.replace(new, system="workflow", summary=over), msgspec.structs.replace(first, at_us=NOW_US, summary=over)
    )
    store.close()
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "`make test` passed" in done.stdout
    assert "agent_orchestrator.store.sqlite" in loaded
    assert [name for name in COSTLY if name in loaded] == []
