"""What makes a file on disk one of our print-outs."""

from __future__ import annotations

import msgspec


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a file on disk ours: a copy or an edit has another inode, time or size."""

    inode: int
    mtime_ns: int
    size: int
    sha256: str


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """A print-out that is about to be renamed into place."""

    path: str
    identity: Identity
