"""Scripts of the scripted agent: a YAML list of rules, read strictly, with every fault and its line.

    - step: code              # which parts the rule plays; wildcards, all four are optional
      iteration: 0
      write: {src/app.py: "print('hello')\\n"}
      takes: 2s
    - step: "*"
      report: {status: COMPLETED, summary: all good}

The first rule that matches plays; where none does, the part is COMPLETED at once.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import yaml

from agent_orchestrator.bounded import TooLarge, read_bounded_text
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.limits import SPEC_LIMIT_BYTES
from agent_orchestrator.core.units import COUNT_MAX, MONEY_MAX_USD, read_duration_s
from agent_orchestrator.errors import InvalidSpec, MissingPath, OrcError, Problem, quote

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """The actions of a matching part of the play."""

    step: str = "*"
    role: str = "*"
    iteration: str = "*"
    attempt: str = "*"
    write: dict[str, str] = {}
    append: dict[str, str] = {}
    delete: tuple[str, ...] = ()
    say: str = ""
    report: dict[str, Any] | None = {}
    """Laid over the report that is written by default; None (`report: null`) writes none."""
    malformed_report: str | None = None
    gate_failure: str | bool | None = None
    fail: str | None = None
    exit: int = 0
    hang: bool = False
    takes: float = 0.0
    cost_usd: float | None = None
    tokens: dict[str, int] = {}

    def matches(self, step: str, role: str, iteration: str, attempt: str) -> bool:
        """Return True if this rule plays the part."""
        return (
            (self.step == "*" or fnmatchcase(step, self.step))
            and (self.role == "*" or fnmatchcase(role, self.role))
            and (self.iteration == "*" or fnmatchcase(iteration, self.iteration))
            and (self.attempt == "*" or fnmatchcase(attempt, self.attempt))
        )

    @property
    def usage(self) -> Usage | None:
        """The usage that the rule states; None when it states none."""
        if self.cost_usd is None and not self.tokens:
            return None
        return Usage(
            cost_usd=self.cost_usd,
            input_tokens=self.tokens.get("input"),
            output_tokens=self.tokens.get("output"),
            cache_read_tokens=self.tokens.get("cache_read"),
            cache_write_tokens=self.tokens.get("cache_write"),
        )


_read: dict[str, tuple[int, int, tuple[Rule, ...]]] = {}
"""Scripts by path, with the time and size of the file they were read from."""


def load_script(path: Path) -> tuple[Rule, ...]:
    """Read the rules of a script file, again only when the file changed."""
    try:
        status = path.stat()
        known = _read.get(str(path))
        if known is not None and known[:2] == (status.st_mtime_ns, status.st_size):
            return known[2]
        text = read_bounded_text(path, SPEC_LIMIT_BYTES)
    except FileNotFoundError:
        raise MissingPath(what="The script", path=path) from None
    except TooLarge:
        raise InvalidSpec(str(path), [Problem(f"the script is larger than {SPEC_LIMIT_BYTES:,} bytes")]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSpec(str(path), [Problem(f"the script cannot be read: {error}")]) from error
    rules = parse_script(text, str(path))
    _read[str(path)] = (status.st_mtime_ns, status.st_size, rules)
    return rules


def parse_script(text: str, file: str) -> tuple[Rule, ...]:
    """Read the rules in the text; raise an InvalidSpec with all that is wrong with them."""
    problems: list[Problem] = []
    loader = Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return ()
        if not isinstance(root, yaml.SequenceNode):
            raise InvalidSpec(file, [_problem("a script is a list of rules, each beginning with '- '", root)])
        rules = [_read_rule(loader, node, problems) for node in root.value]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
        raise InvalidSpec(file, [Problem(str(error.problem), *place)]) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidSpec(file, [Problem(f"this is not YAML: {error}")]) from None
    finally:
        loader.dispose()
    if problems:
        raise InvalidSpec(file, problems)
    return tuple(rules)


def _read_rule(loader: Any, node: Any, problems: list[Problem]) -> Rule:
    if not isinstance(node, yaml.MappingNode):
        problems.append(_problem("a rule is a mapping such as `step: code`", node))
        return Rule()
    fields: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
        read = _READERS.get(key)
        if read is None:
            problems.append(_problem(f"unknown key {quote(key)}; a rule has: {', '.join(_READERS)}", key_node))
        elif key in fields:
            problems.append(_problem(f"{key} stands twice in this rule", key_node))
        else:
            fields[key] = None
            try:
                fields[key] = read(loader.construct_object(value_node, deep=True))
            except (ValueError, OverflowError, LookupError, OrcError) as error:
                problems.append(_problem(f"{key}: {error}", value_node))
    if fields.get("malformed_report") is not None and "report" in fields:
        problems.append(_problem("report and malformed_report exclude each other", node))
    return Rule(**{key: value for key, value in fields.items() if value is not None or key == "report"})


def _problem(message: str, node: Any) -> Problem:
    return Problem(message, node.start_mark.line + 1, node.start_mark.column + 1)


def _pattern(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{quote(value)} is not a name, a number or a pattern such as 'code*'")
    return str(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{quote(value)} is not a text; put it in quotes")
    return value


def _path(value: object) -> str:
    path = _text(value)
    parts = PurePosixPath(path)
    if not parts.parts or parts.is_absolute() or ".." in parts.parts or "\0" in path:
        raise ValueError(f"{quote(path)} is not a path inside the working tree")
    return path


def _texts_by_path(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f"{quote(value)} is not a mapping of paths to texts")
    return {_path(path): _text(text) for path, text in value.items()}


def _paths(value: object) -> tuple[str, ...]:
    return tuple(_path(path) for path in (value if isinstance(value, list) else [value]))


def _object(value: object) -> dict[str, Any] | None:
    if value is not None and (not isinstance(value, dict) or not all(isinstance(key, str) for key in value)):
        raise ValueError(f"{quote(value)} is not a mapping (or null, for no report)")
    try:
        msgspec.json.encode(value)
    except TypeError as error:
        raise ValueError(f"it cannot be written as JSON: {error}") from None
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{quote(value)} is not true or false")
    return value


def _gate_failure(value: object) -> str | bool:
    return value if isinstance(value, bool) else _text(value)


def _exit_code(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 255:
        raise ValueError(f"{quote(value)} is not an exit code from 0 to 255")
    return value


def _cost(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MONEY_MAX_USD:
        raise ValueError(f"{quote(value)} is not an amount of dollars")
    return float(value)


def _tokens(value: object) -> dict[str, int]:
    kinds = ("input", "output", "cache_read", "cache_write")
    if not isinstance(value, dict) or not set(value) <= set(kinds):
        raise ValueError(f"{quote(value)} is not a mapping of {', '.join(kinds)} to counts")
    for count in value.values():
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= COUNT_MAX:
            raise ValueError(f"{quote(count)} is not a count of tokens")
    return value


_READERS: dict[str, Callable[[object], Any]] = {
    "step": _pattern,
    "role": _pattern,
    "iteration": _pattern,
    "attempt": _pattern,
    "write": _texts_by_path,
    "append": _texts_by_path,
    "delete": _paths,
    "say": _text,
    "report": _object,
    "malformed_report": _text,
    "gate_failure": _gate_failure,
    "fail": _text,
    "exit": _exit_code,
    "hang": _flag,
    "takes": lambda value: read_duration_s(value, "takes"),
    "cost_usd": _cost,
    "tokens": _tokens,
}
