"""The keys of a configuration file: their values, their older spellings, and the variables that set them.

A key is a path, as in `run.notify.on_end`. One thing has one key: what an older or a shorter spelling says is kept under it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_orchestrator.agents.options import AgentSettings
from agent_orchestrator.config.store_address import (
    REPOSITORY_VARIABLE,
    ROOT_VARIABLE,
    STORE_VARIABLE,
    StoreTable,
    check_root,
    check_store_url,
    checked_name,
)
from agent_orchestrator.config.subscribers import NotifyTable
from agent_orchestrator.config.telemetry import TelemetryTable, check_endpoint
from agent_orchestrator.core.sandbox import WALLS, read_network
from agent_orchestrator.core.units import read_money
from agent_orchestrator.errors import InvalidValue

Key = tuple[str, ...]

TASK_FILE: Key = ("run", "workflow")
"""The workflow that a bare task is run with."""

STORE_URL, STORE_REPOSITORY, STORE_ROOT = ("store", "url"), ("store", "repository"), ("store", "root")
TELEMETRY_ENDPOINT: Key = ("telemetry", "endpoint")
NOTIFY: Key = ("notify",)
"""A list of tables, each kept under its name."""

SANDBOX, SANDBOX_NETWORK, YOLO = ("run", "sandbox"), ("run", "sandbox_network"), ("run", "yolo")
MCP = ("run", "mcp")
SANDBOX_WRITE, SANDBOX_READ = ("run", "sandbox_write"), ("run", "sandbox_read")

Money = float | str
Time = float | str


class RunPermissions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`[run.permissions]`: what agents may do besides, where their client can be told so."""

    mode: Annotated[str | None, Meta(description="As --permission-mode; an agent's own permission_mode wins.")] = None
    allow_tools: Annotated[tuple[str, ...], Meta(description="As --allow-tool, each.")] = ()


class RunNotify(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`[run.notify]`: shell commands that are started beside a run."""

    on_wait: Annotated[str | None, Meta(description="As --on-wait.")] = None
    on_end: Annotated[str | None, Meta(description="As --on-end.")] = None


class RunTable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`[run]`: what every command that starts a run takes where no flag says otherwise."""

    agent: Annotated[str | None, Meta(description="As --agent: NAME or NAME:MODEL.")] = None
    roles: Annotated[dict[str, str], Meta(description="As --role: an agent for one role each.")] = {}
    models: Annotated[dict[str, str], Meta(description="The model of an agent, by its name.")] = {}
    permissions: RunPermissions = RunPermissions()
    budget: Annotated[Money | None, Meta(description="As --budget-usd: what a run may spend, in dollars.")] = None
    day_budget: Annotated[Money | None, Meta(description="As --day-budget-usd: what all runs may spend in a day.")] = None
    check: Annotated[str | None, Meta(description="The command that says whether the work is done.")] = None
    worktree: Annotated[bool | None, Meta(description="As --git-worktree.")] = None
    notify: RunNotify = RunNotify()
    publish: Annotated[bool | None, Meta(description="As --publish.")] = None
    sandbox: Annotated[str | None, Meta(description="As --sandbox: auto, bwrap, landlock, none, or a command line.")] = None
    sandbox_network: Annotated[str | None, Meta(description="As --sandbox-network: on, agents, off, or a proxy's URL.")] = None
    sandbox_write: Annotated[tuple[str, ...], Meta(description="As --sandbox-write: absolute, or below your home (~/).")] = ()
    sandbox_read: Annotated[tuple[str, ...], Meta(description="As --sandbox-read: absolute, or below your home (~/).")] = ()
    yolo: Annotated[bool | None, Meta(description="As --yolo; counts only behind a wall.")] = None
    mcp: Annotated[bool | None, Meta(description="As --mcp: agents get the run's MCP server.")] = None
    workflow: Annotated[str | None, Meta(description="The workflow of `orc run TASK`; a path in the repository.")] = None


class BudgetTable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`[budget]`: what an attempt, a step, a run, and in a day all runs may spend."""

    run_usd: Annotated[Money | None, Meta(description="The same as run.budget.")] = None
    run_tokens: int | str | None = None
    run_time: Time | None = None
    step_usd: Money | None = None
    step_tokens: int | str | None = None
    step_time: Time | None = None
    attempt_usd: Money | None = None
    attempt_tokens: int | str | None = None
    day_usd: Annotated[Money | None, Meta(description="The same as run.day_budget.")] = None
    day_tokens: int | str | None = None
    day_time: Time | None = None
    allow_unmetered: bool | None = None


class GitTable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`[git]`, in the user's own file only."""

    trusted: Annotated[
        tuple[str, ...], Meta(description="Absolute paths of repositories whose own git configuration may name programs.")
    ] = ()


class WebTable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`[web]`, in the user's own file only."""

    repos: Annotated[
        tuple[str, ...], Meta(description="Absolute paths of repositories that `orc web` shows without arguments.")
    ] = ()


class ConfigDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`.orc.toml` of a repository, or `orc/config.toml` of a user."""

    publish: Annotated[bool | None, Meta(description="The same as run.publish.")] = None
    run: RunTable = RunTable()
    agents: dict[str, AgentSettings] = {}
    budget: BudgetTable = BudgetTable()
    git: GitTable = GitTable()
    web: WebTable = WebTable()
    telemetry: TelemetryTable = TelemetryTable()
    store: StoreTable = StoreTable()
    notify: Annotated[tuple[NotifyTable, ...], Meta(description="Who is told what happens in runs.")] = ()


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration file."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:agent-orchestrator:config",
        "title": "Configuration of orc",
    }
    return schema | msgspec.json.schema(ConfigDocument)


KNOWN: Mapping[Key, tuple[str, ...]] = {
    (): ConfigDocument.__struct_fields__,
    ("run",): RunTable.__struct_fields__,
    ("run", "permissions"): RunPermissions.__struct_fields__,
    ("run", "notify"): RunNotify.__struct_fields__,
    ("budget",): BudgetTable.__struct_fields__,
    ("git",): GitTable.__struct_fields__,
    ("web",): WebTable.__struct_fields__,
    ("telemetry",): TelemetryTable.__struct_fields__,
    ("store",): StoreTable.__struct_fields__,
    NOTIFY: NotifyTable.__struct_fields__,
}
"""The keys of each table; the names of agents and roles are anybody's."""
TABLES = frozenset({*(key for key in KNOWN if key and key != NOTIFY), ("agents",), ("run", "roles"), ("run", "models")})

OTHER_WORDS: Mapping[Key, str] = {
    ("run", "model"): "models",
    ("run", "role"): "roles",
    ("run", "agents"): "agent",
    ("run", "permission_mode"): "permissions.mode",
    ("run", "allow_tool"): "permissions.allow_tools",
    ("run", "allow_tools"): "permissions.allow_tools",
    ("run", "allowed_tools"): "permissions.allow_tools",
    ("run", "budget_usd"): "budget",
    ("run", "max_cost"): "budget",
    ("run", "day_budget_usd"): "day_budget",
    ("run", "git_worktree"): "worktree",
    ("run", "on_wait"): "notify.on_wait",
    ("run", "on_end"): "notify.on_end",
    ("notify", "events"): "on",
    ("notify", "kinds"): "on",
    ("notify", "secret"): "secret_env",
    ("run", "test"): "check",
    ("run", "verify"): "check",
}
"""Words that people try, most of them those of flags, and the key that is meant."""

TRUSTED_REPOSITORIES: Key = ("git", "trusted")
SHOWN_REPOSITORIES: Key = ("web", "repos")

SAME: Mapping[Key, Key] = {
    ("publish",): ("run", "publish"),
    ("budget", "run_usd"): ("run", "budget"),
    ("budget", "day_usd"): ("run", "day_budget"),
}

VARIABLES: Mapping[str, Key] = {
    "ORC_AGENT": ("run", "agent"),
    "ORC_ROLES": ("run", "roles"),
    "ORC_MODELS": ("run", "models"),
    "ORC_PERMISSION_MODE": ("run", "permissions", "mode"),
    "ORC_ALLOW_TOOLS": ("run", "permissions", "allow_tools"),
    "ORC_BUDGET": ("run", "budget"),
    "ORC_DAY_BUDGET": ("run", "day_budget"),
    "ORC_CHECK": ("run", "check"),
    "ORC_WORKTREE": ("run", "worktree"),
    "ORC_ON_WAIT": ("run", "notify", "on_wait"),
    "ORC_ON_END": ("run", "notify", "on_end"),
    "ORC_PUBLISH": ("run", "publish"),
    "ORC_SANDBOX": SANDBOX,
    "ORC_SANDBOX_NETWORK": SANDBOX_NETWORK,
    "ORC_SANDBOX_WRITE": SANDBOX_WRITE,
    "ORC_SANDBOX_READ": SANDBOX_READ,
    "ORC_YOLO": YOLO,
    "ORC_MCP": MCP,
    "ORC_WORKFLOW": TASK_FILE,
    STORE_VARIABLE: STORE_URL,
    REPOSITORY_VARIABLE: STORE_REPOSITORY,
    ROOT_VARIABLE: STORE_ROOT,
}
"""Lists in variables are separated by commas, as in `ORC_ROLES=reviewer=codex,coder=claude:opus`, paths by colons."""
OTHER_VARIABLES = frozenset({"ORC_DEBUG", "ORC_LAUNCH", "ORC_MCP_KEY", "ORC_MCP_URL", "ORC_TRUSTED_PATHS", "ORC_WALL"})

_SWITCHES = frozenset({("run", "worktree"), ("run", "publish"), YOLO, MCP})
_PATHS = frozenset({SANDBOX_WRITE, SANDBOX_READ})
_LISTS = frozenset({("run", "permissions", "allow_tools"), *_PATHS})
_MAPS = frozenset({("run", "roles"), ("run", "models")})
_MONEY = frozenset({("run", "budget"), ("run", "day_budget")})
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def canonical(key: Key) -> Key:
    """Return the key under which a setting is kept, however it is spelled."""
    if key[:2] == ("run", "models") and len(key) == 3:
        return ("agents", key[2], "model")
    return SAME.get(key, key)


def check_run_value(key: Key, value: object, what: str = "") -> None:
    """Raise InvalidValue for what a key of runs cannot be, however it is spelled."""
    what, key = what or ".".join(key), canonical(key)
    if key in _SWITCHES:
        expected = "true or false" if not isinstance(value, bool) else ""
    elif key in _PATHS or key in (TRUSTED_REPOSITORIES, SHOWN_REPOSITORIES):
        fine = isinstance(value, list) and all(isinstance(one, str) and one.startswith(("/", "~/")) for one in value)
        expected = "" if fine else "a list of absolute paths"
    elif key == SANDBOX and isinstance(value, str) and " " not in value.strip():
        expected = "" if value in WALLS else f"{', '.join(WALLS)}, or a command line as in 'podman run …'"
    elif key == TELEMETRY_ENDPOINT:
        check_endpoint(value, what)
        return
    elif key == STORE_URL:
        check_store_url(value, what, secret=what == STORE_VARIABLE)
        return
    elif key == STORE_REPOSITORY:
        checked_name(value, what)
        return
    elif key == STORE_ROOT:
        check_root(value, what)
        return
    elif key == SANDBOX_NETWORK:
        read_network(value if isinstance(value, str) else str(value), what)
        return
    elif key in _LISTS:
        fine = isinstance(value, list) and all(isinstance(one, str) and one.strip() for one in value)
        expected = "" if fine else "a list of texts"
    elif key in _MONEY:
        read_money(value, what)
        return
    else:
        expected = "" if isinstance(value, str) and value.strip() and "\0" not in value else "a text that is not empty"
    if expected:
        raise InvalidValue(what=what, value=value, expected=expected)


def read_variable(name: str, text: str) -> dict[Key, Any]:
    """Return the settings that a variable's text means; raise InvalidValue for what it cannot be."""
    key = VARIABLES[name]
    if key in _SWITCHES:
        word = text.strip().lower()
        if word not in _YES + _NO:
            raise InvalidValue(what=name, value=text, expected="true or false")
        return {key: word in _YES}
    if key in _PATHS:
        paths = [word for word in text.split(":") if word]
        check_run_value(key, paths, name)
        return {key: paths}
    if key in _LISTS:
        return {key: [word.strip() for word in text.split(",") if word.strip()]}
    if key in _MAPS:
        pairs = [one.partition("=") for one in text.split(",") if one.strip()]
        if not all(name and equals and value.strip() for name, equals, value in pairs):
            raise InvalidValue(what=name, value=text, expected="NAME=VALUE, several separated by commas")
        return {(*key, pair[0].strip()): pair[2].strip() for pair in pairs}
    check_run_value(key, text, name)
    return {key: text}
