"""A container as the wall: the command line of the page, run by a real podman on a root made of this machine's own programs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.rig import ROOT, Rig, wait_until
from tests.acceptance.test_intruders import UNSEEN, VERBS, WAYS
from tests.acceptance.test_sandbox import check_contained, commit_all, leave_behind, listed_tries, tmux_server

WORKFLOW = """
name: contained
steps:
  - {id: code, agent: coder, prompt: prompt.md, check: "test -e /run/.containerenv && cat made"}
"""
AGENT = """#!/bin/sh
trap 'exit 143' TERM
test -e /run/.containerenv || exit 3
ls "$1/.git/orc" "$1/prompt.md" "$HOME/.ssh" 2>/dev/null && exit 4
echo "$STEP_ID" >made
echo "$HANDSHAKE" >"${REPORT_PATH%/*}/handshake"
if test "$2" = wait; then
  touch waiting
  sleep 600 &
  wait
fi
echo '{"status": "COMPLETED"}' >"$REPORT_PATH"
"""
MOUNTS = "-v {tree}:{tree} -v {launch}:{launch} -v {artifacts}:{artifacts} -w {tree}"
RUNTIMES = ("crun", "runc")
LIMITS = "--ulimit nofile=1024:1024 --ulimit nproc=1024:1024"
"""Those of the machine are higher than some containers may set."""


class Podman:
    """A podman with folders of its own."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        for name in ("dev", "etc", "proc", "run", "sys", "tmp", "usr"):
            (self.root / name).mkdir(parents=True)
        for name in ("bin", "lib", "lib64", "sbin"):
            (self.root / name).symlink_to(f"usr/{name}")
        self._words = f"podman --root {folder}/store --runroot {folder}/run --storage-driver vfs --cgroup-manager cgroupfs"
        self.fault = ""
        self.runtime = next((name for name in RUNTIMES if shutil.which(name) and self._runs(name)), None)

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run any of its commands."""
        return subprocess.run([*self._words.split(), *words], capture_output=True, text=True, timeout=120, check=False)

    def wall(self, more: str = "") -> str:
        """Return the command line that encloses a launch."""
        run = f"{self._words} --runtime {self.runtime} run --rm -i --network=host {LIMITS} --name {{name}} --env-file {{env}}"
        return f"{run} -v /usr:/usr:ro {MOUNTS} {more} --rootfs {self.root}"

    def _runs(self, runtime: str) -> bool:
        options = ["--rm", "--network=host", *LIMITS.split(), "-v", "/usr:/usr:ro", "--rootfs", str(self.root)]
        tried = self.call("--runtime", runtime, "run", *options, "true")
        self.fault = tried.stderr.strip()
        return tried.returncode == 0


@pytest.fixture
def podman() -> Iterator[Podman]:
    if shutil.which("podman") is None or sys.platform != "linux":
        pytest.skip("podman is not installed")
    folder = Path(tempfile.mkdtemp(prefix="orc-"))  # short: the paths of its sockets are limited
    try:
        found = Podman(folder)
        if found.runtime is None:
            pytest.skip(f"podman runs no container here: {found.fault}")
        yield found
        found.call("rm", "--all", "--force", "--time", "0")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_words(rig: Rig, podman: Podman, *agent: str) -> tuple[str, ...]:
    """Return the words of a run whose agent and check stand in containers."""
    rig.workflow(WORKFLOW)
    (rig.side / "agent.sh").write_text(AGENT)
    (rig.side / "agent.sh").chmod(0o755)
    commit_all(rig)
    command = " ".join([str(rig.side / "agent.sh"), str(rig.repo), *agent])
    wall = podman.wall(f"-v {rig.side}/agent.sh:{rig.side}/agent.sh:ro")
    words = ("run", "--workflow", "workflow.yaml", "--run-id", "contained", "--agent-command", command, "--git-worktree")
    return (*words, "--pass-env", "HANDSHAKE", "--max-attempts", "1", "--sandbox", wall)


def test_an_agent_and_its_check_work_in_containers_that_see_the_tree_and_nothing_else(rig: Rig, podman: Podman) -> None:
    done = rig.orc(*run_words(rig, podman), env={"HANDSHAKE": "hunter22-hunter22"})
    assert done.code == 0, done
    folder = next((rig.repo / ".git" / "orc" / "launches" / "contained").glob("code~*.agent"))
    assert (folder / "handshake").read_text() == "hunter22-hunter22\n"
    texts = [file.read_text("utf-8", "replace") for file in folder.iterdir() if file.is_file() and file.name != "handshake"]
    assert not [text for text in texts if "hunter22" in text], "the names of variables are written down, and no values"
    (check,) = (rig.repo / ".git" / "orc" / "launches" / "contained").glob("code~*.check")
    assert (check / "out").read_text() == "code\n"
    assert json.loads(podman.call("ps", "--all", "--format", "json").stdout or "[]") == []


def test_a_pause_leaves_no_container_behind(rig: Rig, podman: Podman) -> None:
    running = rig.start(*run_words(rig, podman, "wait"))
    wait_until(lambda: list((rig.repo / ".agents" / "worktrees").glob("*/waiting")))
    assert json.loads(podman.call("ps", "--format", "json").stdout)
    assert rig.ask("pause", "contained", "--now").code == 0
    assert running.end().code == 130
    wait_until(lambda: json.loads(podman.call("ps", "--all", "--format", "json").stdout or "[]") == [])


def python_wall(rig: Rig, podman: Podman) -> str:
    """Return a wall behind which this Python runs, with the package and the folder of the tests."""
    places = dict.fromkeys((ROOT, Path(sys.prefix), Path(sys.base_prefix)))
    shown = [place for place in places if not place.is_relative_to("/usr")]
    return podman.wall(" ".join([*(f"-v {place}:{place}:ro" for place in shown), f"-v {rig.side}:{rig.side}"]))


def test_no_intruder_in_a_container_reaches_anything(rig: Rig, podman: Podman) -> None:
    # What they find at the paths of the machine is the container's own.
    own = {*WAYS, *UNSEEN, *VERBS, *listed_tries(rig, "guarded", 1, rig.side)}
    with tmux_server(rig) as server:
        check_contained(rig, server, own, python_wall(rig, podman))


@pytest.mark.parametrize("bare", [False, True], ids=["marked", "bare"])
def test_a_process_that_is_left_behind_in_a_container_ends_with_it(rig: Rig, podman: Podman, bare: bool) -> None:
    assert leave_behind(rig, python_wall(rig, podman), bare=bare) == "ended"


def test_the_page_has_the_command_line_that_is_tried_here() -> None:
    page = Path(ROOT, "docs", "sandbox.md").read_text("utf-8")
    assert MOUNTS in page
    assert "--name {name} --env-file {env}" in page
