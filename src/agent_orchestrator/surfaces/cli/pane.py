"""Shows a launch in its tmux pane: a program that `engine/process/pane.py` starts beside it, and that it never waits for.

Its standard input is a copy of what the launch writes: a sign that the files have grown, and the end of all when it ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
from pathlib import Path

from agent_orchestrator.core.ids import RunId, launched_in
from agent_orchestrator.surfaces.cli.screen import Screen
from agent_orchestrator.surfaces.cli.transcripts import TranscriptPrinter

BLOCK_BYTES = 64 * 1024
AGAIN_S = 0.1
"""The time for a file to be written after the sign that it is."""


def show_launch() -> None:
    """Show the transcript of the launch whose folder is the first argument; the second is the value of NO_COLOR."""
    folder = Path(sys.argv[1])
    with contextlib.suppress(OSError):  # the terminal is gone, and the launch goes on
        _follow(folder, Screen({"NO_COLOR": sys.argv[2]}))


def _follow(folder: Path, screen: Screen) -> None:
    effect = launched_in(RunId(folder.parent.name), folder.name)
    printer = TranscriptPrinter(folder.parents[1], screen, stream="both", live=True)
    grew = True
    while True:
        ready, _, _ = select.select([0], [], [], AGAIN_S if grew else None)
        grew = bool(ready)
        if ready and not os.read(0, BLOCK_BYTES):
            break
        printer.print_new(effect)
        printer.draw()
    printer.print_new(effect, ended=True)


if __name__ == "__main__":
    show_launch()
