"""The intrusions that only a wall stops, tried behind each wall: none of them has any effect."""

from __future__ import annotations

import fcntl
import json
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_orchestrator.core.sandbox import Wall
from agent_orchestrator.engine.process.cgroups import own_cgroup
from tests.acceptance.rig import ROOT, Rig, wait_until
from tests.acceptance.test_intruders import AGENT, LISTED, UNSEEN, VERBS, WAYS, WORKFLOW, tries_of
from tests.stores import IS_SHARED
from tests.walls import WALLS, need

BARE_ORPHAN = """
import os, subprocess, sys
if os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
os.setsid()
done = subprocess.run(sys.argv[1:], env={}, close_fds=True, start_new_session=True, capture_output=True)
os._exit(done.returncode)
"""

NETWORK = """
import json, os, socket, sys, urllib.request
said = {}
for name, url in json.loads(sys.argv[1]).items():
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": url[1]} if url[1] else {}))
    try:
        said[name] = opener.open(url[0], timeout=10).read().decode()
    except OSError as error:
        said[name] = type(error).__name__
try:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))
    said["datagram"] = "sent"
except OSError as error:
    said["datagram"] = type(error).__name__
json.dump(said, open("said.json", "w"))
json.dump({"status": "COMPLETED"}, open(os.environ["REPORT_PATH"], "w"))
"""


@pytest.fixture(params=WALLS)
def wall(request: pytest.FixtureRequest) -> Wall:
    return need(request.param)


def commit_all(rig: Rig) -> None:
    subprocess.run(["git", "-C", str(rig.repo), "add", "-A"], check=True)
    subprocess.run(["git", "-C", str(rig.repo), "commit", "-qm", "begin"], check=True)


def listed_tries(rig: Rig, run: str, driver: int, server: Path) -> dict[str, list[str]]:
    """The intrusions that the pages leave to a wall, by the names that they have there."""
    store, runs = rig.repo / ".git" / "orc", rig.repo / ".agents" / "runs"
    orc = [sys.executable, "-m", "agent_orchestrator.cli"]
    approve = ["env", f"PYTHONPATH={ROOT}/src", *orc, "approve", run, "asks", "--repo", str(rig.repo)]
    (rig.side / "bare.py").write_text(BARE_ORPHAN)

    def write(text: str, file: str) -> list[str]:
        return ["sh", "-c", f"printf %s {shlex.quote(text)} > {file}"]

    return {
        "a forged sender in the inbox": [sys.executable, str(rig.side / "sql.py"), str(rig.repo), run],
        "a forged answer in the store": write('{"approved": true}', f"$(echo {store}/launches/{run}/asks~*)/answer.json"),
        "an edited state file": write("{}", str(runs / run / "run_state.json")),
        "tmux or at": ["tmux", "-S", str(server), "new-session", "-d", shlex.join(["touch", str(rig.repo / "by-tmux")])],
        "every mark taken off": [sys.executable, str(rig.side / "bare.py"), *approve],
        "signals to the driver": ["kill", "-9", str(driver)],
        "the gate file": write('{"open": ["asks"]}', str(rig.repo.parent / "gates.json")),
        "a forged end": ["touch", *(f"{folder}/exit.0" for folder in (store / "launches" / run).glob("asks~*.human"))],
        "a link in the place of a folder of ours": ["mv", str(runs / run), str(runs / f"{run}.moved")],
        "a program in `.git/config`, a hook, an attribute": write("evil", str(rig.repo / ".git" / "hooks" / "post-checkout")),
        "a file elsewhere": write("evil", str(rig.repo.parent / "elsewhere")),
    }


@contextmanager
def tmux_server(rig: Rig) -> Iterator[Path]:
    """Start a tmux server of the user's; yields its socket."""
    server = rig.repo.parent / "tmux.sock"
    subprocess.run(["tmux", "-S", str(server), "new-session", "-d", "sleep 600"], check=True, env={"PATH": "/usr/bin:/bin"})
    try:
        yield server
    finally:
        subprocess.run(["tmux", "-S", str(server), "kill-server"], check=False)


def test_behind_a_wall_no_intruder_reaches_anything(rig: Rig, wall: Wall) -> None:
    # Behind bubblewrap these find a temporary folder of their own, which nobody else sees.
    own = {"tmux or at", "the gate file", "a file elsewhere"}
    with tmux_server(rig) as server:
        check_contained(rig, server, own, wall, "--sandbox-write", str(rig.side))


def check_contained(rig: Rig, server: Path, own: set[str], *wall: str) -> None:
    """Let an intruder try everything behind a wall; `own` are the tries that may succeed in places of its own."""
    rig.workflow(WORKFLOW)
    (rig.side / "agent.py").write_text(AGENT)
    commit_all(rig)
    command = shlex.join([sys.executable, str(rig.side / "agent.py"), str(rig.side)])
    running = rig.start(
        *("run", "--workflow", "workflow.yaml", "--run-id", "guarded", "--max-parallel", "2", "--agent-command", command),
        *("--pass-env", "PYTHONPATH", "--git-worktree", "--sandbox", *wall),
    )
    running.wait_for("orc approve")
    wait_until(lambda: any((rig.repo / ".git" / "orc" / "launches" / "guarded").glob("asks~*.human")))
    state = rig.repo / ".agents" / "runs" / "guarded" / "run_state.json"
    listed = listed_tries(rig, "guarded", running.process.pid, server)
    assert set(LISTED) <= set(listed)
    (rig.side / "tries.json").write_text(json.dumps(listed | tries_of(rig, "guarded")))
    rig.open("asked")
    log = rig.side / "done.jsonl"
    names = [*listed, *WAYS, *UNSEEN, *VERBS]
    wait_until(lambda: log.exists() and len(log.read_text().splitlines()) == len(names))
    tried = {one["try"]: one for one in map(json.loads, log.read_text().splitlines())}
    assert {name for name in names if tried[name]["code"] == 0} <= own, tried
    assert running.process.poll() is None
    assert json.loads(state.read_text())["steps"]["asks"]["status"] == "WAITING_ON_HUMAN"
    assert not (rig.repo / "by-tmux").exists()
    assert not [name for name in ("gates.json", "elsewhere") if (rig.repo.parent / name).exists()]
    assert not (rig.repo / ".git" / "hooks" / "post-checkout").exists()
    assert not list((rig.repo / ".git" / "orc" / "launches").glob("guarded/asks~*.human/exit.0"))
    assert not list((rig.repo / ".git" / "orc" / "launches").glob("*/*/answer.json"))
    # A server is reached over the network, which the wall leaves open: there they are refused.
    assert IS_SHARED or "refused" not in rig.ask("history", "guarded").out, "none of them even reached the store"
    assert rig.ask("approve", "guarded").code == 0
    assert running.end().code == 0


LEAVER = """
import fcntl, json, os, subprocess, sys
side, elsewhere, bare = sys.argv[1:]
lock = open(side + "/left", "a")
fcntl.flock(lock, fcntl.LOCK_EX)
left = [sys.executable, side + "/left.py", side, elsewhere]
quiet = {name: subprocess.DEVNULL for name in ("stdin", "stdout", "stderr")}
subprocess.Popen(left, env={} if bare else None, pass_fds=(lock.fileno(),), start_new_session=True, cwd=side, **quiet)
with open(os.environ["REPORT_PATH"], "w") as file:
    json.dump({"status": "COMPLETED"}, file)
"""
LEFT = """
import os, sys, time
side, elsewhere = sys.argv[1:]
while not os.path.exists(side + "/ended"):
    time.sleep(0.01)
try:
    open(elsewhere, "w").close()
    said = "written"
except OSError as error:
    said = "refused"
with open(side + "/said.new", "w") as file:
    file.write(said)
os.rename(side + "/said.new", side + "/said")
"""


def leave_behind(rig: Rig, *wall: str, bare: bool) -> str:
    """Run an agent that leaves a process; return what came of it: ended with the launch, or what it could write afterwards."""
    (rig.side / "leaver.py").write_text(LEAVER)
    (rig.side / "left.py").write_text(LEFT)
    rig.workflow("name: one\nsteps:\n  - {id: work, agent: a, prompt: prompt.md}\n")
    commit_all(rig)
    words = [
        sys.executable,
        str(rig.side / "leaver.py"),
        str(rig.side),
        str(rig.repo.parent / "elsewhere"),
        "yes" if bare else "",
    ]
    run = ("run", "--workflow", "workflow.yaml", "--run-id", "leaves", "--git-worktree", "--agent-command", shlex.join(words))
    done = rig.orc(*run, "--sandbox", *wall)
    assert done.code == 0, done
    (rig.side / "ended").touch()
    with (rig.side / "left").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # It had it as long as it lived.
    said = rig.side / "said"
    assert not (rig.repo.parent / "elsewhere").exists() or said.read_text() == "written"
    return said.read_text() if said.exists() else "ended"


@pytest.mark.parametrize("bare", [False, True], ids=["marked", "bare"])
def test_a_process_that_is_left_behind_ends_or_reaches_nothing(rig: Rig, wall: Wall, bare: bool) -> None:
    came = leave_behind(rig, wall, "--sandbox-write", str(rig.side), bare=bare)
    assert came == ("refused" if bare and wall is Wall.LANDLOCK and not own_cgroup() else "ended")


@pytest.mark.parametrize("bare", [False, True], ids=["marked", "bare"])
def test_without_a_wall_a_process_that_took_off_its_mark_is_found_in_a_cgroup_or_lives_on(rig: Rig, bare: bool) -> None:
    assert leave_behind(rig, "none", bare=bare) == ("written" if bare and not own_cgroup() else "ended")


def test_the_page_says_which_wall_stands_in_which_case(rig: Rig) -> None:
    page = Path(ROOT, "docs", "sandbox.md").read_text("utf-8")
    part = page.partition("## Which wall stands in which case")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in part.splitlines() if line.startswith("| ")]
    assert rows[0][1:] == ["no sandbox", *WALLS, "a container"]
    told = {row[0]: row[1:] for row in rows[1:]}
    tried = {*WAYS, *UNSEEN, *listed_tries(rig, "run", 1, rig.side)}
    missing = {name for name in tried if not any(name in row for row in told)}
    assert not missing
    assert all(cell.startswith("stands") for cells in told.values() for cell in cells[1:]), told


class Answers(BaseHTTPRequestHandler):
    """Says which way a request came: straight, or as a proxy gets it."""

    def do_GET(self) -> None:
        text = b"through the proxy" if self.path.startswith("http://") else b"straight"
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *values: object) -> None:  # noqa: A002 - the name of the parent's
        """Say nothing."""


@pytest.fixture
def servers() -> Iterator[tuple[int, int]]:
    """Two servers on loopback: the second is the proxy."""
    made = [ThreadingHTTPServer(("127.0.0.1", 0), Answers) for _ in range(2)]
    for one in made:
        threading.Thread(target=one.serve_forever, daemon=True).start()
    yield made[0].server_port, made[1].server_port
    for one in made:
        one.shutdown()
        one.server_close()


@pytest.mark.parametrize(
    ("network", "straight", "proxied", "datagram"),
    [
        ("on", "straight", "through the proxy", "sent"),
        ("off", "URLError", "URLError", None),
        ("agents", "straight", "through the proxy", "sent"),
        ("proxy", "URLError", "through the proxy", "PermissionError"),
    ],
)
def test_the_network_is_open_as_far_as_it_was_said(
    rig: Rig, wall: Wall, servers: tuple[int, int], network: str, straight: str, proxied: str, datagram: str | None
) -> None:
    direct, proxy = (f"http://127.0.0.1:{port}" for port in servers)
    asked = {"straight": (direct, ""), "proxied": (direct, proxy)}
    look = f"import urllib.request as u; u.build_opener(u.ProxyHandler({{}})).open('{direct}', timeout=10)"
    check = f"if {sys.executable} -c {shlex.quote(look)}; then echo yes > reached; else echo no > reached; fi 2>/dev/null"
    rig.workflow(f"name: one\nsteps:\n  - {{id: work, agent: a, prompt: prompt.md, check: {json.dumps(check)}}}\n")
    (rig.side / "agent.py").write_text(NETWORK)
    (rig.repo / ".gitignore").write_text("reached\n")
    commit_all(rig)
    done = rig.orc(
        *("run", "--workflow", "workflow.yaml", "--run-id", "net", "--git-worktree", "--sandbox", wall),
        *("--sandbox-read", str(rig.side), "--sandbox-network", proxy if network == "proxy" else network),
        *("--agent-command", shlex.join([sys.executable, str(rig.side / "agent.py"), json.dumps(asked)])),
    )
    assert done.code == 0, done
    tree = rig.repo / ".agents" / "worktrees" / "net"
    said = json.loads((tree / "said.json").read_text())
    assert (said["straight"], said["proxied"]) == (straight, proxied)
    assert datagram is None or said["datagram"] == datagram
    assert (tree / "reached").read_text() == ("yes\n" if network == "on" else "no\n")


def test_in_the_repositorys_own_checkout_git_and_the_journal_stay_out_of_reach(rig: Rig) -> None:
    need(Wall.BWRAP)
    rig.workflow("name: one\nsteps:\n  - {id: work, agent: a, prompt: prompt.md}\n")
    script = (
        "cat >/dev/null; echo x > new.txt; echo x > .git/config; echo x > .agents/x; ls .git/orc/orc.db; echo '{}' > $REPORT_PATH"
    )
    (rig.side / "agent.sh").write_text(f"#!/bin/sh\n{script.replace('{}', json.dumps({'status': 'COMPLETED'}))}\n")
    (rig.side / "agent.sh").chmod(0o755)
    config = (rig.repo / ".git" / "config").read_bytes()
    words = ("run", "--workflow", "workflow.yaml", "--run-id", "own", "--agent-command", str(rig.side / "agent.sh"))
    done = rig.orc(*words, "--sandbox", "bwrap", "--sandbox-read", str(rig.side))
    assert done.code == 0, done
    assert (rig.repo / "new.txt").read_text() == "x\n"
    assert (rig.repo / ".git" / "config").read_bytes() == config
    assert not (rig.repo / ".agents" / "x").exists()
    assert "orc.db" not in rig.ask("logs", "own", "work", "--raw").out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--yolo",), 2, "add --sandbox, or --sandbox none"),
        (("--sandbox-write", "."), 2, "--sandbox-write needs --sandbox"),
        (("--sandbox", "wall"), 2, "auto, bwrap, landlock, none"),
        (("--sandbox", "--sandbox-network", "maybe"), 2, "on, agents, off, or the URL of a proxy"),
        (("--sandbox", "--sandbox-write", "/no/such"), 2, "/no/such"),
        (("--sandbox", "no-such-program run"), 3, "no-such-program was not found"),
        (("--sandbox", "podman run IMAGE", "--sandbox-network", "off"), 2, "a command of your own"),
    ],
)
def test_a_wall_that_cannot_be_had_is_refused_before_anything_starts(
    rig: Rig, words: tuple[str, ...], code: int, said: str
) -> None:
    done = rig.ask_run(*words)
    assert (done.code, said in done.err) == (code, True), done
    assert not rig.launches()


def test_a_command_of_the_users_own_encloses_every_program(rig: Rig) -> None:
    check = 'test -n "$INSIDE" && test -d "$TREE" && test -d "$REPO/.git" && test -d "$MADE" && cp "$ENV" variables'
    rig.workflow(f"name: one\nsteps:\n  - {{id: work, agent: a, prompt: prompt.md, check: {json.dumps(check)}}}\n")
    wall = "env INSIDE={name} TREE={tree} REPO={repo} MADE={artifacts} ENV={env}"
    done = rig.run("--run-id", "own", "--sandbox", wall, "--pass-env", "SECRET_KEY", env={"SECRET_KEY": "xyzzy-xyzzy-xyzzy"})
    assert done.code == 0, done
    listed = (rig.repo / "variables").read_text()
    assert {"SECRET_KEY", "STEP_ID", "PATH"} <= set(listed.splitlines())
    assert "xyzzy" not in listed


def test_the_configured_wall_counts_and_a_clone_cannot_take_it_down(rig: Rig) -> None:
    need(Wall.BWRAP)
    home = rig.side / "home"
    (home / ".config" / "orc").mkdir(parents=True)
    (home / ".config" / "orc" / "config.toml").write_text("[run]\nsandbox = 'bwrap'\nsandbox_network = 'agents'\n")
    env = {"ORC_TRUSTED_PATHS": "", "HOME": str(home), "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": ""}
    (rig.repo / ".orc.toml").write_text("[run]\nsandbox = 'none'\n")
    rig.workflow('name: one\nsteps:\n  - {id: work, agent: a, prompt: prompt.md, check: "test $ORC_WALL = bwrap"}\n')
    refused = rig.run("--run-id", "own", env=env)
    assert refused.code == 2, refused
    assert ".orc.toml:2: run.sandbox is a weaker wall than your own file asks for" in refused.err
    (rig.repo / ".orc.toml").write_text("[run]\nsandbox_network = 'off'\n")
    done = rig.run("--run-id", "own", "--sandbox-write", str(rig.side), env=env)
    assert done.code == 0, done
    assert rig.ask("show", "own", "--json").json["sandbox"] == {"wall": "bwrap", "network": "off", "write": [str(rig.side)]}
