"""The server itself: its socket, its link, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType

import msgspec
import uvicorn

from agent_orchestrator.config import Settings, data_folder, is_debugging
from agent_orchestrator.engine.peers import find_peer_launch
from agent_orchestrator.runs.notify.notifier import notifying
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.surfaces.listener import Address, bind_listener, names_of, shown_host
from agent_orchestrator.surfaces.web.application import Site, make_application
from agent_orchestrator.surfaces.web.guard import Door
from agent_orchestrator.surfaces.web.repositories import Repositories
from agent_orchestrator.surfaces.web.sessions import Sessions
from agent_orchestrator.surfaces.web.stream import Hub

PORT = 7420
GRACE_S = 1


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """A server that is about to answer."""

    url: str
    """The link to it, with a key that is valid once."""
    host: str
    port: int


def serve(settings: Sequence[Settings], address: Address, *, read_only: bool, announce: Callable[[Listening], None]) -> None:
    """Show repositories on a page until Ctrl-C; `announce` is told the link once the socket takes requests."""
    listener = bind_listener(address, PORT)
    host, port = address.host, listener.getsockname()[1]
    folder = data_folder(settings[0])
    sessions = Sessions(folder / "web" / "sessions" if folder is not None else None)
    door = Door(
        sessions=sessions,
        names=names_of(host, port),
        read_only=read_only,
        find_launch=partial(find_peer_launch, [one.folder for one in settings], port=port),
    )
    repositories = Repositories(settings)

    def make_link(key: str) -> str:
        return f"http://{shown_host(host)}:{port}/?key={key}"

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
    told = contextlib.ExitStack()
    for one in settings:
        told.enter_context(_notifying(one))
    try:
        announce(Listening(url=make_link(sessions.make_key()), host=host, port=port))
        asyncio.run(_Server(options, hub).serve([listener]))
    except KeyboardInterrupt:
        pass  # The way in which people end it.
    finally:
        listener.close()
        repositories.close()
        told.close()


@contextlib.contextmanager
def _notifying(settings: Settings) -> Iterator[None]:
    """Deliver what waits for the subscribers of a repository that has runs, and what happens in it meanwhile."""
    with Orchestrator(settings=settings) as orchestrator:
        if not orchestrator.has_store:
            yield
            return
        with notifying(orchestrator, (), lambda problem: sys.stderr.write(f"orc: {problem}\n")):
            yield


class _Server(uvicorn.Server):
    """A server whose streams end with it."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the streams, of which each page has one, then the rest."""
        asyncio.get_running_loop().call_soon_threadsafe(self._hub.close)
        super().handle_exit(sig, frame)
