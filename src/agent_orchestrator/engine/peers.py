"""The program at the other end of a connection from this machine: an agent that found the port may look for a session, too.

Where there is no /proc (macOS), or the other end is another machine, nothing is known, and the session alone decides.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_orchestrator.engine.sender import find_launch_of

PROC = Path("/proc")
_TABLES = ("net/tcp", "net/tcp6")


def find_peer_launch(stores: Iterable[Path], peer: tuple[str, int], port: int) -> str | None:
    """Return the launch of one of the stores from which a connection to our port was made; None for anybody else."""
    pids = list(find_processes(peer, port))
    return next((launch for pid in pids for store in stores if (launch := find_launch_of(store, pid)) is not None), None)


def find_processes(peer: tuple[str, int], port: int) -> Iterator[int]:
    """Yield the processes that hold the other end of a connection to our port."""
    inodes = {f"socket:[{inode}]" for inode in _find_sockets(peer, port)}
    if not inodes:
        return
    for name in os.listdir(PROC):
        if name.isdecimal() and any(link in inodes for link in _links(PROC / name / "fd")):
            yield int(name)


def _links(folder: Path) -> Iterator[str]:
    try:
        for descriptor in os.listdir(folder):
            yield os.readlink(folder / descriptor)
    except OSError:
        return  # Gone meanwhile, or another user's.


def _find_sockets(peer: tuple[str, int], port: int) -> Iterator[str]:
    """Yield the inodes of sockets that are bound to the peer's address and connected to our port."""
    wanted = {_spell(address, peer[1]) for address in _both_families(peer[0])}
    for table in _TABLES:
        try:
            lines = (PROC / table).read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[1] in wanted and int(fields[2].rpartition(":")[2], 16) == port:
                yield fields[9]


def _both_families(host: str) -> Iterator[bytes]:
    address = ipaddress.ip_address(host)
    yield address.packed
    if isinstance(address, ipaddress.IPv4Address):
        yield b"\0" * 10 + b"\xff\xff" + address.packed
    elif address.ipv4_mapped is not None:
        yield address.ipv4_mapped.packed


def _spell(packed: bytes, port: int) -> str:
    """Return an address as the kernel's tables have it: words in the machine's own order."""
    words = [packed[at : at + 4] for at in range(0, len(packed), 4)]
    swapped = [word[::-1] if sys.byteorder == "little" else word for word in words]
    return f"{b''.join(swapped).hex().upper()}:{port:04X}"
