"""The adapters: the program that each starts, and what it refuses before a run exists."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import agent_orchestrator
from agent_orchestrator.agents import find_agent
from agent_orchestrator.agents.adapter import Agent, Invocation, Verdict
from agent_orchestrator.agents.command import CommandAgent
from agent_orchestrator.agents.shell import ShellAgent
from agent_orchestrator.agents.wrapper import WrapperAgent
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.errors import AgentMissing, InvalidValue, MissingPath
from agent_orchestrator.testing.agents import check_agent, make_task


def choose(name: str, **options: Any) -> AgentChoice:
    return AgentChoice(name=name, options=options)


def test_a_wrapper_gets_the_flags_of_the_contract_then_its_own(tmp_path: Path) -> None:
    task = make_task(tmp_path, choose("wrapper", path="/w/wrapper.sh", args=["--fast", "a b"]))
    plan = WrapperAgent().plan(task)
    assert plan.argv == (
        "/w/wrapper.sh", "--run-id", "run1", "--step-id", "build", "--agent", "coder", "--prompt", str(task.prompt),
        "--repo", str(task.workdir), "--report", str(task.report), "--fast", "a b",
    )  # fmt: skip


def wrapper_plan(tmp_path: Path, path: Path, **env: str) -> Invocation:
    task = make_task(tmp_path, choose("wrapper", path=str(path)))
    return WrapperAgent().plan(msgspec.structs.replace(task, inherited_env={**task.inherited_env, **env}))


def test_a_python_wrapper_is_run_by_the_interpreter_that_it_names_or_by_that_of_the_path(tmp_path: Path) -> None:
    wrapper, python = tmp_path / "wrapper.py", tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.symlink_to("/bin/sh")
    wrapper.write_text("#!/usr/bin/env python3\n")
    assert wrapper_plan(tmp_path, wrapper, PATH=str(python.parent)).argv[:2] == (str(python), str(wrapper))
    wrapper.chmod(0o755)
    assert wrapper_plan(tmp_path, wrapper, PATH=str(python.parent)).argv[0] == str(wrapper)
    wrapper.write_text("print('no first line')\n")
    assert wrapper_plan(tmp_path, wrapper, PATH=str(python.parent)).argv[:2] == (str(python), str(wrapper))
    assert wrapper_plan(tmp_path, wrapper, PATH=str(tmp_path)).argv[:2] == (sys.executable, str(wrapper))


def test_a_wrapper_does_not_get_the_folder_of_our_own_package(tmp_path: Path) -> None:
    ours = str(Path(agent_orchestrator.__path__[0]).parent)
    wrapper = tmp_path / "wrapper.py"
    assert wrapper_plan(tmp_path, wrapper, PYTHONPATH=f"{ours}:/origin/src").env["PYTHONPATH"] == "/origin/src"
    assert "PYTHONPATH" not in wrapper_plan(tmp_path, wrapper, PYTHONPATH=ours).env


def test_a_wrapper_that_is_not_there_or_cannot_run_is_refused_before_a_run_exists(tmp_path: Path) -> None:
    agent = WrapperAgent()
    with pytest.raises(MissingPath, match=r"The wrapper .*gone\.py does not exist"):
        agent.preflight(choose("wrapper", path=str(tmp_path / "gone.py")))
    plain = tmp_path / "wrapper.sh"
    plain.write_text("#!/bin/sh\n")
    with pytest.raises(AgentMissing, match="it is not executable; `chmod"):
        agent.preflight(choose("wrapper", path=str(plain)))
    with pytest.raises(AgentMissing, match="it is not a file"):
        agent.preflight(choose("wrapper", path=str(tmp_path)))
    with pytest.raises(InvalidValue):
        agent.preflight(choose("wrapper", path=str(plain), args="--fast"))


def test_a_program_is_asked_for_its_report_below_our_prompts_and_never_below_a_persons(tmp_path: Path) -> None:
    for agent in (CommandAgent(), WrapperAgent(), ShellAgent()):
        task = make_task(tmp_path / agent.name, choose(agent.name, argv=["sh"]))
        own = msgspec.structs.replace(task.effect, prompt_text=None, prompt_file="prompt.md")
        assert agent.ask_for_report(msgspec.structs.replace(task, effect=own)) == ""
        assert (str(task.report) in agent.ask_for_report(task)) == (agent.name != "shell")


def test_a_command_is_run_as_it_stands_with_the_prompt_as_its_input(tmp_path: Path) -> None:
    task = make_task(tmp_path, choose("command", argv=["claude", "-p", "$HOME"]))
    plan = CommandAgent().plan(task)
    assert plan.argv == ("claude", "-p", "$HOME")
    assert plan.stdin == task.prompt


def test_a_command_that_is_not_there_is_refused_before_a_run_exists(tmp_path: Path) -> None:
    agent = CommandAgent()
    with pytest.raises(AgentMissing, match="no-such-agent cannot be started: it was not found on the PATH"):
        agent.preflight(choose("command", argv=["no-such-agent"]))
    with pytest.raises(AgentMissing, match="there is no such file"):
        agent.preflight(choose("command", argv=[str(tmp_path / "gone")]))
    (tmp_path / "plain").touch()
    with pytest.raises(AgentMissing, match="it is not executable"):
        agent.preflight(choose("command", argv=[str(tmp_path / "plain")]))
    with pytest.raises(InvalidValue):
        agent.preflight(choose("command", argv=[]))
    agent.preflight(choose("command", argv=["./in-the-working-tree"]))


def test_a_shell_step_runs_its_prompt_and_reads_nothing(tmp_path: Path) -> None:
    task = make_task(tmp_path, choose("shell"))
    plan = ShellAgent().plan(task)
    assert (plan.argv, plan.stdin) == (("/bin/sh", str(task.prompt)), None)
    assert not ShellAgent().appends_feedback


class Careless(CommandAgent):
    """Breaks the contract in the way a test asks for."""

    def __init__(self, flaw: str) -> None:
        self.flaw = flaw

    def preflight(self, choice: AgentChoice) -> None:
        if self.flaw == "preflight":
            choice.options["argv"][0]

    def plan(self, task: Any) -> Invocation:
        plan = super().plan(task)
        argv, env = plan.argv, dict(plan.env)
        if self.flaw == "argv":
            argv = ("a\0b",)
        if self.flaw == "contract":
            del env["REPORT_PATH"]
        if self.flaw == "secrets":
            env["ORC_TEST_SECRET"] = "sesame-open"
        return Invocation(argv=argv, env=env, stdin=plan.stdin)

    def judge(self, task: Any, ending: Any) -> Verdict:
        if self.flaw == "exit":
            return Verdict() if ending.cause is None else super().judge(task, ending)
        if self.flaw == "cause":
            return Verdict() if ending.cause is not None else super().judge(task, ending)
        if self.flaw == "report" and ending.exit_code == 0 and ending.cause is None:
            return Verdict()
        return super().judge(task, ending)


@pytest.mark.parametrize("flaw", ["preflight", "argv", "contract", "secrets", "exit", "cause", "report"])
def test_check_agent_notices_a_broken_adapter(tmp_path: Path, flaw: str) -> None:
    agent: Agent = Careless(flaw)
    with pytest.raises((AssertionError, LookupError, TypeError)):
        check_agent(agent, choose("command", argv=[sys.executable]), tmp_path, {"ORC_TEST_SECRET": "sesame-open"})


def test_check_agent_is_content_with_a_sound_one(tmp_path: Path) -> None:
    check_agent(Careless("none"), choose("command", argv=[sys.executable]), tmp_path)
    assert find_agent("command").name == "command"
