"""Every error this package raises on purpose.

The tree, and what `orc` exits with:

    OrcError
    ├── UsageError            2   the caller can fix it
    │   ├── InvalidId
    │   ├── InvalidValue
    │   ├── InvalidSpec           carries every problem found, with line and column
    │   ├── InvalidDocument
    │   ├── MissingPath
    │   ├── UnknownRun
    │   ├── AmbiguousRun
    │   ├── UnknownUnit
    │   ├── RunExists
    │   │   └── LoopExists
    │   └── Refused
    │       └── FromLaunch
    ├── Unavailable           3   the world can fix it
    │   ├── AgentMissing
    │   ├── NoSandbox
    │   ├── RunBusy
    │   ├── StoreLocked
    │   ├── StoreCorrupt
    │   ├── StoreFailing
    │   ├── StoreUnwritable
    │   ├── StoreNewer
    │   ├── StoreVanished
    │   ├── StoreAway             passes by itself: the engine waits
    │   ├── StoreRefused
    │   ├── StoreUnprepared
    │   ├── DiskFull
    │   ├── Shortage              passes by itself: the engine waits, and it is no attempt
    │   ├── UnsupportedFilesystem
    │   └── GitFailed
    ├── EditsUnconfirmed      4   a person has to say whether an edited state file counts
    └── Conflict              3   someone else moved the run first; the engine retries it
        └── Fenced                somebody else drives the run now: this driver must not go on

The class docstring is the sentence a person reads; it is filled with the values given at the raise.
"""

from __future__ import annotations

import errno
import os
from typing import Any, ClassVar

QUOTED_CHARS_MAX = 80


def quote(value: object) -> str:
    """Quote what somebody wrote in a sentence, cut where it is long."""
    if isinstance(value, str) and len(value) > QUOTED_CHARS_MAX:
        return repr(f"{value[: QUOTED_CHARS_MAX - 1]}…")
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= QUOTED_CHARS_MAX else f"{text[: QUOTED_CHARS_MAX - 1]}…"


class OrcError(Exception):
    """{detail}"""

    exit_code: ClassVar[int] = 1

    def __init__(self, **values: Any) -> None:
        self.values = values
        super().__init__((type(self).__doc__ or "").strip().format_map(values))


class UsageError(OrcError):
    """{detail}"""

    exit_code = 2


class InvalidId(UsageError):
    """{what} {said} is not a valid id: use letters, digits, '.', '_' and '-', starting with a letter or digit, at most 100 characters."""

    def __init__(self, *, value: object, **values: Any) -> None:
        super().__init__(value=value, said=quote(value), **values)


class InvalidValue(UsageError):
    """{what} is {said}: it must be {expected}."""

    def __init__(self, *, value: object, **values: Any) -> None:
        super().__init__(value=value, said=quote(value), **values)


class Problem:
    """One fault in a file that a person wrote: its place and what to do."""

    __slots__ = ("column", "line", "message")

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        self.message, self.line, self.column = message, line, column

    def located(self, file: str) -> str:
        """Return the problem as compilers print it: file:line:column: message."""
        where = file
        if self.line is not None:
            where += f":{self.line}"
            if self.column is not None:
                where += f":{self.column}"
        return f"{where}: {self.message}"


class InvalidSpec(UsageError):
    """{text}"""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file, self.problems = file, problems
        super().__init__(text="\n".join(problem.located(file) for problem in problems))


class InvalidDocument(UsageError):
    """{path} is not a valid {what}: {detail}."""


class MissingPath(UsageError):
    """{what} {path} does not exist; check the path."""


class UnknownRun(UsageError):
    """There is no run {run!r} in {repo}; `orc list` shows the runs."""


class AmbiguousRun(UsageError):
    """{run!r} is the start of several runs: {matches}; give more characters."""


class UnknownUnit(UsageError):
    """Run {run} has no step {unit!r}; it has: {known}."""


class RunExists(UsageError):
    """Run {run} exists already (it is {status}); continue it with `orc resume {run}` or choose another --run-id."""


class LoopExists(RunExists):
    """Loop {run} exists already (it is {status}); continue with `orc loop resume {run}`, or give another id."""


class Refused(UsageError):
    """{why}"""


class FromLaunch(Refused):
    """`{name}` for run {run} comes from inside the launch {launch}: agents may look at runs but not direct them; it was refused and journaled."""


class Unavailable(OrcError):
    """{detail}"""

    exit_code = 3


class AgentMissing(Unavailable):
    """The agent {agent} cannot be started: {why}."""


class NoSandbox(Unavailable):
    """There is no sandbox: {why}."""


class RunBusy(Unavailable):
    """Run {run} is already running in another process ({owner}); watch it with `orc watch {run}` or pause it with `orc pause {run}`."""


class StoreLocked(Unavailable):
    """The store {path} stayed locked by another process for {seconds} s; try again, or see `orc doctor`."""


class StoreCorrupt(Unavailable):
    """The store {path} is damaged ({detail}); run `orc doctor`, which checks it, before you move it aside or restore a copy."""


class StoreFailing(Unavailable):
    """The disk failed while the store {path} was read or written ({detail}); the store is left as it was: check the disk, then try again."""


class StoreUnwritable(Unavailable):
    """The store {path} cannot be written ({detail}); {way}."""


class StoreNewer(Unavailable):
    """The store {path} has schema version {found}, this program knows {known}; upgrade agent-orchestrator."""


class StoreVanished(Unavailable):
    """The store {path} was deleted or replaced while it was open; what it held was saved to {rescue}."""


class StoreAway(Unavailable):
    """The store at {place} is away ({detail}); check that its server runs and can be reached from here, then try again."""


class StoreRefused(Unavailable):
    """The store at {place} refused the connection ({detail}); {way}."""


class StoreUnprepared(Unavailable):
    """The database at {place} {why}; run `orc store {command}`."""


class DiskFull(Unavailable):
    """The disk that holds {path} is full; nothing was lost, free some space and `orc resume`."""


class Shortage(Unavailable):
    """{detail}"""


STORE_PASSES = (DiskFull, StoreAway, StoreLocked)
"""Refusals of a store that pass by themselves: nothing was written, and the same is tried again."""

SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT})
"""Errors that pass by themselves; any other error of the system would only happen again, and waiting for it would never end."""
_NO_ROOM = "No usable temporary directory"
"""Python says so where no folder for temporary files can be written: `/tmp` is full, most of the time."""
_SAID = ("Out of memory", "Cannot fork", *(os.strerror(number) for number in SHORTAGES))


def is_shortage(error: BaseException) -> bool:
    """Tell whether the machine was short of something (processes, descriptors, memory, disk, its store): that passes by itself."""
    if isinstance(error, OSError):
        return error.errno in SHORTAGES or (error.strerror or "").startswith(_NO_ROOM)
    return isinstance(error, (Shortage, *STORE_PASSES))


def says_shortage(text: str) -> bool:
    """Tell whether a program, asked to speak plainly (LC_ALL=C), says that the machine was short of something."""
    return any(said in text for said in _SAID)


class UnsupportedFilesystem(Unavailable):
    """The store {path} is on {kind}, where file locks cannot be trusted; keep the repository on a local disk."""


class GitFailed(Unavailable):
    """`git {command}` failed in {where}: {detail}."""


class EditsUnconfirmed(OrcError):
    """{text}"""

    exit_code = 4


class Conflict(OrcError):
    """Run {run} moved on to sequence {found} while {expected} was expected; another process wrote to it."""

    exit_code = 3


class Fenced(Conflict):
    """Run {run} is driven by another process now, and this one may not write to it any more; watch it with `orc watch {run}`."""
