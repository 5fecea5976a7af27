"""Hosts as network namespaces on a bridge of this machine: each can be cut off, and nothing outside is touched. Needs root."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator


class Network:
    """A bridge with an address of its own, and a namespace for each host."""

    def __init__(self) -> None:
        mark = os.getpid() % 10_000
        self._bridge, self._prefix = f"orcb{mark}", f"orc{mark}"
        self._net = f"10.213.{mark % 250}"
        self._hosts: list[str] = []
        self.address = f"{self._net}.1"

    def open(self) -> None:
        """Make the bridge; raise CalledProcessError where that is not allowed."""
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("address", "add", f"{self.address}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")

    def enter(self, host: str) -> list[str]:
        """Return the words before a command by which it runs on a host's network, made when it is first named."""
        space = f"{self._prefix}-{host}"
        if host not in self._hosts:
            self._hosts.append(host)
            number = len(self._hosts)
            outer, inner = self._wire(host), f"{self._prefix}i{number}"
            _ip("netns", "add", space)
            _ip("link", "add", outer, "type", "veth", "peer", "name", inner)
            _ip("link", "set", inner, "netns", space)
            _ip("link", "set", outer, "master", self._bridge, "up")
            _ip("-n", space, "address", "add", f"{self._net}.{10 + number}/24", "dev", inner)
            _ip("-n", space, "link", "set", inner, "up")
            _ip("-n", space, "link", "set", "lo", "up")
        return ["ip", "netns", "exec", space]

    def cut_off(self, host: str) -> None:
        """Pull a host's wire: nothing it sends arrives, and nobody tells it so."""
        _ip("link", "set", self._wire(host), "down")

    def heal(self, host: str) -> None:
        """Put a host's wire back."""
        _ip("link", "set", self._wire(host), "up")

    def close(self) -> None:
        """Take everything down again."""
        for host in self._hosts:
            _ip("netns", "del", f"{self._prefix}-{host}")
        _ip("link", "del", self._bridge)

    def _wire(self, host: str) -> str:
        return f"{self._prefix}o{1 + self._hosts.index(host)}"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextlib.contextmanager
def bridged() -> Iterator[Network]:
    """Return a network that is taken down again."""
    network = Network()
    network.open()
    try:
        yield network
    finally:
        network.close()
