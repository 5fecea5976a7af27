"""Lock files that a killed git left behind: found when its work is repeated, and removed once their owner is provably dead.

Whoever holds one of our own locks writes that down before git changes anything, and takes it back when all is done; every git
of ours holds that lock with us. So who finds the mark of a predecessor, and has the lock, knows that no git of that one is
alive, and that lock files older than the mark are somebody else's. What is younger may still be a person's: it is left alone
while any process has it open, or while a git is at work in the repository that may have made it. Without a view of the
processes there is no proof, and nothing is removed. A lock file from before the machine was started belongs to nobody.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from agent_orchestrator.beneath import LinkInTheWay, open_folder
from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.environment import files_now_ns
from agent_orchestrator.git.repository import common_dir, top_level

SCRATCH_ROOMS = ("launches", "scratch")
"""The folders of the store in which scratch folders lie."""
PROCESSES = Path("/proc")
PATIENCE_S = 2.0
_PAUSE_S = 0.05
_SLACK_NS = 100_000_000
NS = 1_000_000_000
NEVER_NS = 1 << 62
"""Later than any lock file."""


def begin_mark(lock: int) -> int | None:
    """Note in a lock of ours that its work begins; return since when a predecessor's stands unfinished, None if none does.

    Work that was finished before the machine was started anew counts from the very beginning: its end may not be on disk. A
    mark that is empty may be new, or torn by a power cut: then only what is older than the machine's start was left by anybody.
    """
    boot = _boot_id()
    before = _read(lock)
    since = None
    if before is None:
        since = NEVER_NS
    elif before.get("open") or before.get("boot") not in (None, boot):
        since = os.fstat(lock).st_mtime_ns if before.get("open") else 0
    _write(lock, {"open": True, "boot": boot})
    if since and since != NEVER_NS:
        os.utime(lock, ns=(since, since))  # A second death finds what the first one left.
    return since


def end_mark(lock: int) -> None:
    """Note that the work is done."""
    _write(lock, {"boot": _boot_id()})


def _read(lock: int) -> dict[str, object] | None:
    """Read a mark; one that was torn is open, and a new or empty lock has none."""
    text = os.pread(lock, 4096, 0)
    if not text:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"open": True}


def _write(lock: int, mark: dict[str, object]) -> None:
    text = json.dumps(mark).encode()
    os.pwrite(lock, text, 0)
    os.ftruncate(lock, len(text))


def clear_locks(common: Path, since_ns: int) -> None:
    """Remove the lock files of a repository that were left since a mark was made, or before the machine was started."""
    for lock in find_locks(common):
        if is_left(lock, common, since_ns):
            lock.unlink(missing_ok=True)


def find_locks(common: Path) -> Iterator[Path]:
    """Yield the files by which git locks a repository and its worktrees."""
    for folder in (common, *common.glob("worktrees/*")):
        yield from folder.glob("*.lock")
        yield from folder.glob("packed-refs.new")
        for place, _, names in os.walk(folder / "refs"):
            yield from (Path(place, name) for name in names if name.endswith(".lock"))


def is_left(lock: Path, common: Path, since_ns: int) -> bool:
    """Return True if a lock file is younger than a mark, or older than this start of the machine, and its owner is dead."""
    boot_ns = _boot_ns()
    try:
        made_ns = lock.lstat().st_mtime_ns
    except OSError:
        return False
    if boot_ns is None or (made_ns < since_ns and made_ns >= boot_ns):
        return False
    waited = 0.0
    while _has_owner(lock, common, made_ns, boot_ns):
        if waited >= PATIENCE_S:
            return False
        threading.Event().wait(_PAUSE_S)
        waited += _PAUSE_S
    with contextlib.suppress(OSError):
        return lock.lstat().st_mtime_ns == made_ns
    return False


def _has_owner(lock: Path, common: Path, made_ns: int, boot_ns: int) -> bool:
    """Return True if any process may be the owner of a lock file, or if that cannot be seen."""
    processes = list(PROCESSES.glob("[0-9]*"))
    return not processes or any(_may_own(process, lock, common, made_ns, boot_ns) for process in processes)


def _may_own(process: Path, lock: Path, common: Path, made_ns: int, boot_ns: int) -> bool:
    try:
        if boot_ns + _started_ns(process) > made_ns + _SLACK_NS:
            return False  # It is younger than what it would have made.
        if not (process / "comm").read_text("utf-8", "replace").startswith("git"):
            return _has_open(process, lock)
        words = (process / "cmdline").read_bytes()
        return b"fsmonitor--daemon" not in words and _works_in(process, common, words)
    except PermissionError:
        return True  # A git of somebody else, whose folder cannot be seen.
    except OSError:
        return False  # It is gone.


def _has_open(process: Path, lock: Path) -> bool:
    try:
        return any(fd.readlink() == lock for fd in (process / "fd").iterdir())
    except PermissionError:
        return False


def _works_in(process: Path, common: Path, words: bytes) -> bool:
    top = top_level((process / "cwd").readlink())
    found = common_dir(top) if top is not None else None
    if found is not None and found.resolve() == common.resolve():
        return True
    return os.fsencode(common) in words or os.fsencode(common) in (process / "environ").read_bytes()


def is_entered(folder: Path) -> bool:
    """Return True if any process stands in the folder or below it, or if that cannot be seen."""
    processes = list(PROCESSES.glob("[0-9]*"))
    for process in processes:
        with contextlib.suppress(OSError):  # gone, or somebody else's
            if (process / "cwd").readlink().is_relative_to(folder):
                return True
    return not processes


def _boot_id() -> str:
    try:
        return (PROCESSES / "sys" / "kernel" / "random" / "boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _boot_ns() -> int | None:
    """Return the time at which this machine was started, by the clock of its files; None where that cannot be seen.

    A container may show an uptime of its own beside start times of the machine: then this process would begin in the future.
    """
    try:
        now_ns = files_now_ns()
        boot_ns = now_ns - int(float((PROCESSES / "uptime").read_text("ascii").split()[0]) * NS)
        return boot_ns if boot_ns + _started_ns(PROCESSES / "self") <= now_ns + _SLACK_NS else None
    except (OSError, ValueError):
        return None


def _started_ns(process: Path) -> int:
    """Return the time between the start of the machine and that of a process; raises ProcessLookupError for a dead one."""
    state, *more = (process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    if state in "ZX":
        raise ProcessLookupError
    return int(more[18]) * NS // os.sysconf("SC_CLK_TCK")


def is_begun(found: bytes, wanted: bytes) -> bool:
    """Return True if a file is a content as far as git wrote it before it was killed; a power cut may leave zeros after that."""
    return wanted.startswith(found) or (len(found) <= len(wanted) and wanted.startswith(found.rstrip(b"\0")))


def make_scratch(folder: Path) -> None:
    """Make a scratch folder in the store; GitFailed for a link on the way: what git leaves there is deleted afterwards."""
    root = next((one.parent for one in folder.parents if one.name in SCRATCH_ROOMS), folder.parent)
    try:
        with open_folder(root, folder, make=True):
            pass  # It is there, and no link leads to it.
    except LinkInTheWay as error:
        raise GitFailed(command="write-tree", where=folder, detail=str(error)) from None


def forget_index(index: Path) -> None:
    """Delete an index of ours, with the lock of a git that was killed over it."""
    for file in (index, index.with_name(f"{index.name}.lock")):
        file.unlink(missing_ok=True)
