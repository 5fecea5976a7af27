"""The stages of the pages' examples: a home with a repository in which has happened what an example presumes.

A stage is built once, by running `orc`, and put back at the same place for every example.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance.phases_rig import WORKS
from tests.acceptance.rig import ROOT, wait_until
from tests.acceptance.stage_files import AGENT, BEAD_RECORD, BEADS, FILES, PARTS, PLAN, PROGRAMS, TASK, WORKFLOW
from tests.acceptance.team_rig import DEFAULTS
from tests.conftest import GIT_ENVIRONMENT

SEEDS = ROOT / "tests" / "seeds" / "data"
LOOP = "ralph-fix-tests-a1b2c3d4"
RUN = "f8c1a491"
PATIENCE_S = 240.0
"""When something hangs; a client on a busy machine takes its time."""


class Home:
    """A person's home folder with a repository in it, where the command is typed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.repo, self.bin = folder, folder / "repo", folder / "bin"
        self.names = {"RUN": RUN[:4], "<run_id>": RUN}
        """What stands for something else in an example, such as the id of a run."""
        self.more: dict[str, str] = {}
        """Of the environment, besides the way to the programs."""

    def furnish(self) -> None:
        """Programs, projects, and a repository with one commit."""
        (self.folder / ".config" / "fish" / "completions").mkdir(parents=True)
        for name, text in {"orc": _start("cli"), "aiwg": _start("surfaces.cli.loop.aiwg"), **PROGRAMS}.items():
            self.program(name, text)
        for name, text in PARTS.items():
            self.part(name, text)
        self.part("plan.json", json.dumps(PLAN))
        (self.folder / "beads.jsonl").write_text(FILES["beads.jsonl"])
        (self.folder / "two.jsonl").write_text(FILES["beads.jsonl"].replace("bd-201", "bd-101").replace("bd-202", "bd-abc"))
        for project in ("project", "projects/my-app", "repo"):
            (self.folder / project).mkdir(parents=True)
            self.git("init", "--quiet", "--initial-branch=main", cwd=self.folder / project)
            self.commit({name: FILES[name] for name in ("README.md", "Makefile")}, cwd=self.folder / project)

    def environment(self) -> dict[str, str]:
        """Nothing of ours but the way to the programs."""
        path = f"{self.bin}:/usr/local/bin:/usr/bin:/bin"
        own = {"HOME": str(self.folder), "PATH": path, "LANG": "C.UTF-8", "COLUMNS": "120", "TERM": "dumb"}
        # Not above HOME: there codex makes no helper for its sandbox, which then fails with a bubblewrap before 0.9.
        scratch = self.folder.parent / "tmp"
        scratch.mkdir(exist_ok=True)
        own["TMPDIR"] = str(scratch)
        return {**GIT_ENVIRONMENT, **own, **self.more}

    def program(self, name: str, text: str) -> None:
        """Puts a program on the PATH."""
        self.bin.mkdir(exist_ok=True)
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def part(self, name: str, text: str) -> None:
        """Set what `my-agent` does in a turn or a role."""
        (self.bin / "parts").mkdir(exist_ok=True)
        (self.bin / "parts" / name).write_text(text + "\n")

    def says(self, name: str, **report: Any) -> None:
        """`my-agent` only reports."""
        self.part(name, f"report <<'END'\n{json.dumps(report)}\nEND")

    def commit(self, files: dict[str, str], cwd: Path | None = None) -> None:
        """Commits files."""
        for name, text in files.items():
            path = (cwd or self.repo) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all", cwd=cwd)
        self.git("commit", "--quiet", "--allow-empty", "--message", "Files", cwd=cwd)

    def write(self, name: str, document: Any) -> None:
        """Writes a JSON file of the repository."""
        (self.repo / name).parent.mkdir(parents=True, exist_ok=True)
        (self.repo / name).write_text(json.dumps(document))

    def git(self, *arguments: str, cwd: Path | None = None) -> None:
        """Git as this person."""
        subprocess.run(["git", *arguments], cwd=cwd or self.repo, env=self.environment(), check=True, capture_output=True)

    def type(self, line: str) -> subprocess.Popen[str]:
        """Starts a line of shell in the repository."""
        for name, meant in self.names.items():
            line = line.replace(name, meant)
        return subprocess.Popen(
            ["bash", "-c", line],
            cwd=self.repo,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a test run in the background ignores it
        )

    def do(self, line: str, code: int = 0) -> str:
        """The same to its end, which has to be this one."""
        process = self.type(line)
        said, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == code, f"{line}\nexit code {process.returncode}, not {code}\n{said}"
        return said

    def hold(self, iteration: int | None = None) -> None:
        """From now on agents wait, in one iteration or in all."""
        (self.folder / ("hold" if iteration is None else f"hold.{iteration}")).touch()

    def let_go(self) -> None:
        """Agents go on."""
        for file in self.folder.glob("hold*"):
            file.unlink()

    def busy(self) -> list[int]:
        """Processes that work in here."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cwd").readlink().is_relative_to(self.folder):
                    found.append(int(entry.name))
            except OSError:
                continue
        return [pid for pid in found if pid != os.getpid()]


def _start(module: str) -> str:
    """Write a program that starts the `main` of a module, as an installed one does."""
    call = f"import sys; from agent_orchestrator.{module} import main; sys.exit(main())"
    return f'#!/bin/sh\nPYTHONPATH="{ROOT / "src"}" exec "{sys.executable}" -c "{call}" "$@"\n'


def bare(home: Home) -> None:
    """A repository with a README and a folder for documents."""
    home.commit({"docs/index.md": "# Documents\n"})


def workshop(home: Home) -> None:
    """A repository with a file of every kind that a run can start from."""
    home.commit({**FILES, "agent.sh": AGENT.replace("${0%/*}", "$HOME/bin")})
    (home.repo / "agent.sh").chmod(0o755)
    home.commit({})
    home.git("branch", "develop")


def configured(home: Home) -> None:
    """The same with a configuration that asks for something."""
    workshop(home)
    home.commit({".orc.toml": '[run]\ncheck = "make test"\nbudget = 5\n'})


def notified(home: Home) -> None:
    """A run that waits for a person, and whom that person's own file tells so."""
    waiting(home)
    file = home.folder / ".config" / "orc" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[[notify]]\nname = "desk"\nurl = "command:true"\n')


def tasked(home: Home) -> None:
    """The same with a user whose own file says who works."""
    workshop(home)
    file = home.folder / ".config" / "orc" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[run]\nagent = "mine"\n[agents.mine]\ncommand = ["my-agent"]\n')


def published(home: Home) -> None:
    """The same, with a remote on a server."""
    tasked(home)
    _remote(home)
    home.git("config", "remote.origin.url", "https://github.com/ada/thing.git")
    home.git("config", "remote.origin.pushurl", str(home.folder / "remote.git"))


def small(home: Home) -> None:
    """The same, with one thing to do in each file: clients take their time."""
    workshop(home)
    first, second = TASK.split("#### Task 1.2")[0], TASK.split("## Supervisor Checks")[1].replace("on demand", "after each task")
    home.commit(
        {
            "workflow.yaml": WORKFLOW[: WORKFLOW.index("  - {id: coding")],
            "asking.yaml": "name: asking\nsteps:\n  - {id: ask, agent: asker, prompt: prompt.md, human_in_the_loop: true}\n",
            "task.md": f"{first}## Supervisor Checks{second}",
            "beads.jsonl": json.dumps(BEADS[0]),
        }
    )
    (home.folder / "beads.jsonl").write_text(json.dumps(BEADS[0]))


def scripts(home: Home) -> None:
    """The same with the scripts of a swarm."""
    small(home)
    home.do("orc swarm init")


def waiting(home: Home) -> None:
    """A run that waits for a person."""
    workshop(home)
    home.do(f"orc run --workflow workflow.yaml --wrapper wrapper.py --run-id {RUN} --no-wait", 4)


def approved(home: Home) -> None:
    """The same run after the answer; nobody drives it."""
    waiting(home)
    home.do(f"orc approve {RUN}")


def finished(home: Home) -> None:
    """The same run, completed."""
    approved(home)
    home.do(f"orc resume {RUN}")


def apart(home: Home) -> None:
    """A completed run on a branch of its own, in a repository with a remote, and a `gh` that opens pull requests."""
    workshop(home)
    home.commit({"one.yaml": "name: one\nsteps: [{id: coding, agent: coder, prompt: prompt.md, check: 'test -e made.txt'}]\n"})
    home.do(f"orc run --workflow one.yaml --agent-command 'touch made.txt' --run-id {RUN} --git-worktree")
    _remote(home)


def _remote(home: Home) -> None:
    home.git("init", "--quiet", "--bare", str(home.folder / "remote.git"))
    home.git("remote", "add", "origin", str(home.folder / "remote.git"))
    made = '{"html_url": "https://github.com/ada/thing/pull/1", "state": "open"}'
    home.program("gh", f"#!/bin/sh\ncase \"$*\" in *POST*) cat >/dev/null; echo '{made}';; *) echo '[]';; esac\n")


def lost(home: Home) -> None:
    """Its state file, without its journal."""
    finished(home)
    shutil.rmtree(home.repo / ".git" / "orc")


def spent(home: Home) -> None:
    """A run that has spent its budget."""
    workshop(home)
    (home.folder / "dear.yaml").write_text("- step: code\n  cost_usd: 6\n- step: '*'\n")
    home.do(f"orc run --workflow workflow.yaml --rehearse ~/dear.yaml --budget-usd 5 --run-id {RUN}", 5)


def looped(home: Home) -> None:
    """A loop that was paused in its third iteration."""
    workshop(home)
    home.part("work", 'echo "iteration $ITERATION" >>notes.txt; [ "$ITERATION" -lt 4 ] || touch fixed.txt')
    home.hold(3)
    looping = home.type(LOOP_RUN)
    wait_until(lambda: (home.folder / "at-work.3").exists() or looping.poll() is not None)
    home.do("orc loop pause")
    home.let_go()
    said, _ = looping.communicate(timeout=PATIENCE_S)
    assert looping.returncode == 130, said


def phased(home: Home) -> None:
    """Phases that wait for a person because task 2.1 failed."""
    workshop(home)
    home.part("task-executor", f'if [ "$STEP_ID" = 2.1 ]; then exit 1; fi\n{WORKS}')
    home.do(f"orc phases run task.md --agent-command my-agent --allow-unmetered --yes --run-id {RUN} --no-wait", 4)
    home.part("task-executor", WORKS)


def asked(home: Home) -> None:
    """A team whose project manager has a question."""
    workshop(home)
    home.says("plan", status="NEEDS_CLARIFICATION", questions=["How long do tokens live?"])
    _team(home)
    home.part("plan", DEFAULTS["plan"])


def answered(home: Home) -> None:
    """The same team after the answer; nobody drives it."""
    asked(home)
    home.do("orc team answer 'an hour'")


def stuck(home: Home) -> None:
    """A team whose group A waits for a person: its developer failed too often."""
    workshop(home)
    home.part("develop", "exit 1")
    _team(home)
    home.part("develop", PARTS["develop"])


def _team(home: Home) -> None:
    said = home.do("orc team run 'JWT login' --agent-command my-agent --no-check --no-wait", 4)
    home.names["v4_20250106_100000"] = said.split()[1]


def beads(home: Home) -> None:
    """A swarm whose beads are done, on branches of their own."""
    workshop(home)
    home.names["8c1f0a2b"] = home.do(SWARM_RUN).split()[1]
    _remote(home)


def failed_bead(home: Home) -> None:
    """A swarm in which a bead failed."""
    workshop(home)
    home.part("work", "exit 1")
    home.names["8c1f0a2b"] = home.do(f"{SWARM_RUN} --max-retries 1", 1).split()[1]
    home.part("work", PARTS["work"])


def foreign(home: Home) -> None:
    """State of other tools."""
    workshop(home)
    run = {"run_id": RUN, "workflow_name": "example", "created_at": "2025-01-15T14:30:00Z", "steps": {}}
    loop = json.loads((SEEDS / "loop_state_example.json").read_text())
    home.write(f".agents/runs/{RUN}/run_state.json", run)
    home.write(f".aiwg/ralph/loops/{LOOP}/state.json", loop)
    for name in ("pm_state", "group_status", "orchestrator_state"):
        home.write(f"coordination/{name}.json", json.loads((SEEDS / f"team_{name}_example.json").read_text()))
    home.write("state/runs/bd-7.json", BEAD_RECORD)


def foreign_phases(home: Home) -> None:
    """Phases of another tool, in a tree that is clean otherwise."""
    workshop(home)
    home.write(".claude/agent-state.json", json.loads((SEEDS / "agent_state_example.json").read_text()))


LOOP_RUN = f"orc loop run 'fix the failing tests' --until 'pytest -q' --agent-command my-agent --loop-id {LOOP}"
SWARM_RUN = "orc swarm run $HOME/two.jsonl --agent-command my-agent --max-agents 2 --branch swarm"
_MADE = (
    *(bare, workshop, configured, tasked, published, small, scripts, foreign, foreign_phases),
    *(waiting, notified, approved, finished, apart, lost, spent),
    *(looped, phased, asked, answered, stuck, beads, failed_bead),
)
STAGES: dict[str, Callable[[Home], None]] = {stage.__name__: stage for stage in _MADE}


class Stages:
    """The stages of one session of tests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._homes: dict[str, Home] = {}

    def home(self, stage: str) -> Home:
        """The home of a stage, as it was when it was built."""
        kept, folder = self._folder / stage / "kept", self._folder / stage / "home"
        if stage not in self._homes:
            folder.mkdir(parents=True)
            made = Home(folder)
            made.furnish()
            STAGES[stage](made)
            wait_until(lambda: not made.busy(), PATIENCE_S)
            shutil.copytree(folder, kept, symlinks=True)
            self._homes[stage] = made
        else:
            shutil.rmtree(folder)
            shutil.copytree(kept, folder, symlinks=True)
        return self._homes[stage]
