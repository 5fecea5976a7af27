"""The agents of the demonstration: plain programs without a model, which really edit and really test.

    python3 agents        the orchestrator says in AGENT_ID which of them is wanted

Each launch first writes a line to launches.log beside this folder, so that anybody can count the starts.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from tools import FOLDER

ROLES = ("planner", "coder", "reviewer", "presenter")


def main() -> int:
    role = os.environ["AGENT_ID"]
    with (FOLDER / "launches.log").open("a", encoding="utf-8") as log:
        log.write(f"{os.environ['STEP_ID']} iteration {os.environ['ITERATION']} process {os.getpid()}\n")
    if role not in ROLES:
        print(f"nobody here plays {role}", file=sys.stderr)
        return 1
    import_module(role).work()
    return 0


if __name__ == "__main__":
    sys.exit(main())
