"""Decoding and converting into our types: the one door to msgspec's, safe in every thread.

msgspec notes what it knows of a struct in the class itself, at its first use and before it knows all: another thread that needs
the same class in that moment reads what is not there yet, and the process dies of a segmentation fault (seen with 0.22). So
each type is made known once, by one thread at a time, before anything is decoded into it.
"""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec

Kind = TypeVar("Kind")

_one_at_a_time = RLock()
_known: set[Any] = set()


def know(kind: Any) -> None:
    """Let msgspec learn a type, and all that it is made of."""
    if kind not in _known:
        with _one_at_a_time:
            msgspec.json.Decoder(kind)
            _known.add(kind)


@overload
def decode(content: bytes | str, kind: type[Kind]) -> Kind: ...
@overload
def decode(content: bytes | str, kind: Any) -> Any: ...
def decode(content: bytes | str, kind: Any) -> Any:
    """Return the value of a type that JSON tells; raise as `msgspec.json.decode` does."""
    know(kind)
    return msgspec.json.decode(content, type=kind)


@overload
def decoder(kind: type[Kind]) -> Callable[[bytes | str], Kind]: ...
@overload
def decoder(kind: Any) -> Callable[[bytes | str], Any]: ...
def decoder(kind: Any) -> Callable[[bytes | str], Any]:
    """Return the function that decodes JSON into a type: for one that is decoded often."""
    with _one_at_a_time:
        return msgspec.json.Decoder(kind).decode


def unpacker(kind: type[Kind]) -> Callable[[bytes], Kind]:
    """Return the function that decodes MessagePack into a type."""
    with _one_at_a_time:
        return msgspec.msgpack.Decoder(kind).decode


@overload
def convert(value: Any, kind: type[Kind], *, strict: bool = True) -> Kind: ...
@overload
def convert(value: Any, kind: Any, *, strict: bool = True) -> Any: ...
def convert(value: Any, kind: Any, *, strict: bool = True) -> Any:
    """Return plain data as a value of a type; raise as `msgspec.convert` does."""
    know(kind)
    return msgspec.convert(value, kind, strict=strict)
