"""`python -m agent_orchestrator.cli …` and `orc …` are the same program."""

from __future__ import annotations

import sys

from agent_orchestrator.surfaces.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
