"""Faults of a configuration that only show when its parts are seen together: agents, modes and files that are not there."""

from __future__ import annotations

from collections.abc import Iterator

from agent_orchestrator.agents import ADAPTERS, find_agent
from agent_orchestrator.agents.options import resolve_agent
from agent_orchestrator.config import Settings
from agent_orchestrator.config.defaults import ConfiguredRuns, Setting, find_strange_variables, place_of_workflow
from agent_orchestrator.config.documents import Fault
from agent_orchestrator.config.keys import SANDBOX, SANDBOX_NETWORK, SANDBOX_READ, SANDBOX_WRITE, TASK_FILE, YOLO, Key
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.sandbox import NONE
from agent_orchestrator.core.text import find_near
from agent_orchestrator.errors import UsageError


def find_faults(settings: Settings, found: ConfiguredRuns) -> list[Fault]:
    """Find everything that is wrong with a configuration, with the lines."""
    doubtful = (*_agent_faults(found), *_run_faults(settings, found), *find_strange_variables(settings.environ))
    return sorted((*found.faults, *doubtful), key=lambda fault: (fault.file, fault.line or 0))


def _agent_faults(found: ConfiguredRuns) -> Iterator[Fault]:
    """Find agents that nobody could start, and names of agents that nobody has."""
    try:
        agents = found.agents
    except UsageError as error:  # Each of its keys is sound by itself.
        yield Fault(file="", message=str(error).rstrip("."))
        return
    for name in agents:
        try:
            resolve_agent(AgentChoice(name=name), agents)
        except UsageError as error:
            first = next((key, one) for key, one in found.values.items() if key[:2] == ("agents", name))
            yield _fault(*first, str(error).rstrip("."))
    known = (*ADAPTERS, *agents)
    for key, setting in found.values.items():
        name = str(setting.value).partition(":")[0]
        named = key == ("run", "agent") or key[:2] == ("run", "roles")
        if named and name not in known and " " not in name and "/" not in name:
            near = find_near(name, known)
            more = "" if near is not None else f"; there are {', '.join(known)}"
            yield _fault(key, setting, f"{'.'.join(key)}: there is no agent {name!r}{more}", near)


def _run_faults(settings: Settings, found: ConfiguredRuns) -> Iterator[Fault]:
    mode, workflow = found.values.get(("run", "permissions", "mode")), found.values.get(TASK_FILE)
    modes = dict.fromkeys(one for name in ADAPTERS for one in getattr(find_agent(name), "modes", ()))
    if mode is not None and mode.value not in modes:
        near = find_near(mode.value, modes)
        more = "" if near is not None else f"; there are {', '.join(modes)}"
        yield _fault(("run", "permissions", "mode"), mode, f"no agent has the permission mode {mode.value!r}{more}", near)
    wall = found.values.get(SANDBOX)
    for key in (SANDBOX_NETWORK, SANDBOX_WRITE, SANDBOX_READ, YOLO):
        if (setting := found.values.get(key)) is not None and setting.value and (wall is None or wall.value == NONE):
            yield _fault(key, setting, f"{'.'.join(key)} needs a wall: set run.sandbox")
    if workflow is not None and not (file := place_of_workflow(settings, workflow.value)).is_file():
        yield _fault(TASK_FILE, workflow, f"run.workflow: there is no file {file}")


def _fault(key: Key, setting: Setting, message: str, suggestion: str | None = None) -> Fault:
    origin = setting.origin
    file = origin.file or origin.variable
    return Fault(file=file, line=origin.line, key=".".join(key), message=message, suggestion=suggestion)
