"""The socket of a server of ours, and the names by which a request may call it.

Below `orc web` and `orc mcp --http`: both listen on the loopback unless told otherwise, and answer to no name but their own, so
that a page of somebody else, whose name was rebound to this machine, gets nothing.
"""

from __future__ import annotations

import ipaddress
import socket

import msgspec

from agent_orchestrator.errors import Unavailable, UsageError

PORTS_TRIED = 20
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The place to listen at; no port is the usual one, or the next that is free."""

    host: str = "127.0.0.1"
    port: int | None = None


class OwnNames(msgspec.Struct, frozen=True, kw_only=True):
    """The names of one server."""

    names: frozenset[str]
    """The names of this machine that a request may be addressed to."""
    anywhere: bool
    """True for a server that listens elsewhere than on the loopback: any address of a machine, as a number, is then ours."""
    port: int

    def has(self, host: str) -> bool:
        """Tell whether a request's Host names this server."""
        name, colon, port = host.rpartition(":")
        if not colon or port != str(self.port):
            return False
        if name.lower() in self.names:
            return True
        try:
            return self.anywhere and bool(ipaddress.ip_address(name.removeprefix("[").removesuffix("]")))
        except ValueError:
            return False


def bind_listener(address: Address, usual_port: int) -> socket.socket:
    """Return a socket that listens; raise Unavailable where there is none to be had."""
    first = usual_port if address.port is None else address.port
    problem = ""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    for port in range(first, first + (PORTS_TRIED if address.port is None else 1)):
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address.host, port))
            listener.listen(128)
        except socket.gaierror as error:
            listener.close()
            raise UsageError(detail=f"--listen {address.host}: {error.strerror}; give an address of this machine.") from error
        except OSError as error:
            listener.close()
            problem = error.strerror or str(error)
        else:
            return listener
    raise Unavailable(detail=f"{address.host}:{first} cannot be listened at: {problem}; give another --port.")


def names_of(host: str, port: int) -> OwnNames:
    """Return the names of a server that listens at a host."""
    more = () if is_loopback(host) else (host.lower(), socket.gethostname().lower())
    return OwnNames(names=frozenset((*LOOPBACK_NAMES, *more)), anywhere=not is_loopback(host), port=port)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def shown_host(host: str) -> str:
    """Return the host for a link: a name that other machines know where all addresses are listened at."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
