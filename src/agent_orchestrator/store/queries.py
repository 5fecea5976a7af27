"""Loads the named statements and the migrations that lie beside this module as `.sql` files."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources


@cache
def queries() -> dict[str, str]:
    """Statement text by name."""
    text = resources.files(__package__).joinpath("sql/queries.sql").read_text("utf-8")
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.M)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


@cache
def migrations() -> list[str]:
    """Migration scripts in order; the n-th brings the schema to version n."""
    folder = resources.files(__package__).joinpath("sql/migrations")
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    return [entry.read_text("utf-8") for entry in files]
