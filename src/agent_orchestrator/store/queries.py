"""The named statements and the migrations that lie beside a store as `.sql` files."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

# Not importlib.resources: its import costs as much as a bare interpreter.
SQL = Path(__file__).parent / "sql"


@cache
def queries(folder: Path = SQL) -> dict[str, str]:
    """Return the statements by name."""
    text = (folder / "queries.sql").read_text("utf-8")
    parts = (part.partition("\n") for part in text.split("\n-- name: ")[1:])
    return {name: body.strip() for name, _, body in parts}


def newest_version(folder: Path = SQL) -> int:
    """Return the version of the schema that the last migration makes."""
    return len(_names(folder))


def migrations(folder: Path = SQL) -> list[str]:
    """Return the migration scripts in order; the n-th brings the schema to version n."""
    return [(folder / "migrations" / name).read_text("utf-8") for name in _names(folder)]


@cache
def _names(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder / "migrations") if name.endswith(".sql"))
