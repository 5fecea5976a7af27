"""The rules about names and sentences."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePath

from tests.tidy.source import Module, modules, package

RIDDLES = frozenset({"What", "Whether", "Where", "Everything", "Who", "How", "Why"})
GERUNDS = frozenset({"doing", "judging", "placing", "testing"})
"""Modules and packages whose name ends in -ing and is a noun all the same."""

_EVENTS = re.compile(r"/(?:core|systems/\w+)/events\.py")
_HAS_DOCSTRING = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def find_shared_names() -> Iterator[str]:
    """Find public classes of the same name; events may share theirs with those of another system and with their base."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in package():
        for node in module.nodes(ast.ClassDef):
            assert isinstance(node, ast.ClassDef)
            if not node.name.startswith("_"):
                places[node.name].append(module.at(node))
    for name, found in sorted(places.items()):
        if len(found) > 1 and not all(_EVENTS.search(place) for place in found):
            yield f"{name}: {', '.join(found)}"


def _docstrings(module: Module) -> Iterator[ast.Constant]:
    """Find the docstrings of modules, classes and functions, and the texts that stand below fields and constants."""
    for node in module.nodes(ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef):
        assert isinstance(node, _HAS_DOCSTRING)
        body = node.body[:1] if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else node.body
        for line in body:
            if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str):
                yield line.value


def find_riddles() -> Iterator[str]:
    """Find docstrings that open with a question word instead of a noun or a verb."""
    for module in modules():
        for text in _docstrings(module):
            if re.split(r"\W", str(text.value).strip(), maxsplit=1)[0] in RIDDLES:
                yield f"{module.at(text)}: {str(text.value).splitlines()[0]}"


def find_gerunds() -> Iterator[str]:
    """Find modules and folders that are named after a doing."""
    for module in package():
        named = PurePath(module.path).with_suffix("").parts[2:]
        if any(part.endswith("ing") and part not in GERUNDS for part in named):
            yield module.path
