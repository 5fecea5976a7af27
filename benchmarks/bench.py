"""The things a part needs: a folder, its share of the time, the entrants, and a way to say how far it is."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.entrants import FLOOR, OURS, PEERS, Entrant
from benchmarks.subject import Subject, SubjectFailed

LEAST_ROUNDS, LEAST_ALONE, MOST_ROUNDS = 3, 1, 11
"""Without peers everything is to be over in three minutes, on a slow machine, too: there more rounds are made where they fit."""


def make_apart(folder: Path) -> Path:
    """Make a folder in this one that ext4 puts into a part of the disk chosen by chance; other file systems need not.

    It gives the place of a deleted file to none for some minutes, and looks at each such place whenever a file is made: near
    thousands that a test left behind, making one takes fifty times as long, and whoever makes most seems the slowest.
    """
    with contextlib.suppress(OSError):
        subprocess.run(["chattr", "+T", str(folder)], check=False, capture_output=True)
    return Path(tempfile.mkdtemp(prefix="", dir=folder))


class Bench:
    """One part's place and time."""

    def __init__(
        self, folder: Path, *, peers: bool, scale: float, budget_s: float, missing: dict[str, str], most_rounds: int = MOST_ROUNDS
    ) -> None:
        self.folder, self.peers, self.scale = make_apart(folder), peers, scale
        self.most_rounds = most_rounds if scale >= 1 else 1
        self._began_s, self._budget_s = time.monotonic(), budget_s
        self.failures: dict[str, str] = dict(missing)
        """The reasons, by name, that peers were not measured in this part."""

    def size(self, wanted: int, least: int = 2) -> int:
        """Return a size at the scale of this run."""
        return max(least, round(wanted * self.scale))

    def say(self, text: str) -> None:
        """Tell how far it is."""
        print(f"    {text}", file=sys.stderr, flush=True)

    @property
    def left_s(self) -> float:
        """The seconds that are left of the part's time."""
        return max(0.0, self._began_s + self._budget_s - time.monotonic())

    def rounds(self, least: int | None = None, most: int = MOST_ROUNDS, share: float = 1.0) -> Iterator[int]:
        """Count rounds while there is time for one more like the longest, within a share of what is left.

        A busy machine gets fewer than the least, too, once twice the time is over.
        """
        least = least if least is not None else LEAST_ROUNDS if self.peers else LEAST_ALONE
        began_s, longest_s = time.monotonic(), 0.0
        end_s = began_s + self.left_s * share
        for number in range(min(most, self.most_rounds)):
            now_s = time.monotonic()
            if number >= least and now_s + longest_s > end_s:
                return
            if number and now_s + longest_s > end_s + (end_s - began_s):
                self.say("the machine is busy: no more rounds")
                return
            self.say(f"round {number + 1}")
            yield number
            longest_s = max(longest_s, time.monotonic() - now_s)

    def entrants(self) -> list[Entrant]:
        """Return ours and the floor, and the peers that are here."""
        return [FLOOR, OURS, *(peer for peer in PEERS if self.peers and peer.name not in self.failures)]

    def absent(self) -> list[tuple[Entrant, str]]:
        """Return the peers that were not measured, with the reason."""
        return [(peer, self.failures[peer.name]) for peer in PEERS if self.peers and peer.name in self.failures]

    @contextlib.contextmanager
    def opened(self, entrants: Sequence[Entrant], label: str = "") -> Iterator[dict[str, Subject]]:
        """Start programs, each on a folder of its own; a peer that does not start is left out and said so."""
        with contextlib.ExitStack() as stack:
            subjects = {}
            for entrant in entrants:
                folder = self.folder / f"{entrant.name}{label}"
                with self.excused(entrant):
                    subject = stack.enter_context(entrant.start(folder))
                    subject.ask("open", folder=str(folder))
                    subjects[entrant.name] = subject
            yield subjects

    @contextlib.contextmanager
    def excused(self, entrant: Entrant) -> Iterator[None]:
        """Go on without a peer that fails, and remember why; ours and the floor must not."""
        try:
            yield
        except SubjectFailed as error:
            if not entrant.environment:
                raise
            self.failures[entrant.name] = str(error)
            self.say(f"{entrant.title}: {error}")
