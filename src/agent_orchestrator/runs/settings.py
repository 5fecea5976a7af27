"""Settings of agents, read again for a run that goes on: what changed since they were stored, in data and in words.

What a person gave on a command line stays: only what came from the configuration follows it. What looks like a secret is
never taken, because changes are written to the journal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.agents import ADAPTERS
from agent_orchestrator.agents.options import AgentSettings, resolve_agent
from agent_orchestrator.config.defaults import load_agents
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.text import clip
from agent_orchestrator.runs.choices import NOTHING_MORE, Permissions, check_agent
from agent_orchestrator.runs.orchestrator import Orchestrator

PROGRAMS = ("command", "scripted", "wrapper")
"""Agents whose options come from the command line alone."""
NAMES = {"argv": "command"}
"""Settings as the configuration spells them, where that differs."""
VALUE_CHARS = 200


class Reread(msgspec.Struct, frozen=True, kw_only=True):
    """The agents that work with other settings from now on, by place, and what a person is told."""

    agents: dict[str, AgentChoice] = {}
    changes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def reread(orchestrator: Orchestrator, spec: Any, permissions: Permissions = NOTHING_MORE) -> Reread:
    """Read the settings of a specification's agents again, with what they may do besides; raises a UsageError for a fault."""
    settings = orchestrator.settings
    permissions.check(spec.choices)
    return reread_agents(spec.assigned, load_agents(settings), settings.home, settings.is_secret, permissions.given_to)


def reread_agents(
    assigned: Mapping[str, AgentChoice],
    configured: Mapping[str, AgentSettings],
    home: Path,
    is_secret: Callable[[str, str], bool],
    permit: Callable[[AgentChoice], AgentChoice],
) -> Reread:
    """Compare stored choices with the configuration of now; raises where an agent could not start with it.

    `is_secret` judges a value by the name of its setting or variable; `permit` adds what a command line gives.
    """
    agents: dict[str, AgentChoice] = {}
    changes: dict[str, None] = {}
    notes: dict[str, None] = {}
    known: dict[bytes, AgentChoice] = {}
    for place, choice in assigned.items():
        key = msgspec.json.encode(choice)
        if key in known:  # A swarm has thousands of beads, and few agents.
            agents |= {place: known[key]} if known[key] is not choice else {}
            continue
        known[key] = choice
        if choice.performer not in ADAPTERS and choice.name not in configured:
            continue  # Nobody knew it before either: its attempt says so.
        if choice.configured is None and choice.performer in PROGRAMS and choice.name in ADAPTERS:
            now = choice  # A program that the command line gave, whatever name it goes by.
        elif choice.name not in ADAPTERS and choice.name not in configured:
            notes[f"agent {choice.name} is no longer in the configuration; it continues as it was"] = None
            now = choice
        else:
            now = _followed(choice, resolve_agent(AgentChoice(name=choice.name), configured), is_secret, notes)
        now = permit(now)
        told = say_changes(choice, now)
        if told:
            check_agent(now, home)
            agents[place] = known[key] = now
            changes.update(dict.fromkeys(told))
    return Reread(agents=agents, changes=tuple(changes), notes=tuple(notes))


def say_changes(before: AgentChoice, now: AgentChoice) -> list[str]:
    """Say what differs, each setting in a line; values of variables are not shown."""
    old, new = _settings(before), _settings(now)
    if before.name != now.name:
        return [f"agent {before.name} → {now.name}"]
    keys = [key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)]
    return [f"agent {now.name}: {NAMES.get(key, key)} {_shown(key, old, new)} → {_shown(key, new, old)}" for key in keys]


def _followed(
    choice: AgentChoice, fresh: AgentChoice, is_secret: Callable[[str, str], bool], notes: dict[str, None]
) -> AgentChoice:
    """Return the choice with what changed in the configuration since it was stored."""
    new: dict[str, Any] = _plain(fresh.configured or {})
    old: dict[str, Any] | None = _plain(choice.configured)
    if old is None:
        old = _plain(choice.options)
        new.pop("model", None)  # Nobody wrote down whether it was chosen or configured.
        new = {key: value for key, value in new.items() if key in old or key not in choice.options}
    held = _settings(choice)
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) == new.get(key):
            continue
        if _holds_secret(key, old.get(key), new.get(key), is_secret):
            what = NAMES.get(key, key)
            notes[f"agent {choice.name}: {what} changed and was not taken: it looks like a secret, name it in pass_env"] = None
            new = {**new, key: old[key]} if key in old else {name: new[name] for name in new if name != key}
        else:
            value = _merged(held.get(key), old.get(key), new.get(key))
            held = {**held, key: value} if value is not None else {name: held[name] for name in held if name != key}
    model = held.pop("model", None)
    adapter = held.pop("adapter", "") if fresh.adapter == choice.adapter else fresh.adapter
    held.pop("adapter", None)
    return AgentChoice(name=choice.name, model=model, adapter=adapter, options=held, configured=new)


def _merged(held: Any, old: Any, new: Any) -> Any:
    """Return a setting as it is from now on: the new one, unless a command line gave another; what one added to a list stays."""
    if held == old:
        return new
    if isinstance(held, list | tuple) and isinstance(old or [], list | tuple) and isinstance(new or [], list | tuple):
        return [*(new or []), *(one for one in held if one not in (old or []) and one not in (new or []))]
    return held


def _holds_secret(key: str, old: Any, new: Any, is_secret: Callable[[str, str], bool]) -> bool:
    if key == "env" and isinstance(new, dict):
        return any(is_secret(name, value) for name, value in new.items() if (old or {}).get(name) != value)
    return any(is_secret("", text) for text in _texts(new))


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)


def _settings(choice: AgentChoice) -> dict[str, Any]:
    basics = {"model": choice.model, "adapter": choice.adapter or None}
    return {**_plain(choice.options), **{key: value for key, value in basics.items() if value is not None}}


def _plain(value: Any) -> Any:
    """Return a value as it is read back from the store: lists, no tuples."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _shown(key: str, these: dict[str, Any], others: dict[str, Any]) -> str:
    """Say a value for people: lists in brackets, of variables only the names."""
    value, other = these.get(key), others.get(key)
    if value is None:
        return "[]" if isinstance(other, list | tuple | dict) else "unset"
    if key == "env":
        return f"[{', '.join(value)}]"
    if isinstance(value, list | tuple):
        value = f"[{', '.join(str(one) for one in value)}]"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clip(text, VALUE_CHARS)
