"""Reads what another tool wrote: what is missing is filled, what cannot be used is left out, and both are said.

For whole files that are taken over; an edit of our own print-outs is read strictly, by its system.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from agent_orchestrator.core.units import from_iso

T = TypeVar("T")


def read_part(document: Mapping[str, Any], name: str, kind: type[T], notes: list[str]) -> T:
    """The part of a document, an object or a list; an empty one when it is missing or something else."""
    found = document.get(name)
    if isinstance(found, kind):
        return found
    if found is not None:
        what = "an object" if kind is dict else "a list"
        notes.append(f"{name}: is not {what}; left out")
    return kind()


def read_entries(given: list[Any], where: str, kind: type[T], blanks: Mapping[str, Any], notes: list[str]) -> list[T]:
    """The usable entries of a list; a field without a value gets its blank, if it has one."""
    found = []
    for number, entry in enumerate(given):
        read = read_entry(entry, f"{where}[{number}]", kind, blanks, notes)
        if read is not None:
            found.append(read)
    return found


def read_entry(given: object, where: str, kind: type[T], blanks: Mapping[str, Any], notes: list[str]) -> T | None:
    """One entry, or None for one that is left out."""
    if not isinstance(given, dict):
        notes.append(f"{where}: is not an object; left out")
        return None
    missing = {name: blank for name, blank in blanks.items() if given.get(name) is None}
    try:
        read = msgspec.convert({**given, **missing}, kind)
    except msgspec.ValidationError as error:
        notes.append(f"{where}: {error}; left out")
        return None
    notes += [f"{where}.{name}: was missing, is {blank!r}" for name, blank in missing.items()]
    return read


def read_time_us(given: object, where: str, notes: list[str]) -> int | None:
    """A moment, or None when there is none; a placeholder such as `$START` is none."""
    if given is None:
        return None
    if isinstance(given, str):
        try:
            return from_iso(given)
        except (ValueError, OverflowError):
            pass
    notes.append(f"{where}: {given!r} is not a time; left out")
    return None


def read_fields(given: object, where: str, kind: type[T], notes: list[str]) -> T:
    """Those fields of an object that can be used, for a kind that needs none of them."""
    if not isinstance(given, dict):
        notes.append(f"{where}: is not an object; left out")
        return kind()
    kept = {}
    for name, value in given.items():
        try:
            msgspec.convert({name: value}, kind)
        except msgspec.ValidationError as error:
            notes.append(f"{where}.{name}: {str(error).partition(' - at ')[0]}; left out")
        else:
            kept[name] = value
    return msgspec.convert(kept, kind)
