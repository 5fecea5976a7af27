"""Configuration files as keys with their values and lines, and every fault that they have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.agents.options import AgentSettings, read_settings
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.config.keys import KNOWN, NOTIFY, OTHER_WORDS, TABLES, Key, canonical, check_run_value
from agent_orchestrator.config.subscribers import read_subscriber
from agent_orchestrator.core.budget import read_budget
from agent_orchestrator.core.limits import SPEC_LIMIT_BYTES
from agent_orchestrator.core.text import find_near
from agent_orchestrator.errors import InvalidSpec, Problem, UsageError

TOP_KEYS = "publish, [run], [agents.NAME], [budget], [git], [web], [store], [telemetry] and [[notify]]"

_AT_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)\Z")

_ENDLESS = re.compile(r"[\d_]{1000}")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Something wrong in a file or a variable: its place, and what is meant instead where that can be guessed."""

    file: str
    line: int | None = None
    key: str = ""
    message: str
    suggestion: str | None = None

    @property
    def problem(self) -> Problem:
        """The fault as errors carry it."""
        return Problem(self.sentence, self.line)

    @property
    def sentence(self) -> str:
        """The message, with the suggestion."""
        return f"{self.message}; did you mean {self.suggestion}?" if self.suggestion is not None else f"{self.message}."


class ConfigEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One setting as a file has it."""

    key: Key
    """The key that it is kept under."""
    written: Key
    value: Any
    line: int | None


class ConfigFile(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration file: what it sets, and what is wrong with it."""

    path: Path
    entries: tuple[ConfigEntry, ...] = ()
    faults: tuple[Fault, ...] = ()

    def refuse_faults(self) -> None:
        """Raise InvalidSpec with every fault, each with its line."""
        if self.faults:
            raise InvalidSpec(str(self.path), [fault.problem for fault in self.faults])


def read_file(path: Path) -> ConfigFile | None:
    """Read a configuration file; None where there is none."""
    try:
        text = read_bounded(path, SPEC_LIMIT_BYTES).decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return _unreadable(path, f"the file cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        return _unreadable(path, f"the file is not TOML: {error}")
    import tomllib

    try:
        tables = tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        place = _AT_LINE.search(str(error))
        last = text.rstrip("\n").count("\n") + 1
        line = int(place[1]) if place is not None and place[1] else last
        return _unreadable(path, f"the file is not TOML: {_AT_LINE.sub('', str(error)).rstrip('.')}", line)
    except ValueError:  # Python reads no number of more than 4,300 digits
        found = _ENDLESS.search(text)
        return _unreadable(path, "a number is too long to be read", text.count("\n", 0, found.start()) + 1 if found else None)
    reader = _Reader(path, find_lines(text))
    reader.read((), tables)
    return ConfigFile(path=path, entries=tuple(reader.entries), faults=tuple(reader.faults))


def _unreadable(path: Path, message: str, line: int | None = None) -> ConfigFile:
    return ConfigFile(path=path, faults=(Fault(file=str(path), line=line, message=message),))


def find_lines(text: str) -> dict[Key, int]:
    """Return the line on which each key of a valid TOML document is first written, and each table of a list by its number.

    `tomllib` tells no lines, but it can tell where a statement ends: it cannot read one that is cut off.
    """
    import tomllib

    lines: dict[Key, int] = {}
    counts: dict[Key, int] = {}
    table: Key = ()
    statement: list[str] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        statement.append(line)
        try:
            said = tomllib.loads("\n".join(statement))
        except tomllib.TOMLDecodeError:
            continue
        first = number - len(statement) + 1
        if statement[0].lstrip().startswith("["):
            table = max(_paths(said), key=len, default=())
            if statement[0].lstrip().startswith("[["):
                counts[table] = counts.get(table, -1) + 1
                lines.setdefault(table, first)
                table = (*table, str(counts[table]))
            written = [table]
        else:
            written = [(*table, *path) for path in _paths(said)]
        for path in written:
            for depth in range(1, len(path) + 1):
                lines.setdefault(path[:depth], first)
        statement = []
    return lines


def _paths(said: Any) -> Iterator[Key]:
    """Yield the paths of a table; the entries of an array of tables count as one."""
    if isinstance(said, list) and said and isinstance(said[0], dict):
        yield from _paths(said[0])
    if isinstance(said, dict):
        for name, inner in said.items():
            yield (name,)
            yield from ((name, *path) for path in _paths(inner))


class _Reader:
    """Takes a document apart into settings; whatever is not one becomes a fault with its line."""

    def __init__(self, path: Path, lines: Mapping[Key, int]) -> None:
        self.entries: list[ConfigEntry] = []
        self.faults: list[Fault] = []
        self._path, self._lines = path, lines
        self._written: dict[Key, ConfigEntry] = {}

    def read(self, table: Key, said: Mapping[str, Any]) -> None:
        for name, value in said.items():
            key = (*table, name)
            known = _known_in(table)
            if known is not None and name not in known:
                self._complain_unknown(table, name, known)
            elif key == NOTIFY:
                self._read_list(key, value)
            elif key in TABLES or table == ("agents",):
                if isinstance(value, dict):
                    self.read(key, value)
                else:
                    self._complain(key, f"{_dotted(key)} must be a table, as in [{_example(key)}]")
            else:
                self._take(key, value)

    def _read_list(self, key: Key, said: Any) -> None:
        """Read a list of tables, each of which is kept whole under its name."""
        if not isinstance(said, list) or not all(isinstance(one, dict) for one in said):
            self._complain(key, f"{_dotted(key)} must be a list of tables, as in [[{_dotted(key)}]]")
            return
        for number, table in enumerate(said):
            place, known = (*key, str(number)), KNOWN[key]
            strange = [name for name in table if name not in known]
            for name in strange:
                self._complain_unknown(key, name, known, place)
            if strange:
                continue
            try:
                name = read_subscriber(table).name
            except UsageError as error:
                self._complain(place, str(error).rstrip("."))
            else:
                self._keep((*key, name), (*key, name), table, self._lines.get(place, self._lines.get(key)))

    def _take(self, key: Key, value: Any) -> None:
        try:
            _check_value(key, value)
        except UsageError as error:
            self._complain(key, str(error).rstrip("."))
            return
        self._keep(canonical(key), key, value, self._lines.get(key))

    def _keep(self, key: Key, written: Key, value: Any, line: int | None) -> None:
        entry = ConfigEntry(key=key, written=written, value=value, line=line)
        if (other := self._written.get(entry.key)) is not None:
            said = f"line {other.line}" if other.line is not None else "another line"
            if key[:1] == NOTIFY:
                self._complain(key, f"two [[notify]] have the name {key[1]}, see {said}; give one another name", line=line)
                return
            self._complain(written, f"{_dotted(written)} says the same as {_dotted(other.written)} in {said}; keep one of them")
            return
        self._written[entry.key] = entry
        self.entries.append(entry)

    def _complain(self, key: Key, message: str, suggestion: str | None = None, line: int | None = None) -> None:
        line = line if line is not None else self._lines.get(key)
        self.faults.append(Fault(file=str(self._path), line=line, key=_dotted(key), message=message, suggestion=suggestion))

    def _complain_unknown(self, table: Key, name: str, known: tuple[str, ...], place: Key | None = None) -> None:
        near = OTHER_WORDS.get((*table, name)) or find_near(name, known)
        where = f"[{_dotted(table)}]: " if table else ""
        where = f"[{where[:-2]}]: " if place is not None else where
        listed = ", ".join(known) if table else TOP_KEYS
        more = "" if near is not None else f"; there are {listed}"
        self._complain((*(place or table), name), f"{where}unknown key {name}{more}", near)


def _known_in(table: Key) -> tuple[str, ...] | None:
    """Return the keys that a table may have; None where they are names of somebody's own."""
    if len(table) == 2 and table[0] == "agents":
        return AgentSettings.__struct_encode_fields__
    return KNOWN.get(table)


def _check_value(key: Key, value: Any) -> None:
    """Raise a UsageError for what a key cannot be."""
    if key[0] == "agents":
        read_settings({key[2]: value}, f"[agents.{key[1]}]")
    elif key[0] == "budget":
        read_budget({key[1]: value}, "[budget]")
    else:
        check_run_value(key, value)


def _dotted(key: Key) -> str:
    return ".".join(key)


def _example(key: Key) -> str:
    return "agents.claude" if key[0] == "agents" else _dotted(key)
