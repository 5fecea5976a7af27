"""Tells apart the keys that agents log in with, without keeping one: hosts may have different keys under one name."""

from __future__ import annotations

import hashlib

from agent_orchestrator.agents import find_agent
from agent_orchestrator.agents.cli import CliAgent
from agent_orchestrator.agents.credentials import names_of
from agent_orchestrator.config import SECRET_WORDS, Settings
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.store.port import Store

MARK_BYTES = 3
"""Enough to tell a few keys apart, and far too little to find one again."""


def find_salt(store: Store) -> str:
    """Return a text that no other store has, the same for all hosts and repositories that share it."""
    return store.accounts.salt if store.accounts is not None else store.newest()[0]


def mark_key(settings: Settings, salt: str, choice: AgentChoice, passed: tuple[str, ...]) -> str:
    """Return a mark of what an agent logs in with on this host; '' where it gets no key from here."""
    environ, own = settings.environ, choice.options.get("env") or {}
    named, agent = tuple(choice.options.get("pass_env") or ()), find_agent(choice.performer)
    names = {*named, *own}
    if isinstance(agent, CliAgent):  # What a run passes on besides may be for tools, and says nothing about the account.
        names |= {*agent.credentials(choice, (*passed, *named), settings.child_env)}
        names |= {*passed} & {*names_of(agent.vendor(choice))}
    values = {name: own.get(name) or environ.get(name, "") for name in names if any(word in name for word in SECRET_WORDS)}
    keys = sorted(f"{name}={value}" for name, value in values.items() if value)
    if not keys:
        return ""
    words, key = "\0".join(keys).encode(errors="surrogateescape"), salt.encode()[: hashlib.blake2b.MAX_KEY_SIZE]
    return hashlib.blake2b(words, key=key, digest_size=MARK_BYTES).hexdigest()
