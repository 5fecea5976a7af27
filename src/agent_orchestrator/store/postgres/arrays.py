"""Arrays as the server takes them, in its own binary form.

psycopg would find out the type of each list anew with every append, and write it as text: more work than the rest of the append
together. A type that never changes is also one statement that the server has prepared, not several.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEAD = struct.Struct("!iiIii")
_SIZE = struct.Struct("!i")
_BIGINT = struct.Struct("!iq")
_NONE = _SIZE.pack(-1)
_TRUE, _FALSE = _SIZE.pack(1) + b"\1", _SIZE.pack(1) + b"\0"


class Bigints(list[int]):
    """A bigint[]."""


class Booleans(list[bool | None]):
    """A boolean[]."""


class Bodies(list[bytes | None]):
    """A bytea[]."""


class Texts(list[str | None]):
    """A text[]."""


class Documents(list[str | None]):
    """A json[]."""


def _join(element: int, parts: list[bytes]) -> bytes:
    """Return an array of one dimension that begins at 1."""
    if not parts:
        return struct.pack("!iiI", 0, 0, element)
    return _HEAD.pack(1, _NONE in parts, element, len(parts), 1) + b"".join(parts)


def _sized(values: Iterable[bytes | None]) -> list[bytes]:
    return [_NONE if value is None else _SIZE.pack(len(value)) + value for value in values]


class _BigintsDumper(Dumper):
    format, oid = Format.BINARY, 1016

    def dump(self, obj: Bigints) -> bytes:
        return _join(20, [_BIGINT.pack(8, value) for value in obj])


class _BooleansDumper(Dumper):
    format, oid = Format.BINARY, 1000

    def dump(self, obj: Booleans) -> bytes:
        return _join(16, [_NONE if value is None else _TRUE if value else _FALSE for value in obj])


class _BodiesDumper(Dumper):
    format, oid = Format.BINARY, 1001

    def dump(self, obj: Bodies) -> bytes:
        return _join(17, _sized(obj))


class _TextsDumper(Dumper):
    format, oid = Format.BINARY, 1009

    def dump(self, obj: Texts) -> bytes:
        return _join(25, _sized([None if value is None else value.encode() for value in obj]))


class _DocumentsDumper(Dumper):
    format, oid = Format.BINARY, 199

    def dump(self, obj: Documents) -> bytes:
        return _join(114, _sized([None if value is None else value.encode() for value in obj]))


def register_arrays(context: AdaptContext) -> None:
    """Let a connection send these types."""
    known: dict[type, type[Dumper]] = {
        Bigints: _BigintsDumper,
        Booleans: _BooleansDumper,
        Bodies: _BodiesDumper,
        Texts: _TextsDumper,
        Documents: _DocumentsDumper,
    }
    for kind, dumper in known.items():
        context.adapters.register_dumper(kind, dumper)
