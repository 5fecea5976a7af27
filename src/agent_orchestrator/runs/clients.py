"""The coding-agent CLIs of this machine: which are installed, and which could log in."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_orchestrator.agents import find_agent
from agent_orchestrator.agents.cli import CliAgent
from agent_orchestrator.agents.options import AgentSettings, resolve_agent
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.errors import OrcError, Unavailable

CLIENTS = ("claude", "codex", "gemini", "opencode")


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """A client that is installed."""

    name: str
    path: str
    passed: tuple[str, ...] = ()
    """The names of variables that it would get to log in with."""
    login: str = ""
    """The file of its own login, where there is one."""
    way: str = ""
    """The way to log it in."""

    @property
    def ready(self) -> bool:
        """Tell whether it could log in, as far as that can be seen: macOS keeps some logins where nobody looks."""
        return bool(self.passed or self.login) or sys.platform == "darwin"


def find_clients(environ: Mapping[str, str], configured: Mapping[str, AgentSettings]) -> list[Client]:
    """Find the clients that are installed, as they are configured."""
    found = (find_client(name, environ, configured) for name in CLIENTS)
    return [client for client in found if client is not None]


def find_client(name: str, environ: Mapping[str, str], configured: Mapping[str, AgentSettings]) -> Client | None:
    """Find one client; None where its program is not there."""
    try:
        choice = resolve_agent(AgentChoice(name=name), configured)
    except OrcError:
        return None
    agent, program = find_agent(choice.performer), choice.options.get("binary") or name
    path = shutil.which(program, path=environ.get("PATH"))
    if path is None or not isinstance(agent, CliAgent):
        return None
    asked = tuple(choice.options.get("pass_env") or ())

    def see(names: tuple[str, ...]) -> dict[str, str]:
        return {one: environ[one] for one in names if one in environ}

    keys = {*agent.vendor(choice).keys, *agent.vendor(choice).clouds, *asked}
    passed = tuple(one for one in (*asked, *agent.credentials(choice, asked, see)) if environ.get(one) and one in keys)
    own = tuple(one for one in choice.options.get("env") or {} if one in keys)
    return Client(
        name=name,
        path=path,
        passed=(*passed, *own),
        login=_find_login(agent, environ),
        way=agent.how_to_log_in(choice),
    )


def choose_client(environ: Mapping[str, str], configured: Mapping[str, AgentSettings]) -> tuple[Client, str]:
    """Choose a client for whoever names none, with the reason; raise Unavailable where none could start."""
    found = find_clients(environ, configured)
    ready = [client for client in found if client.ready]
    if not found:
        detail = f"No coding agent was found on the PATH ({', '.join(CLIENTS)}): install one, or give --agent-command 'CMD …'."
        raise Unavailable(detail=detail)
    if not ready:
        ways = "; ".join(f"{client.name}: {client.way}" for client in found)
        raise Unavailable(detail=f"No coding agent that is installed is logged in ({ways}).")
    others = ", ".join(client.name for client in ready[1:])
    only = "the only one that is installed and logged in"
    return ready[0], f"{others} could work, too: --agent or `run.agent` chooses" if others else only


def _find_login(agent: CliAgent, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    for variable, folder, name in agent.logins:
        place = environ.get(variable) or (f"{home}/{folder}" if home else "")
        if place and (file := Path(place, name)).is_file():
            return str(file)
    return ""
