"""The writes of state files by commands of a rig, each recorded by the kernel's report: see `recorded.py`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.rig import Rig

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="inotify is the Linux kernel's")


class Writes:
    """The writes of all commands of a rig from now on."""

    def __init__(self, rig: Rig) -> None:
        self._log = rig.side / "writes.jsonl"
        rig.command = [sys.executable, str(Path(__file__).with_name("recorded.py")), str(self._log)]

    def to(self, path: str) -> list[Any]:
        """Return the documents that one file was, one after the other, each whole; `*` stands for anything."""
        return list(self._documents(path))

    def _documents(self, path: str) -> Iterator[Any]:
        for line in self._log.read_text().splitlines():
            said = json.loads(line)
            if Path(said["path"]).match(path):
                assert said["body"] is not None, f"{said['path']} was written in place"
                yield json.loads(said["body"])

    def told(self, path: str, tell: Callable[[Any], Any]) -> list[Any]:
        """Return what the documents tell, each time that it changed."""
        told: list[Any] = []
        for document in self._documents(path):
            said = tell(document)
            if not told or told[-1] != said:
                told.append(said)
        return told
