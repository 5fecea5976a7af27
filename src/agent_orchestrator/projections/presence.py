"""Says which print-outs stand on disk: by one listing of a folder that has many of them, not by a look at each."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

FEW = 4
"""So many files of one folder are looked at one by one."""


class PresentFiles:
    """The files among some paths, relative to a run's home, that are there."""

    def __init__(self, home: Path, paths: Iterable[str]) -> None:
        self._home = str(home)
        self._names: dict[str, frozenset[str]] = {}
        for folder, count in Counter(path.rpartition("/")[0] for path in paths).items():
            if count > FEW:
                self._names[folder] = _list(f"{self._home}/{folder}")

    def has(self, path: str) -> bool:
        """Say whether there is such a file."""
        folder, _, name = path.rpartition("/")
        names = self._names.get(folder)
        return name in names if names is not None else os.path.exists(f"{self._home}/{path}")


def _list(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return frozenset()
