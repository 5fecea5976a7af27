"""Which processes can have come from a launch: those whose ids were given out since it began.

Linux gives ids out in order, so that they are a range of numbers: the end of a short launch costs a look at the few
processes that the machine has made meanwhile, however many there are besides. Where that cannot be told, or is not few, the
whole process table has to be gone through (`identity.Sweep`).
"""

from __future__ import annotations

import os
from functools import cache
from itertools import islice
from typing import NamedTuple

from agent_orchestrator.engine.kinship import HAS_PROC, read_nonces, read_proc

FEW, READ_MAX = 1024, 128
"""More ids than this are not looked at in one go, and no more living processes: about 1 ms each."""

_IDS_ARE_OURS = HAS_PROC and os.readlink("/proc/self") == str(os.getpid())
"""False where /proc is that of another namespace, in which processes have other ids."""
_LAST, _COUNTS, _COUNT = "/proc/sys/kernel/ns_last_pid", "/proc/stat", b"\nprocesses "
_ID_BYTES, _COUNTS_BYTES = 32, 65_536
"""To read into more than is needed costs four times as much as the reading."""
COUNT_KEPT = FEW // 4
"""After so many more ids the processes are counted anew."""


class Given(NamedTuple):
    """The place that the kernel had reached in giving out process ids."""

    last: int
    made: int
    """The processes and threads that were ever made, then or earlier: it tells when the ids began anew."""
    counted: int = -1
    """The last id when they were counted."""


def ids_given(earlier: Given | None = None) -> Given | None:
    """Return the last id that was given out; None where the kernel does not say.

    Their count may be that of an earlier answer: a launch then passes for one that lived since, which is never less safe.
    """
    last = _last_id()
    if last is None:
        return None
    if earlier is not None and earlier.counted <= last <= earlier.counted + COUNT_KEPT:
        return Given(last, earlier.made, earlier.counted)
    made = _count_made()
    return Given(last, made, last) if made is not None else None


def _last_id() -> int | None:
    last = os.pread(opened, _ID_BYTES, 0) if _IDS_ARE_OURS and (opened := _open_once(_LAST)) >= 0 else b""
    return int(last) if last else None


def _count_made() -> int | None:
    """Asked seldom: the kernel counts much else for the same file, more the more processors there are."""
    opened, told = _open_once(_COUNTS), b""
    while opened >= 0 and (part := os.pread(opened, _COUNTS_BYTES, len(told))):
        told += part
        counted = told.partition(_COUNT)[2]
        if b"\n" in counted:
            return int(counted.split(None, 1)[0])
    return None


@cache
def _open_once(path: str) -> int:
    """Open a file that the kernel writes anew whenever it is read from its beginning; -1 where there is none.

    For good: each launch asks three times, and to open it costs ten times as much as to read it.
    """
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return -1


def left_nothing(nonce: str, shim: int, before: Given) -> bool:
    """Say whether it is certain that no process carries the nonce of a launch whose shim is gone.

    `before` is how far the ids had got before the shim was started. It is looked until no process was made meanwhile: one that
    is being made is not seen yet, but the one that makes it is.
    """
    looked, left = before.last, READ_MAX
    while (last := _last_id()) is not None and looked <= last <= before.last + FEW:
        if looked == last:
            made = _count_made()
            return before.last < shim <= looked and made is not None and made - before.made <= FEW
        made_since = range(looked + 1, last + 1)
        living = list(islice((pid for pid in made_since if _session_of(pid) is not None), left + 1))
        left -= len(living)
        if left < 0 or any(_may_carry(pid, nonce, before) for pid in living):
            break
        looked = last
    return False


def _session_of(pid: int) -> int | None:
    """The session of a process; None when it is gone. Of most ids it is: to ask so is the cheapest way to know."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None
    except PermissionError:
        return pid


def _may_carry(pid: int, nonce: str, before: Given) -> bool:
    """Say whether a process carries the nonce, or may.

    One that is just becoming another program shows nothing, or nothing but zeros. In a session that was there before, it is
    not one that the launch made.
    """
    environ = read_proc(f"/proc/{pid}/environ")
    if environ is None:
        return False
    if not environ.strip(b"\0"):
        return (_session_of(pid) or 0) > before.last
    return nonce in read_nonces(environ)
