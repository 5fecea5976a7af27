"""The door through which agents at work speak: a key for each launch, and the address at which their run's server is found.

The process that drives the run serves; the address and the secret are kept beside the run's lock, so that agents that outlive it
find the next one at the same place. Without it they work on: what they call then fails, and they say so or do without.
"""

from __future__ import annotations

import contextlib
import hmac
import importlib.util
import os
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.agents.adapter import RunServer
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.ids import EffectId, run_of
from agent_orchestrator.engine.files import write_whole
from agent_orchestrator.errors import Unavailable
from agent_orchestrator.store.port import StoredRun

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator

PATH = "/mcp"
SECRET_BYTES = 32
FILE_BYTES_MAX = 4096
PACKAGES = ("mcp", "starlette", "uvicorn")


class KeptDoor(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a door that outlive a process."""

    port: int
    secret: str


class AgentDoor:
    """The address of a run's server, and the keys of its launches."""

    def __init__(self, run: str, listener: socket.socket, secret: str) -> None:
        self.run, self.listener, self._secret = run, listener, secret
        self.port: int = listener.getsockname()[1]

    def server_of(self, effect: EffectId) -> RunServer:
        """Return the server with the key of one launch."""
        return RunServer(url=f"http://127.0.0.1:{self.port}{PATH}", key=f"{self._sign(effect)}.{effect}")

    def find_effect(self, key: str) -> EffectId | None:
        """Return the launch whose key this is; None for any other text."""
        sign, _, effect = key.partition(".")
        known = effect.count("/") == 2 and run_of(EffectId(effect)) == self.run
        return EffectId(effect) if known and hmac.compare_digest(sign.encode(), self._sign(effect).encode()) else None

    def _sign(self, effect: str) -> str:
        return hmac.digest(self._secret.encode(), effect.encode(), "sha256").hex()


def require_server_packages() -> None:
    """Raise Unavailable where the packages of the server are not installed: a run that was asked for it does without nothing."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        why = f"--mcp (run.mcp) needs {', '.join(missing)}, which is not installed: pip install 'orc-agents[mcp]'."
        raise Unavailable(detail=why)


@contextlib.contextmanager
def serve_agents(orchestrator: Orchestrator, run: StoredRun) -> Iterator[AgentDoor | None]:
    """Serve the agents of a run that has a server, from a thread, while it is driven; what comes early waits at the socket."""
    if not run.context.mcp:
        yield None
        return
    require_server_packages()
    door = open_door(orchestrator.settings.folder / "runs" / f"{run.id}.door", run)
    stop, (here, there) = threading.Event(), socket.socketpair()
    thread = threading.Thread(target=_serve, args=(orchestrator, run, door, stop, there), name=f"agents-{run.id}", daemon=True)
    thread.start()
    try:
        yield door
    finally:
        stop.set()
        here.close()
        thread.join()
        there.close()
        door.listener.close()


def _serve(orchestrator: Orchestrator, run: StoredRun, door: AgentDoor, stop: threading.Event, end: socket.socket) -> None:
    """Serve from the first request on: until then a run does not pay for the protocol's packages, which take a second to load."""
    select.select([door.listener, end], [], [])
    if stop.is_set():
        return
    from agent_orchestrator.runs.agent_server import serve_door

    try:
        serve_door(orchestrator, run, door, stop)
    finally:
        door.listener.close()  # Nobody must wait at a door that nobody opens.


def open_door(file: Path, run: StoredRun) -> AgentDoor:
    """Return the door of a run, at the port that it had before where that is free."""
    kept = KeptDoor(port=0, secret=os.urandom(SECRET_BYTES).hex())
    with contextlib.suppress(OSError, msgspec.DecodeError):
        kept = typed.decode(read_bounded(file, FILE_BYTES_MAX, root=file.parents[1]), KeptDoor)
    door = AgentDoor(run.id, _bind(kept.port), kept.secret)
    if door.port != kept.port:
        _keep(file, KeptDoor(port=door.port, secret=kept.secret))
    return door


def _bind(port: int) -> socket.socket:
    """Return a socket that listens on the loopback; at another port where somebody has taken this one."""
    problem = ""
    for tried in dict.fromkeys((port, 0)):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", tried))
            listener.listen(128)
        except OSError as error:
            listener.close()
            problem = error.strerror or str(error)
        else:
            return listener
    raise Unavailable(detail=f"127.0.0.1 cannot be listened at for the agents of the run: {problem}; start it with --no-mcp.")


def _keep(file: Path, kept: KeptDoor) -> None:
    write_whole(file.parents[1], file, msgspec.json.encode(kept), 0o600)
