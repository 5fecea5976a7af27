"""YAML read to nodes instead of values, so that every complaint has a line and a column, and all come at once.

A `Reader` collects problems and never raises; what could not be read is None. It knows YAML, not workflows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import yaml

from agent_orchestrator.core.text import find_near
from agent_orchestrator.errors import InvalidSpec, OrcError, Problem, quote

VALUES_MAX = 200_000
"""Aliases can make a page expand to the size of the universe."""
DEPTH_MAX = 100

T = TypeVar("T")

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_UNREADABLE = (ValueError, OverflowError, LookupError)
"""The errors of YAML's own readers of scalars: `!!int x`, `!!bool maybe`, numbers of 5,000 digits and their like."""
_SCALARS = {_TAG + kind for kind in ("str", "int", "float", "bool", "null", "timestamp", "value")}


def compose(text: str, file: str) -> yaml.Node | None:
    """The document's root node; a syntax error is raised as InvalidSpec with its place."""
    try:
        _check_depth(text, file)
        root: yaml.Node | None = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(part for part in (error.context, error.problem) if part)
        place = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise InvalidSpec(file, [Problem(f"this is not YAML: {message}", *place)]) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        character = chr(error.character) if isinstance(error.character, int) else error.character
        place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        message = f"this is not YAML: the character {character!r} is not allowed"
        raise InvalidSpec(file, [Problem(message, *place)]) from None
    return root


def _check_depth(text: str, file: str) -> None:
    """The C composer recurses on the C stack and would take the process with it; the event stream does not."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH_MAX:
            mark = event.start_mark
            place = (mark.line + 1, mark.column + 1) if mark is not None else ()
            raise InvalidSpec(file, [Problem("the file is nested too deeply", *place)])


class Reader:
    """Reads nodes into values and remembers what was wrong."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._scalars = yaml.constructor.SafeConstructor()
        self._values = 0

    def complain(self, message: str, node: yaml.Node | None) -> None:
        """Notes a problem at the node's place."""
        mark = node.start_mark if node is not None else None
        self.problems.append(Problem(message, mark.line + 1 if mark else None, mark.column + 1 if mark else None))

    def mapping(self, node: yaml.Node, what: str, known: tuple[str, ...] | None) -> dict[str, yaml.Node]:
        """Keys to value nodes; duplicate keys, keys that are not text and keys not in `known` are problems."""
        if not isinstance(node, yaml.MappingNode):
            self.complain(f"{what} must be a mapping, not {kind_of(node)}", node)
            return {}
        entries: dict[str, yaml.Node] = {}
        merged: dict[str, yaml.Node] = {}
        for key_node, value in node.value:
            if key_node.tag == _MERGE:
                merged = self._merged(value, what) | merged
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self.complain(f"{what}: a key must be plain text", key_node)
                continue
            key = key_node.value
            if key in entries:
                self.complain(f"{what}: the key {key!r} is given twice", key_node)
            elif known is not None and key not in known:
                near = find_near(key, known)
                hint = f"; did you mean {near!r}?" if near is not None else f"; known keys are {', '.join(known)}"
                self.complain(f"{what}: unknown key {key!r}{hint}", key_node)
            else:
                entries[key] = value
        return merged | entries

    def _merged(self, node: yaml.Node, what: str) -> dict[str, yaml.Node]:
        """The mappings that `<<` names; of two with the same key the earlier wins."""
        merged: dict[str, yaml.Node] = {}
        for source in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(source, yaml.MappingNode):
                self.complain(f"{what}: '<<' must name a mapping", source)
                continue
            merged = {key.value: value for key, value in source.value if isinstance(key, yaml.ScalarNode)} | merged
        return merged

    def sequence(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        """The nodes of a list."""
        if not isinstance(node, yaml.SequenceNode):
            self.complain(f"{what} must be a list, not {kind_of(node)}", node)
            return []
        return list(node.value)

    def text(self, node: yaml.Node, what: str) -> str | None:
        """Text that is not empty."""
        if not isinstance(node, yaml.ScalarNode) or node.tag != _TAG + "str":
            hint = " (put it in quotes)" if isinstance(node, yaml.ScalarNode) and node.value and not is_null(node) else ""
            self.complain(f"{what} must be text, not {kind_of(node)}{hint}", node)
            return None
        if not node.value.strip():
            self.complain(f"{what} is empty", node)
            return None
        return str(node.value)

    def texts(self, node: yaml.Node, what: str) -> list[tuple[str, yaml.Node]]:
        """A list of texts, each with its node; null is an empty list."""
        if is_null(node):
            return []
        read = [(self.text(entry, f"an entry of {what}"), entry) for entry in self.sequence(node, what)]
        return [(text, entry) for text, entry in read if text is not None]

    def boolean(self, node: yaml.Node, what: str) -> bool:
        """True or false."""
        value = self.value(node, what) if isinstance(node, yaml.ScalarNode) else None
        if not isinstance(value, bool):
            self.complain(f"{what} must be true or false, not {kind_of(node)}", node)
            return False
        return value

    def checked(self, node: yaml.Node, what: str, read: Callable[[object, str], T]) -> T | None:
        """A scalar read by one of the strict readers of core, whose refusal becomes a problem."""
        if not isinstance(node, yaml.ScalarNode):
            self.complain(f"{what} must be a single value, not {kind_of(node)}", node)
            return None
        try:
            return read(self._scalar(node), what)
        except OrcError as error:
            self.complain(str(error), node)
        except _UNREADABLE:
            self.complain(f"{what}: {quote(node.value)} is not a valid value", node)
        return None

    def value(self, node: yaml.Node, what: str, above: tuple[yaml.Node, ...] = ()) -> Any:
        """Any JSON value; NaN, infinity, foreign tags and endless aliases are problems."""
        self._values += 1
        if self._values > VALUES_MAX or len(above) > DEPTH_MAX or any(node is other for other in above):
            if self._values <= VALUES_MAX + 1:
                self.complain(f"{what} expands without end or too far", node)
            return None
        below = (*above, node)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(entry, what, below) for entry in node.value]
        if isinstance(node, yaml.MappingNode):
            return {key: self.value(entry, what, below) for key, entry in self.mapping(node, what, None).items()}
        if node.tag not in _SCALARS:
            self.complain(f"{what}: the tag {node.tag!r} is not allowed", node)
            return None
        try:
            value = self._scalar(node)
        except _UNREADABLE:
            self.complain(f"{what}: {quote(node.value)} is not a valid value", node)
            return None
        if isinstance(value, int | float) and not _is_storable(value):
            self.complain(f"{what}: {quote(node.value)} is not a number that can be stored", node)
            return None
        return value

    def _scalar(self, node: yaml.Node) -> Any:
        if node.tag in {_TAG + "int", _TAG + "float", _TAG + "bool", _TAG + "null"}:
            return self._scalars.construct_object(node)
        return node.value


def _is_storable(value: float) -> bool:
    """Tell whether a number is one for every reader of JSON: finite, and a whole one of at most 64 bits."""
    return -(2**63) <= value < 2**64 if isinstance(value, int) else math.isfinite(value)


def is_null(node: yaml.Node) -> bool:
    """Tell whether the node says nothing (`key:` or `key: null`)."""
    return bool(node.tag == _TAG + "null")


def kind_of(node: yaml.Node) -> str:
    """Name the node's type as people would."""
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    kind = str(node.tag).removeprefix(_TAG)
    return {"null": "nothing", "str": f"the text {quote(node.value)}"}.get(kind, quote(node.value)[1:-1])
