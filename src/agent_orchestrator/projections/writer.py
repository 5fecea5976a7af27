"""Writes print-outs: a temporary file first, whose identity is recorded before it is renamed into place.

A rewrite is not synced (a reader sees the old or the new file, after a power cut at most seconds stale); the first
print-out of a path and files that are never rewritten are synced with their directory, for without that they can
come back empty.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from pathlib import Path

import msgspec

from agent_orchestrator.core.printed import Identity, Printed
from agent_orchestrator.core.system import Document
from agent_orchestrator.errors import Unavailable

SUFFIX = ".orc-tmp"

_drafts = itertools.count(1)


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A print-out written beside its place, not yet in it."""

    target: Path
    temporary: Path
    printed: Printed
    durable: bool


def encode_document(document: Document) -> bytes:
    """The bytes of a print-out: text and bytes as they are, all else as JSON with two spaces and a final newline."""
    if isinstance(document.body, bytes):
        return document.body
    if isinstance(document.body, str):
        return document.body.encode()
    return msgspec.json.format(msgspec.json.encode(document.body), indent=2) + b"\n"


def write_draft(home: Path, document: Document, content: bytes, *, first: bool) -> Draft:
    """Writes the temporary file and takes its identity."""
    target = home / document.path
    durable = first or document.once
    if first:
        _make_folder(home, target.parent)
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{next(_drafts)}{SUFFIX}")
    descriptor = _open(home, temporary)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        if durable:
            os.fsync(descriptor)
        status = os.fstat(descriptor)
    identity = Identity(
        inode=status.st_ino,
        mtime_ns=status.st_mtime_ns,
        size=status.st_size,
        sha256=hashlib.sha256(content).hexdigest(),
    )
    printed = Printed(path=document.path, identity=identity)
    return Draft(target=target, temporary=temporary, printed=printed, durable=durable)


def _open(home: Path, temporary: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(temporary, flags, 0o644)
    except FileNotFoundError:
        # The folder was removed under us (`git clean`, a person): make it again.
        _make_folder(home, temporary.parent)
        return os.open(temporary, flags, 0o644)


def _make_folder(home: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not folder.resolve().is_relative_to(home.resolve()):
        raise Unavailable(detail=f"{folder} leads out of {home} through a link; state files are not written there.")


def put_in_place(draft: Draft) -> bool:
    """Renames the draft over its target; False when somebody cleaned it away, and it has to be written again."""
    try:
        draft.temporary.replace(draft.target)
        if draft.durable:
            folder = os.open(draft.target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except FileNotFoundError:
        return False
    return True


def sweep_drafts(folder: Path) -> None:
    """Removes drafts that a process left behind when it died; called only by the run's one driver."""
    for draft in folder.glob(f".*{SUFFIX}"):
        draft.unlink(missing_ok=True)
