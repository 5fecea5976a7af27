"""Makes a launch ready: absolute paths, the prompt as this launch gets it, the feedback of earlier ones."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.agents.adapter import COPIES, Agent, AgentTask, InProcessAgent, RunServer
from agent_orchestrator.agents.environment import render_prompt, tell_refused, tell_steering
from agent_orchestrator.beneath import open_folder, write_plainly
from agent_orchestrator.bounded import read_bounded, store_of
from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.limits import REPORT_LIMIT_BYTES
from agent_orchestrator.engine.launches import CannotStart
from agent_orchestrator.errors import is_shortage

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver


See = Callable[[tuple[str, ...]], dict[str, str]]
"""Reads the environment: what every child gets, and what is asked for by name."""


def make_task(driver: Driver, effect: RunAgent, launch_dir: Path, agent: Agent | InProcessAgent) -> AgentTask:
    """Return who does what where; nothing is read or written."""
    copies = False
    if effect.session is not None:
        session, copies = _session(driver, effect, agent)
        effect = effect if session == effect.session else msgspec.structs.replace(effect, session=session)
    return AgentTask(
        effect=effect,
        copies_session=copies,
        run=driver.run.id,
        home=driver.home,
        workdir=driver.workdir if effect.tree is None else driver.tree(effect.tree),
        launch_dir=launch_dir,
        refused=_refused(driver, effect) if driver.state.doing.refused else (),
        inherited_env=_child_env(driver, effect, agent),
        budget_usd=driver.budget.told_usd(effect),
        sandboxed=driver.run.context.sandbox is not None,
        server=_server(driver, effect),
        form=driver.system.forms.get(effect.report.form),
    )


def _session(driver: Driver, effect: RunAgent, agent: Agent | InProcessAgent) -> tuple[str | None, bool]:
    """Return the session to go on with, and whether as a copy.

    One that knows of work which this run left behind is not gone on with; nor is another run's, by an agent that would add to it.
    """
    doing = driver.state.doing
    if effect.session in doing.stale:
        return None, False
    if effect.session not in doing.shared:
        return effect.session, False
    copies = COPIES in getattr(agent, "abilities", ())
    return (effect.session, True) if copies else (None, False)


def _server(driver: Driver, effect: RunAgent) -> RunServer | None:
    """Return the run's MCP server for this launch; none behind a wall through which it could not be reached."""
    wall = driver.run.context.sandbox
    reached = wall is None or (wall.network != "off" and not wall.proxy)
    return driver.engine.world.server_of(effect.id) if reached else None


def _child_env(driver: Driver, effect: RunAgent, agent: Agent | InProcessAgent) -> dict[str, str]:
    if getattr(agent, "credentials", None) is None and not effect.agent.options.get("pass_env"):
        return driver.child_env
    return make_environment(effect, agent, driver.run.context.pass_env, driver.engine.world.child_env)


def make_environment(effect: RunAgent, agent: object, passed: tuple[str, ...], see: See) -> dict[str, str]:
    """Return what this agent starts from: what the run passes on, what its own settings name, and what it logs in with."""
    named, credentials = effect.agent.options.get("pass_env"), getattr(agent, "credentials", None)
    asked = (*passed, *(named if isinstance(named, list | tuple) else ()))
    return see((*asked, *credentials(effect.agent, asked, see))) if credentials is not None else see(asked)


def _refused(driver: Driver, effect: RunAgent) -> tuple[str, ...]:
    """Return what this agent was refused before, less what it has been allowed since."""
    options = effect.agent.options
    now = {f"--allow-tool {shlex.quote(tool)}" for tool in options.get("allowed_tools") or ()}
    now.add(f"--permission-mode {options.get('permission_mode')}")
    return tuple(
        f"{one.tool}: {one.asked}" if one.asked else one.tool
        for one in driver.state.doing.refused.values()
        if one.agent == effect.agent.name and one.allow not in now
    )


def write_task(task: AgentTask, agent: Agent) -> None:
    """Writes what the agent will read. Raises CannotStart when its prompt cannot be had."""
    effect = task.effect
    store = store_of(task.launch_dir)
    with open_folder(task.home, task.artifacts_dir, make=True):
        pass  # It is there, and no link leads to it.
    text = effect.prompt_text if effect.prompt_text is not None else _read_prompt(effect.prompt_file)
    prompt = render_prompt(text, effect.variables, effect.feedback if agent.appends_feedback else ())
    if effect.steering and agent.appends_feedback:
        prompt = f"{tell_steering(effect.steering)}\n{prompt}"
    if task.refused and agent.appends_feedback:
        prompt = f"{prompt.rstrip()}\n\n{tell_refused(task.refused)}"
    if asked := agent.ask_for_report(task):
        prompt = f"{prompt.rstrip()}\n\n{asked}"
    write_plainly(store, task.prompt, prompt.encode())
    if task.feedback is not None:
        entries = (*effect.told, *effect.feedback, *({"said": text} for text in effect.steering))
        write_plainly(store, task.feedback, msgspec.json.format(msgspec.json.encode({"entries": entries})) + b"\n")
    if task.answer is not None:
        with open_folder(task.home, task.answer.parent, make=True):
            pass


def _read_prompt(file: str | None) -> str:
    if file is None:
        raise CannotStart("the step has no prompt")
    try:
        return read_bounded(Path(file), REPORT_LIMIT_BYTES).decode("utf-8")
    except OSError as error:
        if is_shortage(error):
            raise  # The machine's fault, not the file's: tried again later.
        raise CannotStart(f"The prompt file {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CannotStart(f"The prompt file {file} cannot be used: {error}") from error
