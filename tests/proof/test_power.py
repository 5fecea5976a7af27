"""Power cuts on rebuilt disks: what was not synced is lost, and what our git made and the journal may name is not."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from proof.rebuilt import Tape
from tests.faults.git_work import OPERATIONS, run
from tests.faults.preload import build_library, find_compiler

pytestmark = pytest.mark.skipif(
    find_compiler() is None or sys.platform != "linux", reason="there is no C compiler, or no preload"
)
NOW = random.Random(0)


def record(folder: Path, *command: str, cwd: Path) -> Tape:
    """Run a program, and return what it did to the files."""
    library = build_library(folder / "library", "recorder")
    tape, log = Tape(folder / "kept", cwd), folder / "log"
    env = {**os.environ, "LD_PRELOAD": str(library), "RECORD_LOG": str(log), "RECORD_KEEP": str(folder / "kept")}
    subprocess.run(command, cwd=cwd, env=env, check=True)
    tape.load(log)
    return tape


def test_what_was_not_synced_is_gone_after_a_cut_and_what_was_is_not(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    script = (
        "import os\n"
        "safe, lost = open('safe', 'wb', 0), open('lost', 'wb', 0)\n"
        "safe.write(b'one'); lost.write(b'two'); os.fsync(safe.fileno()); safe.write(b' more')\n"
        "os.rename('lost', 'late')"
    )
    tape = record(tmp_path, sys.executable, "-S", "-c", script, cwd=home)
    assert tape.seen(len(tape.changes), home / "late") == "two"
    tape.cut(len(tape.changes), home, NOW, 0.0)
    assert {path.name: path.read_bytes() for path in home.iterdir()} == {"safe": b"one", "lost": b""}


@pytest.mark.parametrize("name", ["save and commit", "land without a checkout"])
def test_a_commit_that_our_git_made_is_whole_after_a_power_cut(tmp_path: Path, name: str) -> None:
    repo = tmp_path / "repo"
    OPERATIONS[name].prepare(repo)
    play = (
        "import sys; from pathlib import Path; from tests.faults.git_work import OPERATIONS; "
        "from agent_orchestrator.git.environment import GitEnvironment, use_environment; "
        "import os; use_environment(GitEnvironment(variables=dict(os.environ))); "
        "OPERATIONS[sys.argv[1]].perform(Path(sys.argv[2])); os.fsync(os.open(sys.argv[2], os.O_RDONLY))"  # as the journal does
    )
    tape = record(tmp_path, sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; {play}", name, str(repo), cwd=repo)
    before = run(repo, "for-each-ref", "--format=%(objectname)")
    tape.cut(len(tape.changes), repo, NOW, 0.0, (".git/objects/", ".git/refs/", ".git/packed-refs", ".git/HEAD"))
    assert run(repo, "for-each-ref", "--format=%(objectname)") == before
    run(repo, "fsck", "--full", "--strict")
