"""`python recorded.py LOG …`: `orc …` with every write of its state files recorded, as the kernel reports them.

A draft is complete before its identity is committed and is renamed after that; so each is kept, by a second link, when the
store is asked to commit, and inotify tells afterwards which became what file, in which order, and what was written in
place. Nothing is missed however quickly one state follows another.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agent_orchestrator.core.files import DRAFT
from agent_orchestrator.errors import Conflict
from agent_orchestrator.store.port import Append
from agent_orchestrator.store.postgres import PostgresStore
from agent_orchestrator.store.sqlite import SqliteStore
from agent_orchestrator.surfaces.cli.main import main

MODIFIED, MOVED_FROM, MOVED_TO = 0x2, 0x40, 0x80
_HEAD = struct.Struct("iIII")


class Recorder:
    """The writes below one folder."""

    def __init__(self, root: Path, log: Path) -> None:
        self._root, self._log = root, log
        self._kept = Path(f"{log}.kept")
        self._kept.mkdir(exist_ok=True)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self._descriptor >= 0, os.strerror(ctypes.get_errno())
        self._folders: dict[int, Path] = {}
        self._drafts: dict[int, str] = {}

    def keep_drafts(self) -> None:
        """Keeps the drafts that lie there, and watches their folders from now on."""
        for folder, folders, files in os.walk(self._root):
            folders[:] = [name for name in folders if name != ".git"]
            for name in files:
                if name.endswith(DRAFT):
                    self._watch(Path(folder))
                    kept = self._kept / name
                    if not kept.exists():
                        kept.hardlink_to(Path(folder, name))

    def _watch(self, folder: Path) -> None:
        if folder not in self._folders.values():
            number = self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), MODIFIED | MOVED_FROM | MOVED_TO)
            assert number >= 0, os.strerror(ctypes.get_errno())
            self._folders[number] = folder

    def write_down(self) -> None:
        """Adds what happened since to the log, a line for each write."""
        content = b""
        while True:
            try:
                content += os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                break
        with self._log.open("a") as log:
            while content:
                number, mask, cookie, length = _HEAD.unpack_from(content)
                name = content[_HEAD.size : _HEAD.size + length].rstrip(b"\0").decode()
                content = content[_HEAD.size + length :]
                if (said := self._say(self._folders[number] / name, mask, cookie)) is not None:
                    log.write(json.dumps(said) + "\n")

    def _say(self, file: Path, mask: int, cookie: int) -> dict[str, str | None] | None:
        if mask & MOVED_FROM:
            self._drafts[cookie] = file.name
            return None
        if file.name.endswith(DRAFT):
            return None
        draft = self._drafts.pop(cookie, None) if mask & MOVED_TO else None
        kept = self._kept / draft if draft is not None else None
        body = kept.read_bytes().decode(errors="replace") if kept is not None else None
        return {"path": str(file.relative_to(self._root)), "body": body}


def _keep_at_append(recorder: Recorder, kind: type[SqliteStore] | type[PostgresStore]) -> None:
    append: Callable[[Any, Sequence[Append]], list[Conflict | None]] = kind.append

    def keep_and_append(store: Any, batch: Sequence[Append]) -> list[Conflict | None]:
        recorder.keep_drafts()
        return append(store, batch)

    setattr(kind, "append", keep_and_append)  # noqa: B010 - mypy takes a class of either kind for neither


def record(log: Path, arguments: Sequence[str]) -> int:
    """Run a command, and write down what it wrote."""
    recorder = Recorder(Path.cwd(), log)
    for kind in (SqliteStore, PostgresStore):
        _keep_at_append(recorder, kind)
    code = main(arguments)
    recorder.write_down()
    return code


if __name__ == "__main__":
    sys.exit(record(Path(sys.argv[1]), sys.argv[2:]))
