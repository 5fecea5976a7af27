"""The identity of a print-out on disk."""

from __future__ import annotations

import msgspec


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The marks of a file that is ours: a copy or an edit has another inode, time or size."""

    inode: int
    mtime_ns: int
    size: int
    sha256: str


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """A print-out that is about to be renamed into place."""

    path: str
    identity: Identity
