"""The wire between a host and the server: it can be cut, for everything that goes through it, and mended."""

from __future__ import annotations

import contextlib
import select
import socket
import threading

CHUNK = 1 << 16


class Wire:
    """Forwards connections from a port of its own to that of the server, unless it is cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._whole = True
        threading.Thread(target=self._accept, daemon=True).start()

    def through(self, url: str) -> str:
        """Return the address of a database as it is reached through the wire."""
        return url.replace(f":{self._to}/", f":{self.port}/")

    def cut(self) -> None:
        """End every connection, and let none be made."""
        self._whole = False
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Let connections be made again."""
        self._whole = True

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            if not self._whole:
                client.close()
                continue
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._to)) as server, contextlib.suppress(OSError):
            self._open += [client, server]
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(CHUNK)
                    if not data:
                        return
                    (server if ready is client else client).sendall(data)
