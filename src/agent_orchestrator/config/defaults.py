"""The configuration as a whole: the user's file, the repository's over it, variables over both, each value with its origin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.agents.options import AgentSettings, read_settings
from agent_orchestrator.config import Settings, config_files
from agent_orchestrator.config.documents import ConfigFile, Fault, read_file
from agent_orchestrator.config.keys import (
    MCP,
    NOTIFY,
    OTHER_VARIABLES,
    SANDBOX,
    SANDBOX_NETWORK,
    SANDBOX_READ,
    SANDBOX_WRITE,
    STORE_REPOSITORY,
    STORE_ROOT,
    STORE_URL,
    TASK_FILE,
    TELEMETRY_ENDPOINT,
    VARIABLES,
    YOLO,
    Key,
    canonical,
    read_variable,
)
from agent_orchestrator.config.store_address import ROOT, StoreTable
from agent_orchestrator.config.subscribers import Subscriber, read_subscriber
from agent_orchestrator.config.telemetry import Telemetry, read_telemetry
from agent_orchestrator.config.trust import Guarded, find_guarded, find_misplaced, refuse_untrusted
from agent_orchestrator.core.budget import Budget, read_budget
from agent_orchestrator.core.text import find_near
from agent_orchestrator.errors import InvalidValue, UsageError


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The place that a value comes from."""

    file: str = ""
    line: int | None = None
    variable: str = ""

    def __str__(self) -> str:
        if self.variable:
            return self.variable
        return f"{self.file}:{self.line}" if self.line is not None else self.file


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A value that counts, and where it comes from."""

    value: Any
    origin: Origin


class RunDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults of every run, from `[run]` and variables: None where there is none."""

    agent: str | None = None
    roles: dict[str, str] = {}
    permission_mode: str | None = None
    allow_tools: tuple[str, ...] = ()
    check: str | None = None
    worktree: bool | None = None
    on_wait: str | None = None
    on_end: str | None = None
    publish: bool | None = None
    sandbox: str | None = None
    sandbox_network: str | None = None
    sandbox_write: tuple[str, ...] = ()
    sandbox_read: tuple[str, ...] = ()
    yolo: bool | None = None
    mcp: bool | None = None
    task_file: str | None = None
    """The workflow that a bare task is run with."""
    origins: dict[str, str] = {}
    """The places that they come from, by the names of these fields."""


NO_DEFAULTS = RunDefaults()

_FIELDS: Mapping[str, Key] = {
    "agent": ("run", "agent"),
    "permission_mode": ("run", "permissions", "mode"),
    "allow_tools": ("run", "permissions", "allow_tools"),
    "check": ("run", "check"),
    "worktree": ("run", "worktree"),
    "on_wait": ("run", "notify", "on_wait"),
    "on_end": ("run", "notify", "on_end"),
    "publish": ("run", "publish"),
    "sandbox": SANDBOX,
    "sandbox_network": SANDBOX_NETWORK,
    "sandbox_write": SANDBOX_WRITE,
    "sandbox_read": SANDBOX_READ,
    "yolo": YOLO,
    "mcp": MCP,
    "task_file": TASK_FILE,
}


class ConfiguredRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration as it counts, with all its faults."""

    files: tuple[ConfigFile, ...]
    values: dict[Key, Setting]
    faults: tuple[Fault, ...]
    repository: ConfigFile | None
    guarded: tuple[Guarded, ...]
    """The settings of the repository's file that need the user's word."""

    @property
    def agents(self) -> dict[str, AgentSettings]:
        """The `[agents.NAME]` tables."""
        tables: dict[str, dict[str, Any]] = {}
        for key, setting in self.values.items():
            if key[0] == "agents":
                tables.setdefault(key[1], {})[key[2]] = setting.value
        return {name: read_settings(table, f"[agents.{name}]") for name, table in tables.items()}

    @property
    def budget(self) -> Budget:
        """The budget of every run, of its parts, and of the day."""
        table = {key[1]: setting.value for key, setting in self.values.items() if key[0] == "budget"}
        for name, other in (("run_usd", "budget"), ("day_usd", "day_budget")):
            if (setting := self.values.get(("run", other))) is not None:
                table[name] = setting.value
        return read_budget(table, "[budget]")

    @property
    def telemetry_endpoint(self) -> str | None:
        """The collector of `[telemetry]`."""
        setting = self.values.get(TELEMETRY_ENDPOINT)
        return setting.value if setting is not None else None

    @property
    def subscribers(self) -> tuple[Subscriber, ...]:
        """The `[[notify]]` tables."""
        found = ((setting.origin, setting.value) for key, setting in self.values.items() if key[:1] == NOTIFY)
        return tuple(msgspec.structs.replace(read_subscriber(table), origin=str(origin)) for origin, table in found)

    @property
    def run(self) -> RunDefaults:
        """The defaults of every run."""
        found = {field: self.values[key] for field, key in _FIELDS.items() if key in self.values}
        values = {field: setting.value for field, setting in found.items()}
        lists: dict[str, Any] = {field: tuple(value) for field, value in values.items() if isinstance(value, list)}
        return RunDefaults(
            **{**values, **lists},
            roles={key[2]: setting.value for key, setting in self.values.items() if key[:2] == ("run", "roles")},
            origins={field: str(setting.origin) for field, setting in found.items()},
        )


def read_configuration(settings: Settings) -> ConfiguredRuns:
    """Read all of it, whatever is wrong with it."""
    *users, repository = (read_file(path) for path in config_files(settings))
    values: dict[Key, Setting] = {}
    for file in users:
        values |= _values_of(file)
    own = {key: setting.value for key, setting in values.items()}
    values |= _values_of(repository)
    said, wrong = _read_variables(settings.environ)
    values |= said
    files = tuple(file for file in (*users, repository) if file is not None)
    misplaced = find_misplaced(repository) if repository is not None else ()
    return ConfiguredRuns(
        files=files,
        values=values,
        faults=(*(fault for file in files for fault in file.faults), *misplaced, *wrong),
        repository=repository,
        guarded=find_guarded(repository, own) if repository is not None else (),
    )


def load_configuration(settings: Settings) -> ConfiguredRuns:
    """Load what counts; raise a UsageError for a fault, and for what the user has not agreed to."""
    found = read_configuration(settings)
    for file in found.files:
        file.refuse_faults()
    for fault in found.faults:
        raise UsageError(detail=fault.sentence)
    if found.repository is not None:
        refuse_untrusted(settings, found.repository, found.guarded)
    return found


def load_agents(settings: Settings) -> dict[str, AgentSettings]:
    """Load the agents that are configured."""
    return load_configuration(settings).agents


def load_defaults(settings: Settings) -> RunDefaults:
    """Load the defaults of every run."""
    return load_configuration(settings).run


def load_telemetry(settings: Settings) -> Telemetry | None:
    """Load the telemetry that is on; None also where the configuration has a fault, which others tell."""
    try:
        return read_telemetry(settings.environ, load_configuration(settings).telemetry_endpoint)
    except UsageError:
        return None


def load_store_table(settings: Settings) -> StoreTable:
    """Load where runs are kept; raise a UsageError for a fault of that, and where the user has not agreed to it."""
    keys = (STORE_URL, STORE_REPOSITORY, STORE_ROOT)
    found = read_configuration(settings)
    for file in found.files:
        if any(fault.key.split(".")[0] == "store" or not fault.key for fault in file.faults):
            file.refuse_faults()
    guarded = tuple(one for one in found.guarded if one.entry.key in keys)
    if found.repository is not None:
        refuse_untrusted(settings, found.repository, guarded)
    values = {key[1]: found.values[key].value for key in keys if key in found.values}
    return StoreTable(**values)


def find_root(settings: Settings) -> Path:
    """Return the folder in which workers keep the repositories of runs: the same on every host."""
    return Path(load_store_table(settings).root or ROOT)


def find_strange_variables(environ: Iterable[str]) -> list[Fault]:
    """Find variables that look like ours and are none: somebody mistyped them."""
    known = [*VARIABLES, *OTHER_VARIABLES]
    strange = [name for name in environ if name.startswith("ORC_") and name not in known]
    near = ((name, find_near(name, known, like=0.8)) for name in sorted(strange))
    return [
        Fault(file=name, key=name, message=f"{name} is no variable of orc", suggestion=meant)
        for name, meant in near
        if meant is not None
    ]


def place_of_workflow(settings: Settings, given: str) -> Path:
    """Return the workflow file that a configuration names: a path in the repository, wherever the command is started."""
    return settings.home / Path(given).expanduser()


def _values_of(file: ConfigFile | None) -> dict[Key, Setting]:
    if file is None:
        return {}
    return {entry.key: Setting(value=entry.value, origin=Origin(file=str(file.path), line=entry.line)) for entry in file.entries}


def _read_variables(environ: Mapping[str, str]) -> tuple[dict[Key, Setting], list[Fault]]:
    """Read the variables that are set; an empty one is not."""
    values: dict[Key, Setting] = {}
    faults: list[Fault] = []
    for name in VARIABLES:
        if not (text := environ.get(name, "")):
            continue
        try:
            said = read_variable(name, text)
        except InvalidValue as error:
            faults.append(Fault(file=name, key=name, message=str(error).rstrip(".")))
            continue
        values |= {canonical(key): Setting(value=value, origin=Origin(variable=name)) for key, value in said.items()}
    return values, faults
