"""The statement that lists some runs, newest first; each filter has an index, so that a list costs what it shows."""

from __future__ import annotations

from agent_orchestrator.store.port import Which

_LAST = "\U0010ffff"
"""Sorts after everything that an id may go on with."""


def list_statement(head: str, which: Which) -> tuple[str, tuple[str | int, ...]]:
    """Return the statement that begins with `head` for these runs, and its values."""
    where: list[str] = []
    values: list[str | int] = []
    if which.system is not None:
        where.append("system = ?")
        values.append(which.system)
    if which.name is not None:
        where.append("name = ?")
        values.append(which.name)
    if which.ended is not None:
        where.append("ended = ?")
        values.append(which.ended)
    if which.begins:
        where.append("id >= ? AND id < ?")
        values += [which.begins, which.begins + _LAST]
    filtered = f" WHERE {' AND '.join(where)}" if where else ""
    limited = ""
    if which.most is not None:
        limited = " LIMIT ?"
        values.append(which.most)
    return f"{head}{filtered} ORDER BY created_us DESC, key DESC{limited}", tuple(values)
