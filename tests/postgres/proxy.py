"""A proxy on loopback in front of a server that cuts connections off, at a moment that a test chooses."""

from __future__ import annotations

import contextlib
import enum
import random
import select
import socket
import threading
from collections.abc import Iterator

CHUNK = 1 << 20
CHANCE = 0.1
KEPT_MAX = 20


class Cut(enum.Enum):
    """The part of an exchange that is lost when the next request comes."""

    REQUEST = "the request: the server never hears of it"
    ANSWER = "the answer: the server has done it"
    CLIENT = "the client: the server is still at it, and does not know"
    WORD = "every word: the request is swallowed, and the connection stays as it is"


BREAKS = (Cut.REQUEST, Cut.ANSWER, Cut.CLIENT)
"""Those that a client is told of at once."""


class Proxy:
    """Forwards connections to a port, until it is told to cut one off."""

    def __init__(self, port: int, listen: str = "127.0.0.1") -> None:
        self._to = port
        self._listener = socket.create_server((listen, 0))
        self.port: int = self._listener.getsockname()[1]
        self._next: Cut | None = None
        self._random: random.Random | None = None
        self._kept: list[socket.socket] = []
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_next(self, how: Cut) -> None:
        """Cut off whoever sends the next request, once."""
        self._next = how

    def cut_by_chance(self, seed: int) -> None:
        """Cut off about one request in ten from now on."""
        self._random = random.Random(seed)

    def cut_no_more(self) -> None:
        """Forward everything again."""
        self._random = None

    def _choose(self) -> Cut | None:
        how, self._next = self._next, None
        if how is None and self._random is not None and self._random.random() < CHANCE:
            how = self._random.choice(BREAKS)
        return how

    def close(self) -> None:
        self._listener.close()
        for one in self._kept:
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._to))
        except OSError:  # The server is away; so is what stands in front of it.
            client.close()
            return
        with contextlib.suppress(OSError):
            for request, how in self._exchange(client, server):
                self.cuts += 1
                if how is Cut.WORD:
                    self._keep(client, server)
                    return
                if how is not Cut.REQUEST:
                    server.sendall(request)
                if how is Cut.ANSWER:
                    server.recv(CHUNK)
                if how is Cut.CLIENT:
                    self._keep(server)
                    server = socket.socket()
        client.close()
        server.close()

    def _keep(self, *ends: socket.socket) -> None:
        """Leave connections open that lead nowhere, the last of them: a server has room for so many."""
        self._kept += ends
        while len(self._kept) > KEPT_MAX:
            self._kept.pop(0).close()

    def _exchange(self, client: socket.socket, server: socket.socket) -> Iterator[tuple[bytes, Cut]]:
        """Forward both ways; yield a request that must be cut off, and end."""
        while True:
            for ready in select.select([client, server], [], [])[0]:
                data = ready.recv(CHUNK)
                if not data:
                    return
                if ready is server:
                    client.sendall(data)
                elif (how := self._choose()) is not None:
                    yield data, how
                    return
                else:
                    server.sendall(data)


@contextlib.contextmanager
def proxied(port: int) -> Iterator[Proxy]:
    proxy = Proxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
