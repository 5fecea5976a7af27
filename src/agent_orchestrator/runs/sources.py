"""Reads the files that runs are made of: workflow files, task documents."""

from __future__ import annotations

import stat
from pathlib import Path

from agent_orchestrator.errors import InvalidSpec, MissingPath, Problem, UsageError


def read_source(file: Path, what: str, limit_bytes: int) -> str:
    """Return a file's text, or raise the sentence that says why there is none; `what` begins it."""
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):  # Reading a pipe may never end.
            raise UsageError(detail=f"{what} {file} is not a regular file; write it to one.")
        if found.st_size > limit_bytes:
            raise UsageError(detail=f"{what} {file} is larger than {limit_bytes} bytes; split it.")
        return file.read_text("utf-8-sig")
    except FileNotFoundError:
        raise MissingPath(what=what, path=file) from None
    except (IsADirectoryError, PermissionError, NotADirectoryError) as error:
        raise UsageError(detail=f"{what} {file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InvalidSpec(str(file), [Problem(f"the file is not UTF-8 text: {error.reason}")]) from None
