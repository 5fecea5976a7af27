"""The writing of print-outs: a temporary file first, whose identity is recorded before it is renamed into place.

A rewrite is not synced (a reader sees the old or the new file, after a power cut at most seconds stale); the first
print-out of a path and files that are never rewritten are synced with their directory, for without that they can
come back empty.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from agent_orchestrator.beneath import LinkInTheWay, open_folder, stat_beneath, write_all
from agent_orchestrator.bounded import read_bounded, read_descriptor
from agent_orchestrator.core.files import DRAFT
from agent_orchestrator.core.printed import Identity, Printed
from agent_orchestrator.core.system import Document
from agent_orchestrator.errors import Unavailable
from agent_orchestrator.projections.inspection import EDIT_LIMIT_BYTES, find_identity
from agent_orchestrator.projections.syncs import Syncs

_drafts = itertools.count(1)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A print-out written beside its place, not yet in it."""

    home: Path
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


def write_draft(
    home: Path, document: Document, content: bytes, *, first: bool, syncs: Syncs | None = None, digest: str | None = None
) -> Draft:
    """Write the temporary file and take its identity; one that must be durable is synced now, or with the others.

    `digest` is that of the content, where the caller has it.
    """
    target = home / document.path
    durable = first or document.once
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{next(_drafts)}{DRAFT}")
    with _folder(home, target.parent, make=True) as folder:
        descriptor = os.open(temporary.name, _NEW, 0o644, dir_fd=folder)
    try:
        write_all(descriptor, content)
        if durable and syncs is not None:
            syncs.add(descriptor)
        elif durable:
            os.fsync(descriptor)
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    printed = Printed(path=document.path, identity=_identity(status, digest or digest_of(content)))
    return Draft(home=home, target=target, temporary=temporary, printed=printed, durable=durable)


def digest_of(content: bytes) -> str:
    """Return the hash by which the content of a print-out is known."""
    return hashlib.sha256(content).hexdigest()


def _identity(status: os.stat_result, digest: str) -> Identity:
    return Identity(inode=status.st_ino, mtime_ns=status.st_mtime_ns, size=status.st_size, sha256=digest)


def identify(home: Path, path: Path, content: bytes) -> Identity | None:
    """Return the identity of a file that holds just this, whoever put it there; None if it does not."""
    try:
        status = stat_beneath(home, path)
        same = (
            stat.S_ISREG(status.st_mode)
            and status.st_size == len(content)
            and read_bounded(path, len(content), root=home) == content
        )
    except OSError:
        return None
    return _identity(status, digest_of(content)) if same else None


def is_written(home: Path, path: Path, content: bytes) -> bool:
    """Say whether a file that is never rewritten stands as it was written."""
    try:
        return read_bounded(path, len(content), root=home) == content
    except OSError:
        return False


def append_lines(home: Path, document: Document) -> None:
    """Add the document's lines that the file does not have yet; repeated, it adds nothing."""
    target = home / document.path
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with _folder(home, target.parent, make=True) as folder:
        descriptor = os.open(target.name, flags, 0o644, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        there = read_descriptor(descriptor, EDIT_LIMIT_BYTES, str(target))
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


def make_folder(home: Path, folder: Path) -> None:
    """Make a folder for print-outs; raises Unavailable when a link is on the way to it."""
    with _folder(home, folder, make=True):
        return


@contextlib.contextmanager
def _folder(home: Path, folder: Path, *, make: bool = False) -> Iterator[int]:
    """Hold a folder of print-outs, every time anew: it may have been removed (`git clean`), or a link planted in its place."""
    try:
        with open_folder(home, folder, make=make) as opened:
            yield opened
    except LinkInTheWay as error:
        raise Unavailable(
            detail=f"{folder} leads through a link ({error.filename}); state files are not written there."
        ) from None


def put_in_place(draft: Draft) -> bool:
    """Rename the draft over its target; return False if somebody cleaned it away, and it has to be written again."""
    try:
        with _folder(draft.home, draft.target.parent) as folder:
            os.replace(draft.temporary.name, draft.target.name, src_dir_fd=folder, dst_dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def replace_known(draft: Draft, known: Sequence[Identity]) -> bool:
    """Rename the draft over its target if a print-out that is known stands there; return False if not, and nothing was done.

    It is what nearly always stands there, and asking and renaming share a look at the folder.
    """
    try:
        with _folder(draft.home, draft.target.parent) as folder:
            status = os.stat(draft.target.name, dir_fd=folder, follow_symlinks=False)
            if find_identity(status, known) is None:
                return False
            os.replace(draft.temporary.name, draft.target.name, src_dir_fd=folder, dst_dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def discard_draft(draft: Draft) -> None:
    """Remove a draft that is not to be shown."""
    with contextlib.suppress(OSError, Unavailable), _folder(draft.home, draft.target.parent) as folder:
        os.unlink(draft.temporary.name, dir_fd=folder)


def sync_folders(drafts: Iterable[Draft]) -> None:
    """Make the names of durable drafts that are in place survive a power cut: once per folder, not once per file."""
    for home, folder in dict.fromkeys((draft.home, draft.target.parent) for draft in drafts if draft.durable):
        # One that was cleaned away again has nothing to keep.
        with contextlib.suppress(FileNotFoundError), _folder(home, folder) as opened:
            os.fsync(opened)


def sweep_drafts(home: Path, targets: Iterable[Path]) -> None:
    """Remove drafts of these files that a process left behind when it died; called only by their one writer.

    Others may be at work on other files of the same folder: their drafts are left alone.
    """
    names: dict[Path, set[str]] = {}
    for target in targets:
        names.setdefault(target.parent, set()).add(target.name)
    for folder, mine in names.items():
        with contextlib.suppress(FileNotFoundError, Unavailable), _folder(home, folder) as opened:
            for name in os.listdir(opened):
                if name.startswith(".") and name.endswith(DRAFT) and name[1 : -len(DRAFT)].rpartition(".")[0] in mine:
                    os.unlink(name, dir_fd=opened)
