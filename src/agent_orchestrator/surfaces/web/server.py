"""The server itself: its socket, its link, and its end."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType

import msgspec
import uvicorn

from agent_orchestrator.config import Settings, data_folder, is_debugging
from agent_orchestrator.engine.peers import find_peer_launch
from agent_orchestrator.errors import Unavailable, UsageError
from agent_orchestrator.surfaces.web.application import Site, make_application
from agent_orchestrator.surfaces.web.guard import Door
from agent_orchestrator.surfaces.web.repositories import Repositories
from agent_orchestrator.surfaces.web.sessions import Sessions
from agent_orchestrator.surfaces.web.stream import Hub

PORT = 7420
PORTS_TRIED = 20
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
GRACE_S = 1


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The place to listen at; no port is the usual one, or the next that is free."""

    host: str = "127.0.0.1"
    port: int | None = None


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """A server that is about to answer."""

    url: str
    """The link to it, with a key that is valid once."""
    host: str
    port: int


def serve(settings: Sequence[Settings], address: Address, *, read_only: bool, announce: Callable[[Listening], None]) -> None:
    """Show repositories on a page until Ctrl-C; `announce` is told the link once the socket takes requests."""
    listener = _bind(address)
    host, port = address.host, listener.getsockname()[1]
    folder = data_folder(settings[0])
    sessions = Sessions(folder / "web" / "sessions" if folder is not None else None)
    door = Door(
        sessions=sessions,
        names=frozenset((*LOOPBACK_NAMES, *(() if _is_loopback(host) else (host.lower(), socket.gethostname().lower())))),
        anywhere=not _is_loopback(host),
        port=port,
        read_only=read_only,
        find_launch=partial(find_peer_launch, [one.folder for one in settings], port=port),
    )
    repositories = Repositories(settings)

    def make_link(key: str) -> str:
        return f"http://{_shown(host)}:{port}/?key={key}"

    hub = Hub(repositories)
    app = make_application(Site(repositories, door, make_link), hub)
    options = uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        lifespan="off",
        access_log=False,
        log_level="error" if is_debugging(settings[0].environ) else "critical",
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    try:
        announce(Listening(url=make_link(sessions.make_key()), host=host, port=port))
        asyncio.run(_Server(options, hub).serve([listener]))
    except KeyboardInterrupt:
        pass  # The way in which people end it.
    finally:
        listener.close()
        repositories.close()


class _Server(uvicorn.Server):
    """A server whose streams end with it."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the streams, of which each page has one, then the rest."""
        asyncio.get_running_loop().call_soon_threadsafe(self._hub.close)
        super().handle_exit(sig, frame)


def _bind(address: Address) -> socket.socket:
    """Return a socket that listens; raise Unavailable where there is none to be had."""
    first = PORT if address.port is None else address.port
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


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _shown(host: str) -> str:
    """Return the host for a link: a name that other machines know where all addresses are listened at."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
