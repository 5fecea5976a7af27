"""The way in: a key in a link that is valid once, and the session of the browser that used it.

A session is a cookie, which a browser sends by itself, and a token, which only our own page knows and sends with what it
writes: cookies are shared by all ports of a host, and a server that an agent has started is one of them. Sessions outlive the
server, so that a page goes on when it is started again; the disk has their hashes alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
from pathlib import Path
from typing import NamedTuple

from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.engine.files import write_whole

SECRET_BYTES = 32
SESSIONS_MAX = 64
FILE_BYTES_MAX = 64 * 1024


class BrowserSession(NamedTuple):
    """The two secrets of a browser."""

    cookie: str
    token: str


class Sessions:
    """The keys that are not used yet, and the sessions that there are."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._keys: set[str] = set()
        self._known: dict[str, str] = {}
        """The hashes of the tokens, by the hashes of the cookies."""
        self._seen_ns = 0
        self._read()

    def make_key(self) -> str:
        """Return a new key, which is valid once."""
        key = secrets.token_urlsafe(SECRET_BYTES)
        self._keys.add(_hash(key))
        return key

    def redeem(self, key: str) -> BrowserSession | None:
        """Return a new session for a key; None for one that is used or was never made."""
        if (hashed := _hash(key)) not in self._keys:
            return None
        self._keys.remove(hashed)
        made = BrowserSession(secrets.token_urlsafe(SECRET_BYTES), secrets.token_urlsafe(SECRET_BYTES))
        self._read()  # Another server of this user may have made some.
        self._known[_hash(made.cookie)] = _hash(made.token)
        while len(self._known) > SESSIONS_MAX:
            del self._known[next(iter(self._known))]
        self._write()
        return made

    def may_read(self, cookie: str) -> bool:
        """Tell whether a cookie is that of a session."""
        if cookie and _hash(cookie) not in self._known:
            self._read()
        return bool(cookie) and _hash(cookie) in self._known

    def may_write(self, cookie: str, token: str) -> bool:
        """Tell whether a cookie and a token belong together."""
        return bool(token) and hmac.compare_digest(self._known.get(_hash(cookie), ""), _hash(token))

    def _read(self) -> None:
        if self._file is None:
            return
        try:
            seen_ns = self._file.stat().st_mtime_ns
            if seen_ns == self._seen_ns:
                return
            self._seen_ns = seen_ns
            text = read_bounded(self._file, FILE_BYTES_MAX).decode("ascii", "replace")
        except OSError:
            return
        for line in text.splitlines():
            cookie, _, token = line.partition(" ")
            if len(cookie) == len(token) == hashlib.sha256().digest_size * 2:
                self._known.setdefault(cookie, token)

    def _write(self) -> None:
        """Keep the hashes; where that cannot be, on a full disk, the sessions end with the server."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lines = "".join(f"{cookie} {token}\n" for cookie, token in self._known.items())
            write_whole(self._file.parent, self._file, lines.encode("ascii"), 0o600)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
