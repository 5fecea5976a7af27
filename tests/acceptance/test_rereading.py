"""Settings of agents are read again when a run goes on: said, journaled, and used by the next launch, in every mode."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from agent_orchestrator.core.events import ToolRefused
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.surfaces.cli.phrases import say_event
from tests.acceptance.loop_rig import LoopRig
from tests.acceptance.phases_rig import PhasesRig
from tests.acceptance.rig import Rig, wait_until
from tests.acceptance.swarm_rig import SwarmRig
from tests.acceptance.team_rig import TeamRig

FLOW = "name: flow\nsteps:\n  - {id: one, agent: worker, prompt: prompt.md}\n"
ALLOW = "--allow-tool 'Bash(pytest:*)'"
HANGS = '#!/bin/sh\necho $$ >"${0%/*}/hangs"\nexec sleep 100\n'


class Config:
    """The configuration of the user, in which the agent `tiny` hangs until it is mended."""

    def __init__(self, folder: Path, rig: Rig) -> None:
        self.file, self.rig = folder / "orc" / "config.toml", rig
        self.file.parent.mkdir(parents=True)
        self.hanging = rig.side / "hanging.sh"
        self.hanging.write_text(HANGS)
        self.hanging.chmod(0o755)
        self.write(self.hanging)

    def write(self, program: Path, more: str = "") -> None:
        self.file.write_text(f"[agents.tiny]\ncommand = [{json.dumps(str(program))}]\n{more}")

    def wait(self) -> int:
        """The process of the agent that hangs."""
        mark = self.rig.side / "hangs"
        wait_until(lambda: mark.exists() and mark.read_text().strip())
        return int(mark.read_text())


def _workflow(repo: Path) -> tuple[Rig, tuple[str, ...]]:
    rig = Rig(repo)
    rig.workflow(FLOW)
    (rig.side / "agent.sh").write_text("#!/bin/sh\ncat >/dev/null\ntouch done\n")
    (rig.side / "agent.sh").chmod(0o755)
    return rig, ("run", "--workflow", "workflow.yaml")


def _loop(repo: Path) -> tuple[Rig, tuple[str, ...]]:
    rig = LoopRig(repo)
    rig.do("touch done")
    return rig, ("loop", "run", "make it so", "--until", "test -f done")


def _team(repo: Path) -> tuple[Rig, tuple[str, ...]]:
    rig = TeamRig(repo)
    rig.git("-c", "user.name=ada", "-c", "user.email=ada@localhost", "commit", "--quiet", "--allow-empty", "-m", "begin")
    rig.plan({"id": "A", "name": "one", "tasks": ["T1"], "files_affected": ["a.py"], "branch_name": "feature/a"})
    return rig, ("team", "run", "One thing", "--check", "true")


def _swarm(repo: Path) -> tuple[Rig, tuple[str, ...]]:
    rig = SwarmRig(repo)
    rig.do("echo made >made.txt")
    rig.beads({"id": "bd-1", "prompt": "do it"})
    return rig, ("swarm", "run", str(rig.side / "beads.jsonl"), "--max-agents", "1")


def _phases(repo: Path) -> tuple[Rig, tuple[str, ...]]:
    return PhasesRig(repo), ("phases", "run", "task.md", "--yes")


MODES = [_workflow, _loop, _team, _swarm, _phases]


def agent_of(rig: Rig) -> Path:
    """The program that does the work."""
    return rig.side / "agent.sh"


def only_run(rig: Rig) -> str:
    (run,) = rig.orc("list", "--json").json["runs"]
    return str(run["run_id"])


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.__name__.strip("_"))
def test_a_resumed_run_uses_the_settings_of_now(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Callable[[Path], tuple[Rig, tuple[str, ...]]]
) -> None:
    rig, arguments = mode(repo)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    config = Config(tmp_path / "config", rig)
    started = rig.start(*arguments, "--agent", "tiny")
    config.wait()
    run = only_run(rig)
    assert rig.orc("pause", run, "--now").code == 0
    started.end()
    config.write(agent_of(rig))
    done = rig.orc("resume", run)
    assert done.code == 0, done
    said = f"agent tiny: command [{config.hanging}] → [{agent_of(rig)}]"
    assert said in done.err
    assert said in rig.orc("history", run).out
    assert done.err.count("agent tiny:") == 1


def test_a_killed_run_goes_on_with_the_settings_of_now_and_what_lives_keeps_its_own(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig, arguments = _workflow(repo)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    config = Config(tmp_path / "config", rig)
    started = rig.start(*arguments, "--agent", "tiny")
    agent = config.wait()
    started.signal(signal.SIGKILL)
    started.end()
    config.write(agent_of(rig))
    run = only_run(rig)
    again = rig.start("resume", run)
    again.wait_for(f"run {run}")
    wait_until(lambda: "settings of agents changed" in rig.orc("history", run).out)
    os.kill(agent, 0)
    assert not (rig.repo / "done").exists()
    os.kill(agent, signal.SIGTERM)
    assert again.end().code == 0
    assert (rig.repo / "done").exists()


def test_settings_with_a_fault_leave_the_run_alone_and_a_secret_is_not_written_down(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig, arguments = _workflow(repo)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    config = Config(tmp_path / "config", rig)
    started = rig.start(*arguments, "--agent", "tiny")
    config.wait()
    run = only_run(rig)
    rig.orc("pause", run, "--now")
    started.end()
    before = rig.orc("history", run).out
    config.write(agent_of(rig), "comand = 1\n")
    refused = rig.orc("resume", run)
    assert (refused.code, refused.err.count("\n")) == (2, 1), refused
    assert "unknown key comand" in refused.err
    assert rig.orc("history", run).out == before
    config.write(agent_of(rig), 'env = {API_KEY = "very-secret-value"}\n')
    done = rig.orc("resume", run)
    assert done.code == 0, done
    assert "agent tiny: env changed and was not taken: it looks like a secret" in done.err
    stored = b"".join(path.read_bytes() for path in (repo / ".git" / "orc").glob("orc.db*"))
    assert b"very-secret-value" not in stored


def test_an_agent_that_is_gone_from_the_configuration_goes_on_as_it_was(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig, arguments = _workflow(repo)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    config = Config(tmp_path / "config", rig)
    started = rig.start(*arguments, "--agent", "tiny")
    config.wait()
    run = only_run(rig)
    rig.orc("pause", run, "--now")
    started.end()
    config.hanging.write_text(agent_of(rig).read_text())
    config.file.write_text("")
    done = rig.orc("resume", run)
    assert done.code == 0, done
    assert "agent tiny is no longer in the configuration; it continues as it was" in done.err


def test_a_tool_is_allowed_when_a_run_goes_on(repo: Path) -> None:
    rig, arguments = _workflow(repo)
    fake = rig.side / "claude"
    fake.write_text('#!/bin/sh\necho "$*" >>"${0%/*}/words"\nexit 1\n')
    fake.chmod(0o755)
    (repo / ".orc.toml").write_text(f'[agents.claude]\nbinary = "{fake}"\n')
    assert rig.orc(*arguments, "--agent", "claude", "--max-attempts", "1", "--run-id", "tools").code == 1
    again = rig.orc("resume", "tools", "--allow-tool", "Bash(pytest:*)")
    assert "agent claude: allowed_tools [] → [Bash(pytest:*)]" in again.err, again
    first, second = (rig.side / "words").read_text().splitlines()
    assert ("Bash(pytest:*)" in first, "Bash(pytest:*)" in second) == (False, True)
    refused = rig.orc("resume", "tools", "--permission-mode", "sideways")
    assert (refused.code, refused.err.count("\n")) == (2, 1), refused


REFUSED = """\
#!/bin/sh
echo "$*" >>"${0%/*}/words"
if [ -e "${0%/*}/hangs" ]; then exec sleep 100; fi
exit 1
"""


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.__name__.strip("_"))
def test_the_command_that_a_refused_tool_is_told_with_works_in_every_mode(
    repo: Path, mode: Callable[[Path], tuple[Rig, tuple[str, ...]]]
) -> None:
    rig, arguments = mode(repo)
    fake, words = rig.side / "claude", rig.side / "words"
    fake.write_text(REFUSED)
    fake.chmod(0o755)
    config = repo / ".git" / "info" / "exclude"
    config.write_text(config.read_text() + "/.orc.toml\n" if config.exists() else "/.orc.toml\n")
    (repo / ".orc.toml").write_text(f'[agents.claude]\nbinary = "{fake}"\n')
    (rig.side / "hangs").touch()
    started = rig.start(*arguments, "--agent", "claude")
    wait_until(lambda: words.exists() and words.read_text())
    run = only_run(rig)
    event = ToolRefused(effect=EffectId(f"{run}/one/i0.a1.l1.agent"), unit="one", agent="claude", tool="Bash", allow=ALLOW)
    advice = shlex.split(say_event("workflow", event).words.partition("to allow it: orc ")[2])
    assert advice[:2] == ["resume", run]
    told = rig.orc(*advice)
    assert told.code == 0, told
    assert "agent claude: allowed_tools [] → [Bash(pytest:*)]" in told.err
    rig.orc("pause", run, "--now")
    started.end()
    words.unlink()
    again = rig.start(*advice[:2], "--allow-tool", "Bash(make:*)", "--permission-mode", "plan")
    wait_until(lambda: words.exists() and words.read_text())
    rig.orc("abort", run)
    assert "allowed_tools [Bash(pytest:*)] → [Bash(pytest:*), Bash(make:*)]" in again.end().err
    launched = words.read_text().splitlines()
    assert all("Bash(pytest:*)" in line and "Bash(make:*)" in line and "plan" in line for line in launched)


def test_agents_of_a_successor_may_do_more(repo: Path) -> None:
    fake = LoopRig(repo).side / "claude"
    fake.write_text(REFUSED)
    fake.chmod(0o755)
    rig, arguments = _loop(repo)
    (repo / ".orc.toml").write_text(f'[agents.claude]\nbinary = "{fake}"\n')
    assert rig.orc(*arguments, "--agent", "claude", "--max-iterations", "1").code != 0
    run = only_run(rig)
    for command in (("loop", "resume"), ("resume",)):
        again = rig.orc(*command, run, "--max-iterations", "9", "--allow-tool", "Bash(make:*)")
        assert "continues its work" in again.err, again
        assert "Bash(make:*)" in (rig.side / "words").read_text().splitlines()[-1]
        (run,) = [one["run_id"] for one in rig.orc("list", "--json").json["runs"] if one["run_id"] in again.out]
        (rig.side / "words").unlink()


def _says(file: Path, text: str) -> bool:
    return text in file.read_text()


def test_beads_that_are_tried_again_may_do_more_also_behind(repo: Path) -> None:
    rig = SwarmRig(repo)
    fake, words = rig.side / "claude", rig.side / "words"
    fake.write_text(REFUSED)
    fake.chmod(0o755)
    (repo / ".orc.toml").write_text(f'[agents.claude]\nbinary = "{fake}"\n')
    assert rig.orc("swarm", "dispatch", "bd-1", ".", "claude", "do it", "--max-retries", "1").code != 0
    commands = (("swarm", "retry", "bd-1"), ("resume", "bd-1"), ("swarm", "retry", "bd-1", "--detach"))
    for number, command in enumerate(commands, 2):
        told = rig.orc(*command, "--allow-tool", f"Bash(make {number}:*)")
        assert f"Bash(make {number}:*)]" in told.err, told
        rule = f"Bash(make {number}:*)"
        wait_until(partial(_says, words, rule))
        assert rule in words.read_text().splitlines()[-1]
        wait_until(lambda: rig.orc("list", "--json").json["runs"][0]["status"] == "failed")
