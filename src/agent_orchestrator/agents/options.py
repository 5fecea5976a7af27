"""The settings of an agent in a configuration file; stored with a run, so that a resume does the same thing.

`AgentSettings` is one `[agents.NAME]` table. Reading files is `config/`'s; which settings an agent understands is
its adapter's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.agents import ADAPTERS
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.text import find_near
from agent_orchestrator.core.units import COUNT_MAX, MONEY_MAX_USD
from agent_orchestrator.errors import InvalidValue, UsageError

MILLION = 1_000_000


class Price(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """US dollars for a million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One agent. Without `adapter` it goes by its own name or, with `argv`, is a program like any other."""

    adapter: str | None = None
    model: str | None = None
    env: dict[str, str] = {}
    pass_env: tuple[str, ...] = ()
    prices: dict[str, Price] = {}
    """By model; `default` is for all others."""
    account: str | None = None
    """Whose rate limits it is under, where several agents share one or one agent has several."""
    pass_credentials: bool = True
    """True hands on its own vendor's variables; without them it has to be logged in itself."""

    binary: str | None = None
    permission_mode: str | None = None
    allowed_tools: tuple[str, ...] = ()
    add_dirs: tuple[str, ...] = ()
    mcp_config: str | None = None
    system_prompt: str | None = None
    max_turns: int | None = None
    args: tuple[str, ...] = ()
    denials: Literal["fail", "warn"] = "warn"
    """`fail` fails an attempt in which a tool was refused."""

    argv: tuple[str, ...] | None = msgspec.field(default=None, name="command")
    prompt_mode: Literal["stdin", "argv", "file"] = "stdin"
    output: Literal["text", "report-file", "json-lines"] = "text"
    usage: dict[Literal["input", "output", "cache_read", "cache_write", "cost_usd", "session", "model"], str] = {}
    """Their places in the JSON lines, as dotted paths."""
    usage_counts: Literal["last", "sum"] = "last"


BASICS = frozenset({"adapter", "model", "env", "pass_env", "prices", "account"})
"""Settings that every agent understands."""
PROGRAM = BASICS | {"argv", "prompt_mode", "output", "usage", "usage_counts"}
"""Those of an agent that is defined by its command."""


def read_settings(table: object, where: str) -> AgentSettings:
    """Read one table of a configuration file; a UsageError names the file and the key at fault."""
    if not isinstance(table, dict):
        raise UsageError(detail=f"{where} must be a table.")
    known = AgentSettings.__struct_encode_fields__
    for key in table:
        if key not in known:
            near = find_near(key, known)
            hint = f"did you mean {near}?" if near is not None else f"known keys are {', '.join(known)}."
            raise UsageError(detail=f"{where}: unknown key {key}; {hint}")
    settings = _convert_table(table, where)
    for model, price in settings.prices.items():
        for kind in price.__struct_fields__:
            value = getattr(price, kind)
            if value is not None and not 0 <= value <= MONEY_MAX_USD:
                raise UsageError(detail=f"{where}: prices.{model}.{kind} is {value}; it must be US dollars per million tokens.")
    if settings.max_turns is not None and settings.max_turns > COUNT_MAX:
        raise InvalidValue(what=f"{where}: max_turns", value=settings.max_turns, expected=f"at most {COUNT_MAX}")
    return settings


def settings_of(choice: AgentChoice, understood: frozenset[str]) -> AgentSettings:
    """Read the settings stored with a choice; raise a UsageError for one that its adapter does not understand."""
    table = {"command" if key == "argv" else key: value for key, value in choice.options.items()}
    settings = read_settings(table, f"The agent {choice.name}")
    if settings.max_turns is not None and settings.max_turns < 1:
        raise InvalidValue(what=f"max_turns of the agent {choice.name}", value=settings.max_turns, expected="at least 1")
    foreign = [key for key in choice.options if key not in understood]
    if foreign:
        names = {"argv": "command"}
        known = ", ".join(sorted(names.get(key, key) for key in understood))
        detail = f"The agent {choice.name} has no setting {names.get(foreign[0], foreign[0])}; it understands {known}."
        raise UsageError(detail=detail)
    words = (*settings.args, *(settings.argv or ()), *settings.add_dirs, *settings.allowed_tools, settings.binary or "")
    if any("\0" in word for word in (*words, settings.system_prompt or "", settings.mcp_config or "")):
        raise InvalidValue(what=f"A setting of the agent {choice.name}", value="…", expected="text without NUL bytes")
    return settings


def resolve_agent(choice: AgentChoice, agents: Mapping[str, AgentSettings]) -> AgentChoice:
    """Return the choice completed by the configuration of its name; explicit choices win."""
    settings = agents.get(choice.name)
    if settings is None and choice.performer not in ADAPTERS:
        known = ", ".join(dict.fromkeys((*ADAPTERS, *agents)))
        raise UsageError(detail=f"There is no agent {choice.name!r}; there are: {known}.")
    if settings is None:
        return msgspec.structs.replace(choice, configured={})
    adapter = settings.adapter or ("command" if settings.argv is not None else "")
    if not adapter and choice.name not in ADAPTERS:
        raise UsageError(detail=f"[agents.{choice.name}] has no `command` and no `adapter`: nobody knows what to start.")
    if adapter and adapter not in ADAPTERS:
        detail = f"[agents.{choice.name}]: adapter is {adapter}; it must be one of {', '.join(ADAPTERS)}."
        raise UsageError(detail=detail)
    inherited = agents.get(adapter) if adapter != choice.name else None
    options: dict[str, Any] = {**encode_options(inherited), **encode_options(settings)} if inherited else encode_options(settings)
    model = settings.model or (inherited.model if inherited else None)
    configured = options if model is None else {**options, "model": model}
    given = {**options, **choice.options}
    return AgentChoice(name=choice.name, model=choice.model or model, adapter=adapter, options=given, configured=configured)


def encode_options(settings: AgentSettings) -> dict[str, Any]:
    """Return the settings as plain data: only what was set."""
    table: dict[str, Any] = msgspec.to_builtins(settings)
    if "command" in table:
        table["argv"] = table.pop("command")
    return {key: value for key, value in table.items() if key not in ("adapter", "model")}


def silence_s(given_s: float | None, agent: object) -> float | None:
    """Return the time that an agent may be silent: as given, where 0 is for ever, else its adapter's; None is for ever."""
    own: float | None = getattr(agent, "idle_timeout_s", None)
    return own if given_s is None else given_s or None


def price_usage(usage: Usage, choice: AgentChoice) -> Usage:
    """Return the usage with its cost, where the agent reports tokens only and there are prices; unknown stays unknown."""
    if usage.cost_usd is not None or not choice.options.get("prices"):
        return usage
    prices = typed.convert(choice.options["prices"], dict[str, Price])
    price = prices.get(usage.model or choice.model or "") or prices.get("default")
    if price is None or usage.input_tokens is None or usage.output_tokens is None:
        return usage
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens or 0, usage.cache_write_tokens or 0)
    rates = (price.input, price.output, price.cache_read, price.cache_write)
    if any(count and rate is None for count, rate in zip(counts, rates, strict=True)):
        return usage
    cost = sum(count * (rate or 0.0) for count, rate in zip(counts, rates, strict=True)) / MILLION
    return msgspec.structs.replace(usage, cost_usd=cost)


def _convert_table(table: dict[str, Any], where: str) -> AgentSettings:
    for key, value in table.items():
        try:
            typed.convert({key: value}, AgentSettings)
        except msgspec.ValidationError as error:
            words = f"; there are {', '.join(_words(key))}" if "enum" in str(error) else ""
            raise UsageError(detail=f"{where}: {key}: {error}{words}.") from None
    return typed.convert(table, AgentSettings)


def _words(key: str) -> tuple[str, ...]:
    """Return the words to choose from for a setting that has such."""
    kind = get_type_hints(AgentSettings)[key]
    return next(get_args(one) for one in (kind, *get_args(kind)) if get_origin(one) is Literal)
