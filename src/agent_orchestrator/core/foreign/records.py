"""Entries of foreign files that are ours by shape: what is missing is filled, what cannot be used is left out, both said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from agent_orchestrator import typed
from agent_orchestrator.core.foreign.account import FieldAccount
from agent_orchestrator.core.foreign.fields import ForeignFields
from agent_orchestrator.core.foreign.values import say, time_of
from agent_orchestrator.core.units import from_iso

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
Readers = Mapping[str, tuple[tuple[str, ...], Callable[[Any], Any] | None]]
"""By field: its spellings, the own name first, and how its value is read where its type does not say it."""
NO_READERS: Readers = {}


def read_entry(given: object, where: str, kind: type[T], blanks: Mapping[str, Any], account: FieldAccount) -> T | None:
    """One entry, or None for one that is left out."""
    if not isinstance(given, dict):
        account.change(f"{where}: is not an object; left out")
        return None
    missing = {name: blank for name, blank in blanks.items() if given.get(name) is None}
    try:
        read = typed.convert({**given, **missing}, kind)
    except msgspec.ValidationError as error:
        account.change(f"{where}: {error}; left out")
        return None
    account.change_all([f"{where}.{name}: was missing, is {blank!r}" for name, blank in missing.items()])
    return read


def read_time_us(given: object, where: str, account: FieldAccount) -> int | None:
    """A moment, or None when there is none; a placeholder such as `$START` is none."""
    if given is None:
        return None
    if isinstance(given, str):
        try:
            return from_iso(given)
        except (ValueError, OverflowError):
            pass
    account.change(f"{where}: {given!r} is not a time; left out")
    return None


def read_record(
    given: object, where: str, kind: type[S], account: FieldAccount, blanks: Mapping[str, Any], readers: Readers = NO_READERS
) -> S | None:
    """One entry, its fields in any spelling; what it lacks gets its blank, and without one it is left out."""
    if not isinstance(given, dict):
        account.change(f"{where}: {say(given)} is not an object; left out")
        return None
    fields = ForeignFields(given, account, where, {name: names for name, (names, _) in readers.items()})
    found: dict[str, Any] = {}
    for field in structs.fields(kind):
        name = field.encode_name
        _, reader = readers.get(name, ((), None))
        wrong = "is not a time" if reader is time_of else "is not usable"
        value = fields.read(name, reader or partial(_fits, field.type), wrong=wrong)
        if value is None and name in blanks:
            account.change(f"{where}.{name}: was missing, is {blanks[name]!r}")
            value = blanks[name]
        if value is None and field.required:
            account.change(f"{where}: has no {name}; left out")
            return None
        if value is not None:
            found[name] = value
    fields.leave_rest()
    return typed.convert(found, kind)


def _fits(kind: Any, value: object) -> Any:
    try:
        return typed.convert(value, kind)
    except msgspec.ValidationError:
        return None
