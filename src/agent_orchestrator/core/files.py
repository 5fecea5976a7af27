"""Which files a run writes, as patterns below its home: what git leaves out, and nothing else.

A pattern is a file, or with a final `/` a folder that is the run's alone; its last part may have `*` and `[0-9]` in it. To
git's ignore files it means the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate

DRAFT = ".orc-tmp"
"""The end of the name of a file that is being written and not yet in its place."""
ASIDE = ("edited-", "imported", "invalid")
"""The name of a file that was moved out of the way of one of ours: `<name>.edited-<time>`."""


def beside(folder: str) -> tuple[str, ...]:
    """List what else comes to lie in a folder where we write JSON files: drafts, and files moved out of their way."""
    return (f"{folder}/.*{DRAFT}", *(f"{folder}/*.json.{word}*" for word in ASIDE))


class Patterns:
    """Patterns to ask about many paths: most of them are plain, and looked up."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._plain: set[str] = set()
        self._globs: dict[str, list[re.Pattern[str]]] = {}
        for pattern in patterns:
            folder, _, name = pattern.rstrip("/").rpartition("/")
            end = "/" if pattern.endswith("/") else ""
            if "*" in name or "[" in name:
                self._globs.setdefault(folder, []).append(re.compile(translate(name + end)))
            else:
                self._plain.add(pattern)

    def match(self, path: str) -> bool:
        """Tell whether a file is one of these, or lies in a folder that is."""
        parts = path.rstrip("/").split("/")
        folders = ("/".join(parts[:count]) for count in range(1, len(parts) + path.endswith("/")))
        return self._names(path) or any(self._names(f"{folder}/") for folder in folders)

    def _names(self, path: str) -> bool:
        end = "/" if path.endswith("/") else ""
        folder, _, name = path.rstrip("/").rpartition("/")
        return path in self._plain or any(pattern.match(name + end) for pattern in self._globs.get(folder, ()))
