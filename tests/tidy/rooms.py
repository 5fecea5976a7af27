"""Where a module names a system that it does not belong to: by an import, by a class or a value, or by a literal."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agent_orchestrator.systems import SYSTEMS
from tests.tidy.source import Module

ROOM = re.compile(r"src/agent_orchestrator/(?:systems|runs|surfaces/cli)/(\w+)/")


def list_named_systems(module: Module) -> Iterator[str]:
    """Every place where another system than the module's own is named; prose is free.

    A literal counts where no system is at home: the steps of a workflow have a key `loop` of their own.
    """
    room = match[1] if (match := ROOM.match(module.path)) is not None else ""
    others = [name for name in SYSTEMS if name != room]
    rooms = re.compile(rf"\b(?:systems|runs|cli)\.(?:{'|'.join(others)})\b")
    names = re.compile(rf"(?:{'|'.join(name.capitalize() for name in others)})[A-Z]|(?:{'|'.join(others).upper()})$")
    for node, imported in module.imports():
        if rooms.search(imported):
            yield f"{module.at(node)}: {imported}"
    for node in module.nodes(ast.Name, ast.Attribute, ast.ClassDef, ast.Constant):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.ClassDef(name=name) if names.match(name):
                yield f"{module.at(node)}: {name}"
            case ast.Constant(value=str() as text) if text in SYSTEMS and room not in SYSTEMS:
                yield f"{module.at(node)}: {text!r}"
