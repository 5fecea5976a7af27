"""The writing of print-outs: a temporary file first, whose identity is recorded before it is renamed into place.

A rewrite is not synced (a reader sees the old or the new file, after a power cut at most seconds stale); the first
print-out of a path and files that are never rewritten are synced with their directory, for without that they can
come back empty.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import stat
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from agent_orchestrator.core.files import DRAFT
from agent_orchestrator.core.printed import Identity, Printed
from agent_orchestrator.core.system import Document
from agent_orchestrator.errors import Unavailable

_drafts = itertools.count(1)


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A print-out written beside its place, not yet in it."""

    target: Path
    temporary: Path
    printed: Printed
    durable: bool


def encode_document(document: Document) -> bytes:
    """Encode a print-out: text and bytes as they are, all else as JSON with two spaces and a final newline."""
    if isinstance(document.body, bytes):
        return document.body
    if isinstance(document.body, str):
        return document.body.encode()
    return msgspec.json.format(msgspec.json.encode(document.body), indent=2) + b"\n"


def write_draft(home: Path, document: Document, content: bytes, *, first: bool) -> Draft:
    """Write the temporary file and take its identity."""
    target = home / document.path
    durable = first or document.once
    if first:
        make_folder(home, target.parent)
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{next(_drafts)}{DRAFT}")
    descriptor = _open(home, temporary)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        if durable:
            os.fsync(descriptor)
        status = os.fstat(descriptor)
    printed = Printed(path=document.path, identity=_identity(status, content))
    return Draft(target=target, temporary=temporary, printed=printed, durable=durable)


def _identity(status: os.stat_result, content: bytes) -> Identity:
    return Identity(
        inode=status.st_ino,
        mtime_ns=status.st_mtime_ns,
        size=status.st_size,
        sha256=hashlib.sha256(content).hexdigest(),
    )


def identify(path: Path, content: bytes) -> Identity | None:
    """Return the identity of a file that holds just this, whoever put it there; None if it does not."""
    try:
        status = os.lstat(path)
        same = stat.S_ISREG(status.st_mode) and status.st_size == len(content) and path.read_bytes() == content
    except OSError:
        return None
    return _identity(status, content) if same else None


def append_lines(home: Path, document: Document) -> None:
    """Add the document's lines that the file does not have yet; repeated, it adds nothing."""
    target = home / document.path
    make_folder(home, target.parent)
    descriptor = os.open(target, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "r+b") as file:
        there = file.read()
        known = Counter(there.splitlines())
        wanted = Counter[bytes]()
        missing = []
        for line in encode_document(document).splitlines():
            wanted[line] += 1
            if wanted[line] > known[line]:
                missing.append(line)
        if missing:
            lead = b"\n" if there and not there.endswith(b"\n") else b""
            file.write(lead + b"\n".join(missing) + b"\n")
            file.flush()
            os.fsync(descriptor)


def _open(home: Path, temporary: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(temporary, flags, 0o644)
    except FileNotFoundError:
        # The folder was removed under us (`git clean`, a person): make it again.
        make_folder(home, temporary.parent)
        return os.open(temporary, flags, 0o644)


def make_folder(home: Path, folder: Path) -> None:
    """Make a folder for print-outs; raises Unavailable when it is a link that leads out of the run's home."""
    folder.mkdir(parents=True, exist_ok=True)
    if not folder.resolve().is_relative_to(home.resolve()):
        raise Unavailable(detail=f"{folder} leads out of {home} through a link; state files are not written there.")


def put_in_place(draft: Draft) -> bool:
    """Rename the draft over its target; return False if somebody cleaned it away, and it has to be written again."""
    try:
        draft.temporary.replace(draft.target)
    except FileNotFoundError:
        return False
    return True


def sync_folders(drafts: Iterable[Draft]) -> None:
    """Make the names of durable drafts that are in place survive a power cut: once per folder, not once per file."""
    for folder in dict.fromkeys(draft.target.parent for draft in drafts if draft.durable):
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # It was cleaned away again: there is nothing to keep.
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sweep_drafts(targets: Iterable[Path]) -> None:
    """Remove drafts of these files that a process left behind when it died; called only by their one writer.

    Others may be at work on other files of the same folder: their drafts are left alone.
    """
    names: dict[Path, set[str]] = {}
    for target in targets:
        names.setdefault(target.parent, set()).add(target.name)
    for folder, mine in names.items():
        for draft in folder.glob(f".*{DRAFT}"):
            if draft.name[1 : -len(DRAFT)].rpartition(".")[0] in mine:
                draft.unlink(missing_ok=True)
