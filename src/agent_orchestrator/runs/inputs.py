"""Values and files that a command names, read strictly: each fault is one sentence with the flag or the file in it."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.bounded import TooLarge, read_bounded, read_bounded_text
from agent_orchestrator.core.limits import SPEC_LIMIT_BYTES
from agent_orchestrator.core.units import read_count, read_duration_s
from agent_orchestrator.errors import InvalidDocument, InvalidSpec, MissingPath, Problem, UsageError
from agent_orchestrator.projections.inspection import EDIT_LIMIT_BYTES


def flag_of(name: str) -> str:
    """Return the flag of an option, by the name of its field."""
    return "--" + name.replace("_", "-")


def read_given_count(value: str | int | None, flag: str, minimum: int = 1) -> int | None:
    """Read a whole number; None when nothing was given."""
    return None if value is None else read_count(value, flag, minimum)


def read_given_duration(value: str | None, flag: str) -> float | None:
    """Read a duration in seconds; None when nothing was given."""
    return None if value is None else read_duration_s(value, flag)


def read_counts(options: object, *names: str) -> dict[str, int]:
    """Read the whole numbers that were really given among these fields of the options."""
    given = {name: getattr(options, name) for name in names}
    return {name: read_count(value, flag_of(name)) for name, value in given.items() if value is not None}


def read_text(file: Path, what: str, limit_bytes: int = SPEC_LIMIT_BYTES) -> str:
    """Read a text file that a person wrote; `what` is its name in a sentence."""
    try:
        return read_bounded_text(file, limit_bytes, "utf-8-sig")
    except FileNotFoundError:
        raise MissingPath(what=what, path=file) from None
    except TooLarge:
        raise UsageError(detail=f"{what} {file} is larger than {limit_bytes} bytes; split it.") from None
    except OSError as error:
        raise UsageError(detail=f"{what} {file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InvalidSpec(str(file), [Problem(f"the file is not UTF-8 text: {error.reason}")]) from None


def read_object(file: Path, what: str = "state file", *, root: Path | None = None) -> dict[str, Any]:
    """Read a JSON object that a program wrote, through no link below the root; `what` is its kind in a sentence.

    Without a root, its own name is no link: a person says where the folder is, and an agent may have planted the rest.
    """
    try:
        content = read_bounded(file, EDIT_LIMIT_BYTES, root=root or file.parent)
        # PowerShell puts a byte order mark before what it writes.
        return typed.decode(content.removeprefix(BOM_UTF8), dict[str, Any])
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise InvalidDocument(path=file, what=what, detail=str(error)) from None
