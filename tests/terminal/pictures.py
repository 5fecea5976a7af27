"""Makes the pictures of the docs: the live view of each mode in a real terminal of 80×24 and 140×40, as `make pictures`."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from tests.acceptance.rig import ORC, ROOT, wait_until
from tests.terminal.stages import STAGES, Stage, Theatre
from tests.terminal.svg import draw
from tests.terminal.tmux import Terminal

FOLDER = ROOT / "docs" / "pictures"
SIZES = ((80, 24), (140, 40))

_SECONDS = re.compile(r"(?:groups|steps|iterations|tasks|beads)  (?:[5-9]\.\d|\d\d)s")
"""A run that goes on for a few seconds: its agents have settled."""


def picture_of(mode: str, columns: int) -> Path:
    """Return the file of a picture."""
    return FOLDER / f"{mode}-{columns}.svg"


def show(terminal: Terminal, stage: Stage) -> str:
    """Wait until there is something to see, and return it."""
    wait_until(lambda: all(text in terminal.screen() for text in stage.seen))
    wait_until(lambda: _SECONDS.search(terminal.screen()))
    return terminal.screen(colours=True)


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a picture: nothing of whoever makes it."""
    own = {"HOME": str(home), "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT / "src"), "ORC_TRUSTED_PATHS": tempfile.gettempdir()}
    return {"PATH": os.environ["PATH"], **own}


def make(mode: str, columns: int, rows: int) -> str:
    """Play a mode at a terminal of this size and draw it."""
    with tempfile.TemporaryDirectory(prefix="orc-") as folder:
        theatre = Theatre(Path(folder))
        stage, terminal = STAGES[mode](theatre), Terminal(columns, rows)
        try:
            terminal.start([*ORC, *stage.arguments], theatre.repo, environment(Path(folder)))
            captured = show(terminal, stage)
            terminal.press("C-c", "C-c")
            theatre.go()
            wait_until(lambda: "ended with" in terminal.screen())
        finally:
            terminal.close()
    words = " ".join(word for word in stage.arguments[:2] if not word.startswith("-"))
    return draw(captured, columns, rows, f"orc {words} … ({columns}×{rows})")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for mode in STAGES:
        for columns, rows in SIZES:
            file = picture_of(mode, columns)
            file.write_text(make(mode, columns, rows))
            sys.stdout.write(f"{file.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
