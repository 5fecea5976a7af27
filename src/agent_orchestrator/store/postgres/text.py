"""Values as PostgreSQL can keep them: its texts know no NUL and no half of a surrogate pair."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.store.port import Append, UsageRow

REPLACEMENT = "\ufffd"
_encode = msgspec.json.encode


def storable(value: str) -> str:
    """Return a text that can be stored."""
    if value.isascii() and "\0" not in value:
        return value
    return value.replace("\0", REPLACEMENT).encode("utf-8", "replace").decode("utf-8")


def encode_more(part: Append) -> str | None:
    """Return as JSON what an append rarely brings; None for nothing."""
    if not (part.taken or part.usage or part.windows or part.release_all or part.printed):
        return None
    more: dict[str, Any] = {}
    if part.taken:
        more["taken"] = part.taken
    if part.usage:
        more["usage"] = [_usage(row) for row in part.usage]
    if part.windows:
        more["windows"] = part.windows
    if part.release_all:
        more["release_all"] = True
    if part.printed:
        more["printed"] = [{"path": one.path, "body": _encode(one.identity).decode()} for one in part.printed]
    return _encode(more).replace(b"\\u0000", b"\\ufffd").decode()


def _usage(row: UsageRow) -> dict[str, Any]:
    usage = row.usage
    return {
        "effect": row.effect,
        "offset": row.offset,
        "unit": row.unit,
        "agent": row.agent,
        "model": usage.model or "",
        "cost_usd": usage.cost_usd,
        "tokens": usage.tokens or 0,
        "wall_s": usage.wall_s or 0.0,
        "body": _encode(usage).decode(),
    }
