"""Which errors pass by themselves: they are waited for, and never an attempt."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from agent_orchestrator.errors import DiskFull, Shortage, is_shortage

NO_ROOM = """
import resource, sys, tempfile
from agent_orchestrator.errors import is_shortage
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    tempfile.gettempdir()
except OSError as error:
    sys.exit(0 if is_shortage(error) else f"not taken for a shortage: {error!r}")
"""


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), DiskFull(path="orc.db"), Shortage(detail="no process")])
def test_a_shortage_is_known(error: Exception) -> None:
    assert is_shortage(error)


def test_what_would_only_happen_again_is_none() -> None:
    assert not is_shortage(FileNotFoundError(errno.ENOENT, "No such file or directory", "prompt.md"))


def test_no_folder_for_temporary_files_is_a_shortage() -> None:
    """By Python's own error, where no file may grow."""
    done = subprocess.run([sys.executable, "-c", NO_ROOM], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
