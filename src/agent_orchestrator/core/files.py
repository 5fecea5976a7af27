"""Which files a run writes, as patterns below its home: what git leaves out, and nothing else.

A pattern is a file, or with a final `/` a folder that is the run's alone; its last part may have `*` and `[0-9]` in it. To
git's ignore files it means the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

_SPECIAL = re.compile(r"[*\[]")

DRAFT = ".orc-tmp"
"""The end of the name of a file that is being written and not yet in its place."""
ASIDE = ("edited-", "imported", "invalid")
"""The name of a file that was moved out of the way of one of ours: `<name>.edited-<time>`."""


def beside(folder: str) -> tuple[str, ...]:
    """List what else comes to lie in a folder where we write JSON files: drafts, and files moved out of their way."""
    return (f"{folder}/.*{DRAFT}", *(f"{folder}/*.json.{word}*" for word in ASIDE))


class Patterns:
    """Patterns to ask about many paths: each is looked up by its folder and what its name begins with, however many there are."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._plain: set[str] = set()
        self._globs: dict[tuple[str, str], list[str]] = {}
        """What follows the first `*` or `[` of a name, by folder and by what stands before it."""
        self._begins: dict[str, set[int]] = {}
        """How long the part before it is in each folder: few lengths, where there are thousands of names."""
        for pattern in patterns:
            folder, name = _split(pattern)
            begins = _SPECIAL.search(name)
            if begins is None:
                self._plain.add(pattern)
            else:
                length = begins.start()
                self._globs.setdefault((folder, name[:length]), []).append(name[length:])
                self._begins.setdefault(folder, set()).add(length)
        self._found: set[str] = set()
        """Files that were asked about in numbers, and are some of these."""

    def leave_out(self, paths: Iterable[str]) -> list[str]:
        """Return the paths that are none of these; one that was found to be one is only looked up from then on."""
        found = self._found
        unknown = [path for path in paths if path not in found]
        found.update(path for path in unknown if self.match(path))
        return [path for path in unknown if path not in found]

    def match(self, path: str) -> bool:
        """Tell whether a file is one of these, or lies in a folder that is."""
        parts = path.rstrip("/").split("/")
        folders = ("/".join(parts[:count]) for count in range(1, len(parts) + path.endswith("/")))
        return self._names(path) or any(self._names(f"{folder}/") for folder in folders)

    def naming(self, path: str) -> Iterator[str]:
        """Give the patterns that name just this path, not a folder around it."""
        if path in self._plain:
            yield path
        folder, name = _split(path)
        for length in self._begins.get(folder, ()):
            begin = name[:length]
            for rest in self._globs.get((folder, begin), ()):
                if fnmatchcase(name[length:], rest):
                    yield f"{folder}/{begin}{rest}" if folder else f"{begin}{rest}"

    def _names(self, path: str) -> bool:
        return next(self.naming(path), None) is not None


def _split(path: str) -> tuple[str, str]:
    """Return the folder and the name, which keeps its final `/`."""
    folder, _, name = path.rstrip("/").rpartition("/")
    return folder, name + "/" if path.endswith("/") else name
