"""`[agents.NAME]` of the configuration files: strict, merged key by key, and followed by the adapters."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.agents import find_agent
from agent_orchestrator.agents.adapter import Agent, AgentTask, Invocation
from agent_orchestrator.agents.options import AgentSettings, Price, read_settings, resolve_agent
from agent_orchestrator.config import Settings, config_files
from agent_orchestrator.config.defaults import load_agents
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.errors import AgentMissing, UsageError
from agent_orchestrator.runs.choices import check_agent
from agent_orchestrator.testing.agents import make_ending, make_task


def settings_in(tmp_path: Path, repo: str = "", user: str = "") -> Settings:
    home, users = tmp_path / "repo", tmp_path / "user"
    (users / "orc").mkdir(parents=True)
    home.mkdir()
    if repo:
        (home / ".orc.toml").write_text(repo)
    if user:
        (users / "orc" / "config.toml").write_text(user)
    return Settings(
        home=home, folder=home, environ={"XDG_CONFIG_HOME": str(users), "HOME": "/nowhere", "ORC_TRUSTED_PATHS": str(home)}
    )


def adapter(name: str) -> Agent:
    agent = find_agent(name)
    assert not hasattr(agent, "act")
    return agent


def plan(task: AgentTask) -> Invocation:
    return adapter(task.effect.agent.performer).plan(task)


def asked_of(task: AgentTask) -> str:
    return adapter(task.effect.agent.performer).ask_for_report(task)


def test_the_repository_wins_over_the_user_key_by_key(tmp_path: Path) -> None:
    user = '[agents.claude]\nmodel = "opus"\nmax_turns = 5\n'
    settings = settings_in(tmp_path, "[agents.claude]\nmax_turns = 9\n", user)
    assert load_agents(settings) == {"claude": AgentSettings(model="opus", max_turns=9)}


def test_without_files_there_is_nothing(tmp_path: Path) -> None:
    assert load_agents(settings_in(tmp_path)) == {}
    assert len(config_files(settings_in(tmp_path / "more"))) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agent = 1", r"\.orc\.toml:1: unknown key agent; did you mean agents\?"),
        ("[agents.claude]\nmax_turn = 3", r"\.orc\.toml:2: \[agents\.claude\]: unknown key max_turn; did you mean max_turns\?"),
        ("[agents.claude]\nmax_turns = 'x'", r"\[agents\.claude\]: max_turns: Expected `int \| null`, got `str`"),
        (
            "[agents.x]\nprompt_mode = 'fax'",
            r"\[agents\.x\]: prompt_mode: Invalid enum value 'fax' .*; there are stdin, argv, file",
        ),
        ("[agents.x]\nusage = { inputs = 'a' }", r"usage: Invalid enum value 'inputs' .*; there are input, output, cache_read"),
        ("[agents.x]\nusage = { input = 3 }", r"usage: Expected `str`, got `int` - at `\$\.usage\[\.\.\.\]`\.\Z"),
        ("[agents.x.prices.default]\ninput = 1", r"\[agents\.x\]: prices: Object missing required field `output`"),
        ("[agents.x.prices.default]\ninput = nan\noutput = 1", r"prices\.default\.input is nan"),
        ("[agents.x.prices.default]\ninput = -1\noutput = 1", r"prices\.default\.input is -1"),
        ("agents = 3", r"agents must be a table"),
        ("[agents", r"is not TOML"),
    ],
)
def test_a_mistake_is_told_with_its_file_and_key(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        load_agents(settings_in(tmp_path, text))


def test_a_setting_that_the_agent_cannot_follow_is_refused() -> None:
    with pytest.raises(UsageError, match="The agent codex has no setting max_turns"):
        adapter("codex").preflight(AgentChoice(name="codex", options={"max_turns": 3}))
    with pytest.raises(UsageError, match="The agent codex has no setting command; it understands account"):
        adapter("codex").preflight(AgentChoice(name="codex", options={"argv": ["true"]}))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (AgentSettings(model="m"), r"\[agents\.x\] has no `command` and no `adapter`: nobody knows what to start"),
        (AgentSettings(adapter="nope"), r"\[agents\.x\]: adapter is nope; it must be one of claude, codex"),
        (AgentSettings(adapter="x"), r"\[agents\.x\]: adapter is x; it must be one of claude, codex"),
    ],
)
def test_an_agent_of_the_configuration_that_nobody_can_play_is_told_as_such(settings: AgentSettings, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        resolve_agent(AgentChoice(name="x"), {"x": settings})


def test_a_client_given_by_a_relative_path_is_looked_for_where_it_will_work(tmp_path: Path) -> None:
    choice = AgentChoice(name="claude", options={"binary": "tools/claude"})
    with pytest.raises(AgentMissing, match=f"tools/claude cannot be started: there is no such file in {tmp_path}"):
        check_agent(choice, tmp_path)
    client = tmp_path / "tools" / "claude"
    client.parent.mkdir()
    client.write_text("#!/bin/sh\n")
    with pytest.raises(AgentMissing, match="it is not executable"):
        check_agent(choice, tmp_path)
    client.chmod(0o755)
    check_agent(choice, tmp_path)


def test_a_program_that_is_not_there_is_told_before_a_run_exists(tmp_path: Path) -> None:
    with pytest.raises(AgentMissing, match="no-such-claude is not an executable file"):
        adapter("claude").preflight(AgentChoice(name="claude", options={"binary": str(tmp_path / "no-such-claude")}))


def test_an_agent_may_be_another_one_with_other_settings() -> None:
    agents = {
        "claude": AgentSettings(binary="/bin/claude", max_turns=3),
        "careful": AgentSettings(adapter="claude", permission_mode="plan", model="opus"),
    }
    choice = resolve_agent(AgentChoice(name="careful"), agents)
    assert (choice.performer, choice.model) == ("claude", "opus")
    assert choice.options == {"binary": "/bin/claude", "max_turns": 3, "permission_mode": "plan"}
    assert resolve_agent(AgentChoice(name="careful", model="haiku"), agents).model == "haiku"
    assert resolve_agent(AgentChoice(name="gemini"), agents) == AgentChoice(name="gemini", configured={})
    with pytest.raises(UsageError, match=r"There is no agent 'nobody'; there are: claude, .*, careful\."):
        resolve_agent(AgentChoice(name="nobody"), agents)


def test_claude_is_started_with_its_settings(tmp_path: Path) -> None:
    options = {
        "permission_mode": "plan", "allowed_tools": ["Bash", "Read"], "add_dirs": ["/data"], "mcp_config": "mcp.json",
        "system_prompt": "Be brief.", "max_turns": 7, "args": ["--debug"], "env": {"A": "1", "GIVEN": "lost"},
    }  # fmt: skip
    task = make_task(tmp_path, AgentChoice(name="claude", model="opus", options=options))
    task = msgspec.structs.replace(task, inherited_env={"CLAUDECODE": "1", "CLAUDE_CODE_MAX_RETRIES": "4", "PATH": "/bin"})
    made = plan(task)
    words = " ".join(made.argv)
    for said in (
        "--permission-mode plan", "--allowedTools Bash --allowedTools Read",
        "--add-dir /data", "--mcp-config mcp.json", "--max-turns 7",
        "--append-system-prompt Be brief.", "--model opus", "--json-schema {", "--output-format stream-json --verbose --debug",
    ):  # fmt: skip
        assert said in words
    assert made.stdin == task.prompt
    assert "CLAUDECODE" not in made.env
    assert (made.env["CLAUDE_CODE_MAX_RETRIES"], made.env["A"], made.env["GIVEN"]) == ("4", "1", "by the step")


def test_a_session_is_gone_on_with_and_the_agent_is_told(tmp_path: Path) -> None:
    for name, words in {
        "claude": "--resume s1",
        "codex": "resume s1 -",
        "gemini": "--resume s1",
        "opencode": "--session s1",
    }.items():
        task = make_task(tmp_path / name, AgentChoice(name=name))
        task = msgspec.structs.replace(task, effect=msgspec.structs.replace(task.effect, session="s1"))
        made = plan(task)
        assert words in " ".join(made.argv)
        assert made.stdin is not None
        assert made.stdin.read_text().startswith("You were stopped in the middle of this task.")


def test_clients_without_a_schema_are_asked_in_the_prompt(tmp_path: Path) -> None:
    for name in ("gemini", "opencode"):
        task = make_task(tmp_path / name, AgentChoice(name=name))
        made = plan(task)
        assert made.stdin == task.prompt
        asked = task.artifacts_dir / "report-build-launch.json"
        assert f"write one JSON object to this file:\n\n    {asked}\n" in asked_of(task)
        assert not any(".git" in word for word in made.argv)


def configured(tmp_path: Path, text: str) -> AgentChoice:
    agents = load_agents(settings_in(tmp_path, text))
    return resolve_agent(AgentChoice(name="mine", model="m1"), agents)


def test_a_new_agent_needs_no_code(tmp_path: Path) -> None:
    choice = configured(tmp_path, '[agents.mine]\ncommand = ["sh", "-c", "x", "{model}"]\nprompt_mode = "argv"\n')
    assert choice.performer == "command"
    made = plan(make_task(tmp_path, choice))
    assert (made.argv, made.stdin) == (("sh", "-c", "x", "m1", "Do it.\n"), None)


def test_its_prompt_may_be_a_file_and_its_report_asked_for(tmp_path: Path) -> None:
    text = '[agents.mine]\ncommand = ["sh", "--file", "{prompt_file}", "-v"]\nprompt_mode = "file"\noutput = "report-file"\n'
    task = make_task(tmp_path, configured(tmp_path, text))
    assert plan(task).argv == ("sh", "--file", str(task.prompt), "-v")
    assert str(task.report) in asked_of(task)


@pytest.mark.parametrize(("counts", "tokens"), [("last", 7), ("sum", 12)])
def test_its_consumption_is_read_where_the_settings_say(counts: str, tokens: int, tmp_path: Path) -> None:
    text = f"""
[agents.mine]
command = ["sh"]
output = "json-lines"
usage_counts = "{counts}"
usage = {{ input = "stats.in", output = "stats.out", session = "id", cost_usd = "stats.usd" }}
prices.default = {{ input = 1, output = 2 }}
"""
    task = make_task(tmp_path, configured(tmp_path, text))
    ending = make_ending(task)
    ending.out.write_text('{"id":"s"}\n{"stats":{"in":5,"out":1}}\nnoise\n{"stats":{"in":7,"out":1}}\n')
    verdict = adapter("command").judge(task, ending)
    assert verdict.failure is None
    assert verdict.session == "s"
    assert verdict.usage is not None
    assert (verdict.usage.input_tokens, verdict.usage.cost_usd) == (tokens, None)


def test_a_stream_that_says_nothing_leaves_consumption_unknown(tmp_path: Path) -> None:
    task = make_task(tmp_path, configured(tmp_path, '[agents.mine]\ncommand = ["sh"]\noutput = "json-lines"\n'))
    ending = make_ending(task)
    ending.out.write_text("{}\n")
    assert adapter("command").judge(task, ending).usage == Usage(model="m1")


def test_prices_are_read_as_they_are_written() -> None:
    read = read_settings({"prices": {"default": {"input": 3, "output": 15.5}}}, "here")
    assert read.prices == {"default": Price(input=3.0, output=15.5)}
