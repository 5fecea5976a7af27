"""`orc` with a sixth system: its folders are put beside the other ones', and its name is added to the table."""

from __future__ import annotations

import sys
from pathlib import Path

import agent_orchestrator.surfaces.cli as cli
import agent_orchestrator.systems as systems

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    systems.__path__.append(str(HERE / "systems"))
    cli.__path__.append(str(HERE / "surfaces" / "cli"))
    systems.SYSTEMS.append("errand")

    from agent_orchestrator.surfaces.cli.main import main

    sys.exit(main())
