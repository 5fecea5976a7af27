"""A browser's part of `orc web` without a browser: a session, requests as a page sends them, and its stream of events."""

from __future__ import annotations

import http.client
import json
import time
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from tests.acceptance.rig import WAIT_S

Frame = tuple[str, str, Any]
"""id, event, data"""


class Reply:
    """An answer of the server."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error."""
        return str(self.json["error"]["code"])

    @property
    def message(self) -> str:
        return str(self.json["error"]["message"])


def send(address: str, method: str, path: str, headers: dict[str, str], body: bytes | None = None) -> Reply:
    """Send one request with exactly these headers, and a Host where none is given."""
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None and "Content-Length" not in headers:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        found = connection.getresponse()
        return Reply(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
    finally:
        connection.close()


class PageSession:
    """A session that was opened by a link."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.address = parts.netloc
        opened = send(self.address, "GET", f"{parts.path}?{parts.query}", {})
        assert opened.status == 303, opened.body
        self.cookie = opened.headers["set-cookie"].split(";")[0]
        self.token = opened.headers["location"].partition("#token=")[2]

    def get(self, path: str, **headers: str) -> Reply:
        return send(self.address, "GET", path, {"Cookie": self.cookie, **headers})

    def read(self, path: str) -> Any:
        """Return an answer that must be there."""
        found = self.get(path)
        assert found.status == 200, (path, found.body)
        return found.json

    def post(self, path: str, body: Any, **headers: str) -> Reply:
        own = {"Cookie": self.cookie, "X-Orc-Token": self.token, "Content-Type": "application/json"}
        return send(self.address, "POST", path, {**own, **headers}, json.dumps(body).encode())

    def direct(self, run: str, directive: str, **fields: Any) -> Reply:
        body = {"id": uuid.uuid4().hex, "directive": directive, **fields}
        return self.post(f"/api/runs/{run}/directives", body)

    def frames(self, path: str, last: str = "") -> Iterator[Frame]:
        """Yield the frames of a stream until the caller has enough."""
        connection = http.client.HTTPConnection(self.address, timeout=60)
        try:
            connection.request("GET", path, headers={"Cookie": self.cookie, **({"Last-Event-ID": last} if last else {})})
            found = connection.getresponse()
            assert found.status == 200, found.read()
            fields: dict[str, str] = {}
            deadline = time.monotonic() + WAIT_S
            while raw := found.readline():
                assert time.monotonic() < deadline, "waited in vain for a frame"
                line = raw.decode().rstrip("\n")
                if line and not line.startswith(":"):
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif not line and "event" in fields:
                    yield fields.get("id", ""), fields["event"], json.loads(fields["data"])
                    fields = {}
        finally:
            connection.close()
