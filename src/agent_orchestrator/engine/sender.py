"""The sender of a directive: the user, the terminal, and the launch of this store that this process belongs to, if there is one.

Any mark of a launch suffices: its lock among our descriptors, its nonce in our environment or in that of a process we
descend from or whose session or group we are in, or a session that its shim made. A program can take all of them off
itself (docs/trust.md says how far that goes); this finds those that do not.
"""

from __future__ import annotations

import fcntl
import os
import pwd
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent_orchestrator.bounded import open_launched
from agent_orchestrator.core.ids import RunId, launched_in
from agent_orchestrator.core.who import Surface, Who
from agent_orchestrator.engine.clock import boot_id
from agent_orchestrator.engine.kinship import HAS_PROC, NONCE_VARIABLE, leaderless_session, relatives

LAUNCHES = "launches"
_LOCK = "lock"
_BIRTH_BYTES = 1024
"""A lock file has two short lines."""
_GONE = " (deleted)"
_GETPATH: int | None = getattr(fcntl, "F_GETPATH", None)
"""The way that macOS names an open file."""


def find_sender(store: Path, environ: Mapping[str, str], surface: Surface) -> Who:
    """The sender of what this process says to the runs of a store."""
    return Who(
        surface=surface,
        user=name_of_user(os.getuid()),
        uid=os.getuid(),
        terminal=_terminal(),
        pid=os.getpid(),
        launch=find_launch(store, environ),
    )


def name_of_user(uid: int) -> str:
    """The user's name; the number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def find_launch(store: Path, environ: Mapping[str, str]) -> str | None:
    """The launch of the store that this process belongs to, by the id of its effect; None for a person's own process."""
    return _find_launch(store, None, set(environ.get(NONCE_VARIABLE, "").split(":")))


def find_launch_of(store: Path, pid: int) -> str | None:
    """The launch of the store that another process belongs to; None for a person's, and for one that nobody can look at."""
    return _find_launch(store, pid, set()) if HAS_PROC else None


def _find_launch(store: Path, pid: int | None, marks: set[str]) -> str | None:
    root = store / LAUNCHES
    if not root.is_dir():
        return None
    root = root.resolve()
    inherited = _by_descriptor(root, pid)
    if inherited is not None:
        return inherited
    marks |= {word for relative in relatives(pid) for word in relative.nonces}
    found = _by_nonce(root, {mark.encode() for mark in marks if _is_nonce(mark)})
    if found is not None:
        return found
    session = leaderless_session(pid or 0)
    return _by_shim(root, session) if session is not None else None


def _by_descriptor(root: Path, pid: int | None) -> str | None:
    """Shim and agent inherit the lock, and so does everything they start that does not close it."""
    try:
        names = os.listdir("/dev/fd" if pid is None else f"/proc/{pid}/fd")
    except OSError:
        return None  # It is gone, or somebody else's.
    for name in names:
        path = _path_of(int(name), pid)
        if path is not None and path.startswith(f"{root}/"):
            launch = os.path.dirname(path.removesuffix(_GONE)).removeprefix(f"{root}/")
            if launch.count("/") == 1 and "~" in launch:
                run, folder = launch.split("/")
                return launched_in(RunId(run), folder)
    return None


def _path_of(descriptor: int, pid: int | None) -> str | None:
    try:
        if HAS_PROC:
            return os.readlink(f"/proc/{pid or 'self'}/fd/{descriptor}")
        if _GETPATH is not None:
            return fcntl.fcntl(descriptor, _GETPATH, bytes(1024)).rstrip(b"\0").decode("utf-8", "replace")
    except OSError:
        pass  # The listing's own descriptor is closed by now.
    return None


def _by_nonce(root: Path, marks: set[bytes]) -> str | None:
    if not marks:
        return None
    for launch, birth, _ in _births(root):
        if any(mark in birth for mark in marks):
            return launch
    return None


def _by_shim(root: Path, session: int) -> str | None:
    """The number of a session is not given away again while anything lives in it, so whose shim had it made it."""
    boot, number = boot_id().encode(), str(session).encode()
    return next((launch for launch, birth, shim in _births(root) if shim == number and boot in birth), None)


def _births(root: Path) -> Iterator[tuple[str, bytes, bytes]]:
    """Every launch that the store knows, with the two lines of its lock: its birth, and the shim's pid."""
    for run in _inside(root):
        for folder in _inside(run.path):
            if "~" not in folder.name:
                continue
            try:
                with open_launched(Path(folder.path, _LOCK)) as file:
                    birth, _, rest = file.read(_BIRTH_BYTES).partition(b"\n")
            except OSError:
                continue
            yield launched_in(RunId(run.name), folder.name), birth, rest.partition(b"\n")[0]


def _inside(folder: str | Path) -> list[os.DirEntry[str]]:
    """Return what a folder holds; nothing when it is a file, or pruned meanwhile."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_nonce(word: str) -> bool:
    """Say whether a word could be the mark of a launch: everything else that stands in arguments is left alone."""
    return len(word) == 32 and word.isalnum()


def _terminal() -> str:
    for descriptor in (0, 1, 2):
        try:
            return os.ttyname(descriptor).removeprefix("/dev/")
        except OSError:
            continue
    return ""
