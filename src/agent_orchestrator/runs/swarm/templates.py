"""Prompt templates: built in, from the workspace's `templates/`, or any file. Variables are strict, nothing is guessed.

A template may begin with a head between two lines of `---`; `verify:` in it names the command that judges the work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
import yaml

import agent_orchestrator.systems.swarm as package
from agent_orchestrator import typed
from agent_orchestrator.bounded import read_bounded_text
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.core.limits import REPORT_LIMIT_BYTES
from agent_orchestrator.errors import InvalidId, MissingPath, UsageError

FOLDER = "templates"
BUILT_IN = Path(package.__file__).parent / "prompts"

_HEAD = re.compile(r"---[ \t]*\n(.*?\n)?---[ \t]*(?:\n|\Z)", re.S)
_NAME = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt with variables, and what verifies the work done on it."""

    name: str
    text: str
    verify: str | None = None


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    verify: str | None = None


def built_in() -> list[str]:
    """The names of the templates that come with us."""
    return sorted(file.stem for file in BUILT_IN.glob("*.md"))


def read_template(given: str, home: Path) -> Template:
    """The template of that name, or in that file."""
    if "/" in given or given.endswith(".md"):
        file = Path(given).expanduser()
        if not file.is_file():
            raise MissingPath(what="The template", path=file)
    else:
        try:
            checked_id(given, "The template")
        except InvalidId:
            raise UsageError(detail=f"There is no template {given!r}; {_known(home)}.") from None
        places = [home / FOLDER / f"{given}.md", BUILT_IN / f"{given}.md"]
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise UsageError(detail=f"There is no template {given!r}; {_known(home)}, or give a file.")
        file = found
    return _parsed(file)


def fill(template: Template, variables: Mapping[str, str]) -> str:
    """The text with every `{name}` filled in; `{{` and `}}` are braces. An unknown name and an unused value are errors."""
    used: set[str] = set()

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return match[0][0]
        if name not in variables:
            known = ", ".join(sorted(variables))
            raise UsageError(detail=f"The template {template.name} uses {{{name}}}, which has no value; there are: {known}.")
        used.add(name)
        return variables[name]

    text = _NAME.sub(value, template.text)
    if "prompt" not in used:
        raise UsageError(detail=f"The template {template.name} has no {{prompt}}: the prompt would be lost.")
    return text


def unused(template: Template, given: Mapping[str, str]) -> list[str]:
    """Names of values that the template does not use."""
    names = {match[1] for match in _NAME.finditer(template.text) if match[1] is not None}
    return [name for name in given if name not in names]


def _parsed(file: Path) -> Template:
    try:
        text = read_bounded_text(file, REPORT_LIMIT_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(detail=f"The template {file} cannot be read: {error}.") from None
    match = _HEAD.match(text)
    if match is None:
        return Template(name=file.stem, text=text)
    try:
        head = typed.convert(yaml.safe_load(match[1] or "") or {}, _Head)
    except (yaml.YAMLError, msgspec.ValidationError, ValueError, OverflowError, LookupError) as error:
        said = " ".join(str(error).split())
        raise UsageError(detail=f"The head of the template {file} is not valid: {said}.") from None
    return Template(name=file.stem, text=text[match.end() :].lstrip("\n"), verify=head.verify)


def _known(home: Path) -> str:
    own = sorted(file.stem for file in (home / FOLDER).glob("*.md"))
    return f"there are: {', '.join(dict.fromkeys([*own, *built_in()]))}"
