"""The settings of a repository's file that need the user's word: programs, permissions, and more money than the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_orchestrator.config import Settings
from agent_orchestrator.config.defaults import load_configuration, read_configuration
from agent_orchestrator.config.trust import is_trusted, trust, withdraw
from agent_orchestrator.errors import UsageError


def settings_in(tmp_path: Path, repo: str, user: str = "", **environ: str) -> Settings:
    home = tmp_path / "repo"
    home.mkdir(exist_ok=True)
    (home / ".orc.toml").write_text(repo)
    (tmp_path / ".config" / "orc").mkdir(parents=True, exist_ok=True)
    (tmp_path / ".config" / "orc" / "config.toml").write_text(user)
    return Settings(home=home, folder=home / "store", environ={"HOME": str(tmp_path), **environ})


FREE = """
publish = false
[run]
agent = "claude:opus"
budget = 5
day_budget = "$20"
worktree = false
roles = { reviewer = "codex", coder = "mine" }
models = { codex = "gpt-5" }
[agents.claude]
model = "opus"
max_turns = 3
pass_credentials = false
[agents.reviewer]
adapter = "claude"
[budget]
step_time = "1h"
"""


@pytest.mark.parametrize("user", ["", "[run]\nbudget = 5\n[budget]\nstep_time = '2h'\n"])
def test_what_starts_and_permits_nothing_needs_no_word(user: str, tmp_path: Path) -> None:
    settings = settings_in(tmp_path, FREE, user)
    assert read_configuration(settings).guarded == ()
    assert load_configuration(settings).run.agent == "claude:opus"


@pytest.mark.parametrize(
    ("repo", "user"),
    [
        ("[run]\ncheck = 'make'", ""),
        ("[run]\nworkflow = 'w.yaml'", ""),
        ("[run]\npublish = true", ""),
        ("publish = true", ""),
        ("[run.notify]\non_end = 'x'", ""),
        ("[run.permissions]\nmode = 'plan'", ""),
        ("[run.permissions]\nallow_tools = ['Bash']", ""),
        ("[run]\nagent = 'shell'", ""),
        ("[run]\nroles = { qa = './qa.sh --fast' }", ""),
        ("[run]\nroles = { qa = 'scripted:play.yaml' }", ""),
        ("[run]\nbudget = 6", "[run]\nbudget = 5"),
        ("[run]\nbudget = '$6'", "[budget]\nrun_usd = 5"),
        ("[budget]\nstep_time = '2h'", "[budget]\nstep_time = '90m'"),
        ("[budget]\nallow_unmetered = true", ""),
        ("[agents.claude]\nbinary = './claude'", ""),
        ("[agents.claude]\nargs = ['--yolo']", ""),
        ("[agents.claude]\nenv = { A = 'b' }", ""),
        ("[agents.claude]\npass_env = ['AWS_SECRET_ACCESS_KEY']", ""),
        ("[agents.claude]\npermission_mode = 'bypassPermissions'", ""),
        ("[agents.claude]\nallowed_tools = ['Bash']", ""),
        ("[agents.claude]\nmcp_config = 'x.json'", ""),
        ("[agents.claude]\nprices.default = { input = 0, output = 0 }", ""),
        ("[agents.x]\ncommand = ['x']", ""),
        ("[agents.x]\nadapter = 'shell'", ""),
    ],
)
def test_what_starts_or_permits_something_counts_after_the_users_word_for_these_values(
    repo: str, user: str, tmp_path: Path
) -> None:
    settings = settings_in(tmp_path, repo, user)
    line = repo.count("\n") + 1
    with pytest.raises(UsageError, match=rf"\.orc\.toml:{line}: .*nobody has agreed.*orc config trust"):
        load_configuration(settings)
    trust(settings, read_configuration(settings).guarded)
    load_configuration(settings)
    other = settings_in(tmp_path, "[agents.claude]\nargs = ['--other']", user)
    with pytest.raises(UsageError, match="nobody has agreed"):
        load_configuration(other)
    settings_in(tmp_path, f"# Moved by a comment.\n{repo}", user)
    load_configuration(settings)
    assert withdraw(settings) == 1
    with pytest.raises(UsageError, match="nobody has agreed"):
        load_configuration(settings)


def test_the_users_own_file_and_variables_need_no_word(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "", "[run]\ncheck = 'make'\n[agents.x]\ncommand = ['x']", ORC_WORKFLOW="w.yaml")
    assert load_configuration(settings).run.check == "make"


def test_another_repository_with_the_same_file_needs_a_word_of_its_own(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "[run]\ncheck = 'make'")
    trust(settings, read_configuration(settings).guarded)
    other = Settings(home=settings.home, folder=tmp_path / "elsewhere", environ=settings.environ)
    assert not is_trusted(other, read_configuration(other).guarded)


def test_folders_can_be_trusted_whole_by_a_variable(tmp_path: Path) -> None:
    text = "[run]\ncheck = 'make'"
    load_configuration(settings_in(tmp_path, text, ORC_TRUSTED_PATHS=f"/nowhere:{tmp_path}"))
    with pytest.raises(UsageError, match="nobody has agreed"):
        load_configuration(settings_in(tmp_path, text, ORC_TRUSTED_PATHS=f"/nowhere:{tmp_path}/rep"))


@pytest.mark.parametrize(
    ("user", "repo", "free"),
    [
        ("", "sandbox = 'bwrap'", True),
        ("", "sandbox = 'auto'", True),
        ("", "sandbox = 'none'", True),
        ("", "sandbox = 'podman run IMAGE'", False),
        ("sandbox = 'bwrap'", "sandbox = 'auto'", False),
        ("sandbox = 'auto'", "sandbox = 'landlock'", False),
        ("sandbox = 'auto'", "sandbox = 'bwrap'", True),
        ("sandbox = 'landlock'", "sandbox = 'bwrap'", True),
        ("sandbox = 'landlock'", "sandbox = 'none'", False),
        ("sandbox = 'podman run IMAGE'", "sandbox = 'bwrap'", False),
        ("sandbox = 'podman run IMAGE'", "sandbox = 'podman run IMAGE'", True),
        ("", "sandbox_network = 'off'", True),
        ("sandbox_network = 'agents'", "sandbox_network = 'off'", True),
        ("sandbox_network = 'off'", "sandbox_network = 'agents'", False),
        ("", "sandbox_network = 'http://127.0.0.1:1'", False),
        ("sandbox_network = 'http://127.0.0.1:1'", "sandbox_network = 'agents'", False),
        ("sandbox_network = 'http://127.0.0.1:1'", "sandbox_network = 'off'", True),
        ("", "sandbox_write = ['~/.cache']", False),
        ("sandbox_write = ['~/.cache', '/srv']", "sandbox_write = ['/srv']", True),
        ("sandbox_read = ['~/.npmrc']", "sandbox_read = ['~/.ssh']", False),
        ("", "yolo = true", False),
        ("yolo = true", "yolo = true", True),
        ("yolo = true", "yolo = false", True),
    ],
)
def test_a_repository_may_make_the_wall_stronger_and_not_weaker(user: str, repo: str, free: bool, tmp_path: Path) -> None:
    settings = settings_in(tmp_path, f"[run]\n{repo}\n", f"[run]\n{user}\n")
    assert (read_configuration(settings).guarded == ()) is free
