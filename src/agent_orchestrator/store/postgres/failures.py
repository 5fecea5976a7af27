"""PostgreSQL's errors, mapped once to ours: callers see sentences, never SQLSTATEs, and never a password."""

from __future__ import annotations

import psycopg

from agent_orchestrator.errors import (
    DiskFull,
    OrcError,
    StoreAway,
    StoreFailing,
    StoreLocked,
    StoreRefused,
    StoreUnprepared,
    StoreUnwritable,
    UsageError,
)
from agent_orchestrator.store.postgres.address import ServerAddress

RETRIED = frozenset({"40001", "40P01"})
"""Nothing was written, and the same again may well work: a serialization failure, a deadlock."""
_REFUSALS = {
    "28": "check user and password (PGUSER, PGPASSWORD, a password file or a service file)",
    "3D": "check the name of the database, or make it with `createdb`",
    "tls": "give the `sslmode` and `sslrootcert` that go with the server in its address, or let the server offer TLS",
    "42501": "grant its user what the schema orc needs, or run `orc store init` as its owner",
}
_SAID = {
    "password authentication failed": "28",
    "no password supplied": "28",
    "authentication failed": "28",
    "no pg_hba.conf entry": "28",
    "role ": "28",
    "database ": "3D",
}
"""libpq gives no SQLSTATE for a connection that was refused; these are the server's words, where it speaks English."""

_MISTAKEN = ("invalid sslmode value", "bad value for", "definition of service")
"""The words of libpq and psycopg for an address that no server could be reached by."""
_UNTRUSTED = ("does not support SSL", "certificate verify failed", "root certificate file", "does not match host name")


def connection_error(address: ServerAddress, error: psycopg.Error) -> OrcError:
    """Return our error for a connection that could not be made."""
    text = _last_line(address, error)
    if "FATAL:" in text and ("does not exist" in text or "authentication" in text or "pg_hba" in text or "password" in text):
        code = next((code for said, code in _SAID.items() if said in text), "28")
        return StoreRefused(place=address.shown, detail=_short(text), way=_REFUSALS[code])
    if any(said in text for said in _MISTAKEN):
        return UsageError(detail=f"The address of the store at {address.shown} cannot be used: {_short(text)}.")
    if any(said in text for said in _UNTRUSTED):
        return StoreRefused(place=address.shown, detail=_short(text), way=_REFUSALS["tls"])
    if "no password supplied" in text:
        return StoreRefused(place=address.shown, detail=_short(text), way=_REFUSALS["28"])
    return StoreAway(place=address.shown, detail=_short(text))


def statement_error(address: ServerAddress, error: psycopg.Error) -> OrcError:
    """Return our error for a statement that was refused: nothing of it was written."""
    place, state, detail = address.shown, error.sqlstate or "", _short(_last_line(address, error))
    match state[:2], state:
        case _, "42501":
            return StoreRefused(place=place, detail=detail, way=_REFUSALS[state])
        case _, "53100":
            return DiskFull(path=f"the store at {place}")
        case _, "25006":
            return StoreUnwritable(path=f"at {place}", detail=detail, way="give the address of the primary server")
        case _, "42P01" | "3F000" | "42883" | "42703":
            return StoreUnprepared(place=place, why="is no store of this version", command="init")
        case "40", _:
            return StoreLocked(path=f"at {place}", seconds="several tries, each longer than 1")
        case (("08" | "53" | "57"), _) | (_, "55P03"):
            return StoreAway(place=place, detail=detail)
        case _:
            return StoreFailing(path=f"at {place}", detail=detail)


def _last_line(address: ServerAddress, error: psycopg.Error) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # With several hosts libpq says one line for each; the server's own word is worth more than a hint below it.
    chosen = next((line for line in lines if "FATAL:" in line), lines[0] if lines else type(error).__name__)
    return address.without_secrets(chosen)


def _short(text: str) -> str:
    return text.rsplit("FATAL:", 1)[-1].rsplit("failed:", 1)[-1].removeprefix("connection is bad:").strip().rstrip(".")
