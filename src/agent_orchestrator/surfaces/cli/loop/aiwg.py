"""`aiwg`: the command lines of the seed for loops (`aiwg ralph`, `aiwg ralph-status`, …). Each is a loop command of `orc`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agent_orchestrator.surfaces.cli.main import main as orc

COMMANDS = {
    "ralph": "run",
    "ralph-status": "status",
    "ralph-pause": "pause",
    "ralph-resume": "resume",
    "ralph-abort": "abort",
    "ralph-attach": "attach",
}

MEANT_ANYWAY = {"ralph": ("--no-commit",), "ralph-abort": ("--keep-changes",)}
"""Options of older versions that say what happens without them too."""

USAGE = """Usage: aiwg COMMAND [LOOP] [OPTIONS]

  aiwg ralph "task" --completion TEXT   start a loop
  aiwg ralph list                       list the loops
  aiwg ralph-status [LOOP]              show how a loop stands; all of them with --all
  aiwg ralph-pause [LOOP]               pause it when its iteration ends
  aiwg ralph-resume [LOOP]              go on
  aiwg ralph-abort [LOOP]               stop it for good
  aiwg ralph-attach [LOOP]              follow it

LOOP may be left out when one loop is active. Each is a command of `orc loop`; `aiwg COMMAND --help` has its options.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(USAGE)
        return 0
    if arguments[0] not in COMMANDS:
        sys.stderr.write(f"aiwg: There is no command {arguments[0]!r}; there are: {', '.join(COMMANDS)}.\n")
        return 2
    name, *rest = arguments
    if name == "ralph" and rest[:1] == ["list"]:
        return orc(["loop", "list", *rest[1:]])
    rest = [argument for argument in rest if argument not in MEANT_ANYWAY.get(name, ())]
    # The seed runs up to four loops at once where it stands: they share the tree, and are told so.
    shared = ["--shared-tree"] if name in ("ralph", "ralph-resume") else []
    return orc(["loop", COMMANDS[name], *shared, *rest])
