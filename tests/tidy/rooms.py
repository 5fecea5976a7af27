"""Names of systems in modules that do not belong to them: in an import, as a class or a value, or as a literal."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agent_orchestrator.systems import SYSTEMS
from tests.tidy.source import Module

FREE = {
    "src/agent_orchestrator/systems/__init__.py": "the one line per system",
    "src/agent_orchestrator/errors.py": "the sentence of every error stands there, also of one that only loops raise",
    "src/agent_orchestrator/__init__.py": "library names, the options of each system among them",
    "src/agent_orchestrator/config/keys.py": "the key `run.workflow` of a configuration file",
    "src/agent_orchestrator/models.py": "library names for the state files of workflow runs",
}
"""Modules that may name a system, and why."""
ROOM = re.compile(r"src/agent_orchestrator/(?:systems|runs|surfaces/cli)/(\w+)/")


def list_named_systems(module: Module) -> Iterator[str]:
    """List every place where another system than the module's own is named; prose is free.

    A literal counts where no system is at home: the steps of a workflow have a key `loop` of their own.
    """
    if module.path in FREE:
        return
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
