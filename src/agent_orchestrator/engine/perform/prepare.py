"""Makes a launch ready: absolute paths, the prompt as this launch gets it, the feedback of earlier ones."""

from __future__ import annotations

import errno
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.agents.adapter import Agent, AgentTask, InProcessAgent
from agent_orchestrator.agents.environment import render_prompt, tell_refused
from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.limits import REPORT_LIMIT_BYTES
from agent_orchestrator.engine.files import TooLarge, read_bounded, write_plainly
from agent_orchestrator.engine.launches import CannotStart
from agent_orchestrator.engine.perform.human import keep_early_answer

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver


def make_task(driver: Driver, effect: RunAgent, launch_dir: Path, agent: Agent | InProcessAgent) -> AgentTask:
    """Return who does what where; nothing is read or written."""
    return AgentTask(
        effect=effect,
        run=driver.run.id,
        home=driver.home,
        workdir=driver.tree(effect.tree),
        launch_dir=launch_dir,
        refused=_refused(driver, effect),
        inherited_env=_child_env(driver, effect, agent),
        budget_usd=driver.budget.told_usd(effect),
        form=driver.system.forms.get(effect.report.form),
    )


def _child_env(driver: Driver, effect: RunAgent, agent: Agent | InProcessAgent) -> dict[str, str]:
    """Return what this agent starts from: what the run passes on, what its own settings name, and what it logs in with."""
    named, credentials = effect.agent.options.get("pass_env"), getattr(agent, "credentials", None)
    asked = (*driver.run.context.pass_env, *(named if isinstance(named, list | tuple) else ()))
    see = driver.engine.world.child_env
    if credentials is not None:
        return see((*asked, *credentials(effect.agent, asked, see)))
    return see(asked) if named else driver.child_env


def _refused(driver: Driver, effect: RunAgent) -> tuple[str, ...]:
    """Return what this agent was refused before, less what it has been allowed since."""
    options = effect.agent.options
    now = {f"--allow-tool {shlex.quote(tool)}" for tool in options.get("allowed_tools") or ()}
    now.add(f"--permission-mode {options.get('permission_mode')}")
    refusals = driver.state.doing.refused.values()
    return tuple(
        f"{one.tool}: {one.asked}" if one.asked else one.tool
        for one in refusals
        if one.agent == effect.agent.name and one.allow not in now
    )


def write_task(task: AgentTask, agent: Agent) -> None:
    """Writes what the agent will read. Raises CannotStart when its prompt cannot be had."""
    effect = task.effect
    task.launch_dir.mkdir(parents=True, exist_ok=True)
    task.artifacts_dir.mkdir(parents=True, exist_ok=True)
    text = effect.prompt_text if effect.prompt_text is not None else _read_prompt(effect.prompt_file)
    prompt = render_prompt(text, effect.variables, effect.feedback if agent.appends_feedback else ())
    if task.refused and agent.appends_feedback:
        prompt = f"{prompt.rstrip()}\n\n{tell_refused(task.refused)}"
    if asked := agent.ask_for_report(task):
        prompt = f"{prompt.rstrip()}\n\n{asked}"
    write_plainly(task.prompt, prompt.encode())
    if task.feedback is not None:
        entries = (*effect.told, *effect.feedback)
        task.feedback.write_bytes(msgspec.json.format(msgspec.json.encode({"entries": entries})) + b"\n")
    if task.answer is not None:
        task.answer.parent.mkdir(parents=True, exist_ok=True)
        keep_early_answer(task.answer, task.launch_dir)


def _read_prompt(file: str | None) -> str:
    if file is None:
        raise CannotStart("the step has no prompt")
    try:
        return read_bounded(Path(file), REPORT_LIMIT_BYTES).decode("utf-8")
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise  # The machine's fault, not the file's: tried again later.
        raise CannotStart(f"The prompt file {file} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, TooLarge) as error:
        raise CannotStart(f"The prompt file {file} cannot be used: {error}") from error
