"""The user's word for what a repository's file asks for: which settings need it, and where it is kept.

A file that came with a clone, or that an agent has edited, must not choose a program that is started here, nor what agents may
do, nor raise what they may spend. Such settings count once the user has said so, for exactly these values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.config import Settings, config_files, data_folder
from agent_orchestrator.config.documents import ConfigEntry, ConfigFile, Fault, read_file
from agent_orchestrator.config.keys import (
    MCP,
    NOTIFY,
    SHOWN_REPOSITORIES,
    STORE_REPOSITORY,
    STORE_ROOT,
    STORE_URL,
    TASK_FILE,
    TELEMETRY_ENDPOINT,
    TRUSTED_REPOSITORIES,
    Key,
)
from agent_orchestrator.config.walls import find_weakening
from agent_orchestrator.core.units import read_count, read_duration_s, read_money
from agent_orchestrator.errors import Unavailable, UsageError

PLAIN_AGENTS = frozenset({"claude", "codex", "gemini", "opencode"})
"""Agents that are one known program each; the others start whatever they are told to."""
FREE = frozenset({"model", "max_turns", "denials", "account", "prompt_mode", "output", "usage", "usage_counts"})
"""Settings of an agent that start nothing and permit nothing."""
SHOWN = 4

_PROGRAM, _PERMISSION, _VARIABLE = "names a program to start", "says what agents may do", "says what agents get to see"
_OF_AGENTS = {
    **dict.fromkeys(("binary", "command", "args", "adapter"), _PROGRAM),
    **dict.fromkeys(("env", "pass_env", "pass_credentials"), _VARIABLE),
    "prices": "says what counts as spent",
}
_OF_RUNS = {
    ("run", "agent"): _PROGRAM,
    ("run", "check"): _PROGRAM,
    TASK_FILE: _PROGRAM,
    ("run", "notify", "on_wait"): _PROGRAM,
    ("run", "notify", "on_end"): _PROGRAM,
    ("run", "permissions", "mode"): _PERMISSION,
    ("run", "permissions", "allow_tools"): _PERMISSION,
    ("run", "publish"): "sends work to the remote",
    MCP: _PERMISSION,
    ("budget", "allow_unmetered"): "lifts the budget",
}

_MISPLACED = {
    TRUSTED_REPOSITORIES: "says which repositories to trust",
    SHOWN_REPOSITORIES: "says which repositories are shown",
}


class Guarded(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of a repository's file that needs the user's word, and why."""

    entry: ConfigEntry
    why: str


def list_repositories(settings: Settings, key: Key = TRUSTED_REPOSITORIES) -> tuple[Path, ...]:
    """Return the repositories of a setting, those that the user trusts without one: only the user's own file counts."""
    home = settings.environ.get("HOME", "")
    return tuple(
        Path(home + one[1:] if one.startswith("~/") else one).resolve()
        for path in config_files(settings)[:-1]
        if (file := read_file(path)) is not None
        for entry in file.entries
        if entry.key == key
        for one in entry.value
    )


def find_misplaced(file: ConfigFile) -> tuple[Fault, ...]:
    """Find settings of a repository's file by which it would speak for others, or trust itself: nobody can agree to these."""
    return tuple(
        Fault(
            file=str(file.path),
            line=entry.line,
            key=".".join(entry.written),
            message=f"[{entry.key[0]}] {_MISPLACED[entry.key]}, and an agent may write here; move it to your own configuration",
        )
        for entry in file.entries
        if entry.key in _MISPLACED
    )


def find_guarded(file: ConfigFile, users: Mapping[Key, Any]) -> tuple[Guarded, ...]:
    """Return the settings of a repository's file that need the user's word, given what the user's own file sets."""
    found = ((entry, _why(entry.key, entry.value, users)) for entry in file.entries)
    return tuple(Guarded(entry=entry, why=why) for entry, why in found if why is not None)


def _why(key: Key, value: Any, users: Mapping[Key, Any]) -> str | None:
    if key[0] == "agents":
        free = key[2] in FREE or (key[2] == "adapter" and value in PLAIN_AGENTS) or (key[2] == "pass_credentials" and not value)
        return None if free else _OF_AGENTS.get(key[2], _PERMISSION)
    if key in (TELEMETRY_ENDPOINT, STORE_URL, STORE_REPOSITORY, STORE_ROOT):
        return "sends what happens here to others"
    if key[:1] == NOTIFY:
        return _PROGRAM if str(value.get("url")).startswith("command:") else "sends what happens here to others"
    if key == ("run", "agent") or key[:2] == ("run", "roles"):
        name = str(value).partition(":")[0]
        is_name = " " not in str(value) and "/" not in name and name not in ("command", "scripted", "shell", "wrapper")
        return None if is_name else _PROGRAM
    if key in (("run", "publish"), ("budget", "allow_unmetered"), MCP):
        return _OF_RUNS[key] if value else None
    if key in _OF_RUNS:
        return _OF_RUNS[key]
    if (weaker := find_weakening(key, value, users.get(key))) is not None:
        return weaker
    limits = key[0] == "budget" or key in (("run", "budget"), ("run", "day_budget"))
    raised = limits and key in users and _amount(key, value) > _amount(key, users[key])
    return "is more than your own file allows" if raised else None


def _amount(key: Key, value: Any) -> float:
    kind = key[-1].rpartition("_")[2]
    if kind == "time":
        return read_duration_s(value, key[-1])
    return read_count(value, key[-1]) if kind == "tokens" else read_money(value, key[-1])


def refuse_untrusted(settings: Settings, file: ConfigFile, guarded: tuple[Guarded, ...]) -> None:
    """Raise a UsageError for settings that the user has not agreed to."""
    if is_trusted(settings, guarded):
        return
    first, more = guarded[0], [".".join(one.entry.written) for one in guarded[1 : SHOWN + 1]]
    also = f" (and {', '.join(more)}{', …' if len(guarded) > SHOWN + 1 else ''})" if more else ""
    what = f"{'.'.join(first.entry.written)} {first.why}{also}"
    where = f"{file.path}:{first.entry.line}" if first.entry.line is not None else str(file.path)
    raise UsageError(detail=f"{where}: {what}, and nobody has agreed to that: read the file, then run `orc config trust`.")


def is_trusted(settings: Settings, guarded: tuple[Guarded, ...]) -> bool:
    """Tell whether the user has agreed to exactly these settings, or trusts whatever stands in this folder."""
    if not guarded or _is_below(settings.home, settings.environ.get("ORC_TRUSTED_PATHS", "")):
        return True
    folder = _folder(settings)
    return folder is not None and (folder / _name(settings, guarded)).is_file()


def trust(settings: Settings, guarded: tuple[Guarded, ...]) -> Path:
    """Keep the user's word for exactly these settings; raise Unavailable where it cannot be kept."""
    folder = _folder(settings)
    if folder is None:
        raise Unavailable(detail="There is no place to keep your word: HOME is not set; set it, or ORC_TRUSTED_PATHS.")
    record = folder / _name(settings, guarded)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        record.write_text(f"{settings.folder}\n", "utf-8")
    except OSError as error:
        raise Unavailable(detail=f"{record} cannot be written: {error.strerror}.") from error
    return record


def withdraw(settings: Settings) -> int:
    """Take back whatever the user has agreed to for this repository; return the number of records."""
    folder = _folder(settings)
    records = list(folder.glob("*")) if folder is not None else []
    mine = [record for record in records if record.read_text("utf-8", "replace").rstrip("\n") == str(settings.folder)]
    for record in mine:
        record.unlink(missing_ok=True)
    return len(mine)


def _folder(settings: Settings) -> Path | None:
    data = data_folder(settings)
    return data / "trusted" if data is not None else None


def _name(settings: Settings, guarded: Iterable[Guarded]) -> str:
    """Return a name for these values in this repository: another value, or another repository, has another."""
    said = sorted((one.entry.key, msgspec.json.encode(one.entry.value, order="deterministic")) for one in guarded)
    whole = repr((str(settings.folder), said)).encode("utf-8", "surrogateescape")
    return hashlib.sha256(whole).hexdigest()


def _is_below(home: Path, paths: str) -> bool:
    places = [Path(one).expanduser() for one in paths.split(":") if one]
    return any(home == place or home.is_relative_to(place.resolve()) for place in places)
