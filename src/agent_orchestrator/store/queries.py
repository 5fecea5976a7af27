"""The named statements and the migrations that lie beside this module as `.sql` files."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

# Not importlib.resources: its import costs as much as a bare interpreter.
SQL = Path(__file__).parent / "sql"


@cache
def queries() -> dict[str, str]:
    """Return the statements by name."""
    text = (SQL / "queries.sql").read_text("utf-8")
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.M)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


@cache
def migrations() -> list[str]:
    """Return the migration scripts in order; the n-th brings the schema to version n."""
    return [file.read_text("utf-8") for file in sorted((SQL / "migrations").glob("*.sql"))]
