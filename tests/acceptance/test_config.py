"""The configuration as a user has it: defaults for every mode, their origins, their faults, and the word that some need."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema_rs
import pytest

from tests.acceptance.loop_rig import LoopRig
from tests.acceptance.phases_rig import PhasesRig
from tests.acceptance.rig import Result, Rig
from tests.acceptance.swarm_rig import SwarmRig
from tests.acceptance.team_rig import TeamRig
from tests.scenarios.team_world import REQUIREMENTS, group


def wary(rig: Rig, **more: str) -> dict[str, str]:
    """An environment of a user who trusts no folder, with a home of its own."""
    home = rig.side / "home"
    home.mkdir(exist_ok=True)
    return {"ORC_TRUSTED_PATHS": "", "HOME": str(home), "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": "", **more}


def configure(rig: Rig, text: str, user: str = "") -> None:
    (rig.repo / ".orc.toml").write_text(text)
    folder = rig.side / "home" / ".config" / "orc"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(user)


def origins(shown: Result) -> dict[str, str]:
    """Return the place that each setting comes from, as it is printed."""
    rows = [line.split(maxsplit=2) for line in shown.out.splitlines()[1:]]
    return {row[0]: row[1] for row in rows}


def test_a_flag_wins_over_a_variable_over_the_repository_over_the_user(rig: Rig) -> None:
    user = '[run]\nagent = "gemini"\nbudget = 9\nday_budget = 50\n[run.models]\ncodex = "gpt-5"\n'
    configure(rig, '[run]\n\nagent = "codex"\nbudget = 5\n', user)
    shown = rig.orc("config", "show", env=wary(rig, COLUMNS="140"))
    assert shown.code == 0, shown
    found = origins(shown)
    assert found["run.agent"] == found["run.budget"].replace(":4", ":3") == ".orc.toml:3"
    assert found["run.day_budget"] == "~/.config/orc/config.toml:4"
    assert found["agents.codex.model"] == "~/.config/orc/config.toml:6"
    assert found["run.check"] == "default"
    over = rig.orc("config", "show", "--json", env=wary(rig, ORC_AGENT="opencode", ORC_MODELS="codex=gpt-6"))
    settings = {one["key"]: one for one in over.json["settings"]}
    assert settings["run.agent"] == {
        "key": "run.agent",
        "value": "opencode",
        "from": "variable",
        "variable": "ORC_AGENT",
        "trusted": True,
    }
    assert settings["agents.codex.model"]["value"] == "gpt-6"
    assert settings["run.budget"] | {"file": ""} == {
        "key": "run.budget",
        "value": 5,
        "from": "file",
        "file": "",
        "line": 4,
        "trusted": True,
    }


def test_every_fault_is_listed_with_its_line_and_a_run_is_refused_with_them(rig: Rig) -> None:
    configure(rig, '[run]\nagnet = "x"\nagent = "cluade"\n[agents.claude]\nmodle = "y"\n', "[run]\nworktree = 3\n")
    checked = rig.orc("config", "check", env=wary(rig, ORC_BUDGET="lots", ORC_AGNT="x"))
    assert checked.code == 2, checked
    repo, user = rig.repo / ".orc.toml", rig.side / "home" / ".config" / "orc" / "config.toml"
    assert checked.out.splitlines() == [
        f"{repo}:2: [run]: unknown key agnet; did you mean agent?",
        f"{repo}:3: run.agent: there is no agent 'cluade'; did you mean claude?",
        f"{repo}:5: [agents.claude]: unknown key modle; did you mean model?",
        f"{user}:2: run.worktree is 3: it must be true or false.",
        "ORC_AGNT is no variable of orc; did you mean ORC_AGENT?",
        "ORC_BUDGET is 'lots': it must be a positive amount such as 20 or $20.",
    ]
    facts = rig.orc("config", "check", "--json", env=wary(rig)).json
    assert not facts["valid"]
    assert {"line": 5, "key": "agents.claude.modle", "suggestion": "model"}.items() <= facts["faults"][2].items()
    refused = rig.run(env=wary(rig))
    assert refused.code == 2
    assert f"{user}:2: run.worktree is 3" in refused.err
    configure(rig, "[run]\nagent = 'claude'\n")
    fine = rig.orc("config", "check", env=wary(rig))
    assert (fine.code, fine.out.startswith("The configuration is valid: ")) == (0, True)


def test_the_schema_accepts_what_is_valid_and_refuses_what_is_not(rig: Rig) -> None:
    import tomllib

    schema = jsonschema_rs.validator_for(rig.orc("schema", "config").json)
    fine = (
        "[run]\nagent = 'claude'\nbudget = 5\nroles = {qa = 'codex'}\n[run.notify]\non_end = 'x'\n[agents.x]\ncommand = ['x']\n"
    )
    assert schema.is_valid(tomllib.loads(fine))
    for wrong in ("[run]\nagnet = 'x'", "[run]\nworktree = 'no'", "[agents.x]\nmodle = 'x'", "rum = 1"):
        assert not schema.is_valid(tomllib.loads(wrong)), wrong


def test_a_cloned_file_starts_no_program_before_its_user_agrees(rig: Rig) -> None:
    agent = rig.side / "evil.sh"
    agent.write_text(f"#!/bin/sh\ntouch {rig.side}/evil\n")
    agent.chmod(0o755)
    configure(
        rig, f'[run]\nagent = "mine"\n[run.notify]\non_end = "touch {rig.side}/told"\n[agents.mine]\ncommand = ["{agent}"]\n'
    )
    env = wary(rig)
    refused = rig.orc("run", "--workflow", "workflow.yaml", env=env)
    assert refused.code == 2, refused
    file = rig.repo / ".orc.toml"
    assert f"{file}:4: run.notify.on_end names a program to start (and agents.mine.command), and nobody" in refused.err
    assert "read the file, then run `orc config trust`" in refused.err
    assert not (rig.side / "evil").exists()
    assert rig.orc("list", "--json", env=env).json["runs"] == []
    assert "(not trusted)" in rig.orc("config", "show", env={**env, "COLUMNS": "140"}).out
    agreed = rig.orc("config", "trust", env=env)
    assert agreed.code == 0, agreed
    assert "agents.mine.command" in agreed.out
    rig.orc("run", "--workflow", "workflow.yaml", env=env)
    assert (rig.side / "evil").exists()
    assert (rig.side / "told").exists()
    file.write_text(file.read_text().replace("told", "other"))
    assert rig.orc("run", "--workflow", "workflow.yaml", env=env).code == 2
    assert rig.orc("config", "trust", "--revoke", env=env).out == f"{file} is not trusted any more.\n"
    for looking in ("list", "status", "doctor"):
        assert rig.orc(looking, env=env).code == 0, looking


def test_an_agent_cannot_agree_for_its_user(rig: Rig) -> None:
    configure(rig, "[run]\nagent = 'claude'\n")
    agent = rig.side / "sly.sh"
    file = rig.repo / ".orc.toml"
    agent.write_text(
        f"#!/bin/sh\n[ $STEP_ID = planning ] || exit 0\nprintf '[agents.claude]\\nargs = [\"--yolo\"]\\n' >>{file}\n"
        f"{' '.join(rig.command)} config trust --repo {rig.repo} >{rig.side}/said 2>&1\necho $? >>{rig.side}/said\n"
    )
    agent.chmod(0o755)
    env = wary(rig)
    done = rig.orc("run", "--workflow", "workflow.yaml", "--agent-command", str(agent), env=env)
    said = (rig.side / "said").read_text()
    assert "comes from inside the launch" in said
    assert said.endswith("2\n"), (said, done)
    again = rig.orc("resume", done.run, env=env)
    assert again.code == 2, again
    assert ".orc.toml:4: agents.claude.args names a program to start, and nobody has agreed to that" in again.err


CONFIG = """
[run]
agent = "mine"
check = "{check}"
[run.notify]
on_end = "echo $RUN_STATUS >>{side}/ends"
[agents.mine]
command = ["{agent}"]
"""


def config_of(rig: Rig, agent: Path, check: str) -> None:
    (rig.repo / ".orc.toml").write_text(CONFIG.format(side=rig.side, agent=agent, check=check))


def test_a_workflow_takes_agent_roles_worktree_and_notification_from_the_configuration(rig: Rig) -> None:
    agent = rig.side / "agent.sh"
    agent.write_text(f'#!/bin/sh\necho $STEP_ID $PWD >>{rig.side}/who\necho \'{{"status": "COMPLETED"}}\' >$REPORT_PATH\n')
    agent.chmod(0o755)
    config_of(rig, agent, "true")
    file = rig.repo / ".orc.toml"
    file.write_text(
        file.read_text().replace("[run]\n", '[run]\nworktree = true\nroles = { reviewer = "true", unplayed = "codex" }\n')
    )
    done = rig.orc("run", "--workflow", "workflow.yaml", "--run-id", "r1")
    assert done.code == 2
    assert "There is no agent 'true'" in done.err
    file.write_text(file.read_text().replace('"true", unplayed', '"mine", unplayed'))
    done = rig.orc("run", "--workflow", "workflow.yaml", "--run-id", "r1")
    assert done.code == 0, done
    where = rig.repo / ".agents" / "worktrees" / "r1"
    assert (rig.side / "who").read_text().splitlines() == [f"{step} {where}" for step in ("planning", "coding", "code_review")]
    assert (rig.side / "ends").read_text() == "completed\n"
    assert rig.orc("run", "--workflow", "workflow.yaml", "--no-git-worktree", "--on-end", "true").code == 0
    assert (rig.side / "who").read_text().splitlines()[-1] == f"code_review {rig.repo}"
    assert (rig.side / "ends").read_text() == "completed\n"


def test_a_loop_takes_agent_and_check_from_the_configuration(repo: Path) -> None:
    rig = LoopRig(repo)
    rig.do("touch done", 2)
    config_of(rig, rig.agent, "test -f done")
    done = rig.orc("loop", "run", "make it so")
    assert done.code == 0, done
    assert len(rig.launches()) == 2
    assert (rig.side / "ends").read_text() == "completed\n"


def test_a_phased_run_takes_its_agent_from_the_configuration(repo: Path) -> None:
    rig = PhasesRig(repo)
    config_of(rig, rig.agent, "false")
    done = rig.orc("phases", "run", "task.md", "--allow-unmetered", "--yes")
    assert done.code == 0, done
    assert rig.started()
    assert (rig.side / "ends").read_text() == "completed\n"


def test_a_team_takes_agent_and_check_from_the_configuration(repo: Path) -> None:
    rig = TeamRig(repo)
    rig.plan(group("A", files=("a.py",), tasks=["T1"]))
    config_of(rig, rig.program, "echo x >>../../../../side/checked")
    done = rig.orc("team", "run", REQUIREMENTS, "--json")
    assert done.code == 0, done
    assert (rig.side / "ends").read_text() == "completed\n"
    shown = rig.orc("show", done.json["run_id"], "--json")
    assert "side/checked" in json.dumps(shown.json)


def test_beads_take_agent_and_check_from_the_configuration(repo: Path) -> None:
    rig = SwarmRig(repo)
    rig.do("touch done", attempt=None)
    config_of(rig, rig.agent, "test -f done")
    file = rig.beads({"id": "bd-1", "prompt": "fix it"})
    done = rig.orc("swarm", "run", file, "--max-agents", "1")
    assert done.code == 0, done
    assert (rig.side / "ends").read_text() == "completed\n"
    (repo / "done").unlink()
    rig.do("true")
    rig.beads({"id": "bd-2", "prompt": "fix it"})
    assert rig.orc("swarm", "run", file, "--max-agents", "1").code == 1


def test_a_budget_of_the_configuration_stops_a_run_and_a_variable_changes_it(rig: Rig) -> None:
    configure(rig, "[run]\nbudget = '$0.01'\nday_budget = 7\n")
    run = ("run", "--workflow", "workflow.yaml", "--rehearse", "play.yaml", "--no-wait")
    (rig.repo / "play.yaml").write_text("- step: planning\n  cost_usd: 0.02\n")
    first = rig.orc(*run, "--run-id", "poor")
    assert first.code == 5, first
    limits = rig.orc("show", "poor", "--json").json["budget"]["limits"]
    assert (limits["run"], limits["day"]) == ({"cost_usd": 0.01}, {"cost_usd": 7.0})
    assert rig.orc(*run, "--shared-tree", "--run-id", "rich", env={"ORC_BUDGET": "3"}).code == 0
    assert rig.orc(*run, "--shared-tree", "--run-id", "flag", "--budget-usd", "2", env={"ORC_BUDGET": "0.01"}).code == 0


@pytest.mark.parametrize("words", [("config",), ("config", "--help")])
def test_the_group_says_what_wins_over_what(rig: Rig, words: tuple[str, ...]) -> None:
    said = rig.ask(*words)
    assert said.code == 0
    assert "A flag wins over an ORC_ variable" in said.out


def test_a_secret_in_the_configuration_is_not_shown(rig: Rig) -> None:
    configure(rig, "", '[agents.claude]\nenv = { MY_TOKEN = "abcdefghijkl", LEVEL = "3" }\n')
    shown = rig.orc("config", "show", env=wary(rig, COLUMNS="160"))
    assert "abcdefghijkl" not in shown.out
    assert '"LEVEL": "3"' in shown.out


def test_a_worktree_shares_the_word_that_was_given_for_its_repository(rig: Rig) -> None:
    configure(rig, "[run]\ncheck = 'true'\n")
    subprocess.run(["git", "add", ".orc.toml"], cwd=rig.repo, check=True)
    subprocess.run(["git", "commit", "-qm", "configured"], cwd=rig.repo, check=True)
    subprocess.run(["git", "worktree", "add", "-q", "../tree"], cwd=rig.repo, check=True)
    env = wary(rig)
    assert not rig.orc("config", "check", "--json", env=env, cwd=rig.repo.parent / "tree").json["trusted"]
    rig.orc("config", "trust", env=env)
    assert rig.orc("config", "check", "--json", env=env, cwd=rig.repo.parent / "tree").json["trusted"]
