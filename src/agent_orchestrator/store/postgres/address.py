"""The address of a server: parsed once, and shown without what is secret in it."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from agent_orchestrator.errors import UsageError

CONNECT_S = 3
PORT_MAX = 65_535
SCHEMES = ("postgresql://", "postgres://")
SECRETS = ("password", "sslpassword", "oauth_client_secret")
DETECTION: dict[str, str | int] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""A server that vanished without a word, its host cut off or frozen, is noticed after about ten seconds."""

SPOKEN = {"client_encoding": "UTF8"}
"""Whatever the database, an address or the environment say: arrays are sent as bytes, and all of them in this encoding."""


class ServerAddress:
    """A database on a server, by a URL as libpq reads it; what it does not say comes from the environment (PGPASSWORD, …)."""

    def __init__(self, url: str) -> None:
        expected = "The address of a store is a URL such as postgresql://db.example.org/orc"
        if not url.startswith(SCHEMES):
            raise UsageError(detail=f"{expected}; what was given is none.")
        try:
            given: dict[str, Any] = conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            # libpq quotes the whole address in its message, the password included.
            raise UsageError(detail=f"{expected}; PostgreSQL's own library cannot read what was given.") from _silent(error)
        for port in str(given.get("port") or "").split(","):
            if port and not (port.isdecimal() and 0 < int(port) <= PORT_MAX):
                raise UsageError(detail=f"{expected}; {port} is no port, which is a number up to {PORT_MAX}.")
        self.parameters = {"application_name": "orc", "connect_timeout": CONNECT_S, **DETECTION, **given, **SPOKEN}
        self._secrets = [str(given[name]) for name in SECRETS if given.get(name)]
        self.shown = _show(given)

    def connect(self, **more: Any) -> psycopg.Connection:
        """Return a new connection; raises psycopg's own errors."""
        return psycopg.connect(**{**self.parameters, **more})

    def without_secrets(self, text: str) -> str:
        """Return a message without any password that the address has."""
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return text


def _silent(error: psycopg.Error) -> psycopg.Error:
    return type(error)("unreadable address")


def _show(given: dict[str, Any]) -> str:
    if given.get("service") and not given.get("host"):
        return f"service {given['service']}"
    host = str(given.get("host") or given.get("hostaddr") or "localhost")
    port = f":{given['port']}" if given.get("port") else ""
    name = f"/{given['dbname']}" if given.get("dbname") else ""
    return f"{host}{port}{name}"
