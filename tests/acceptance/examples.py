"""The examples of the README, the other pages and every `--help`, as lines of shell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from agent_orchestrator.surfaces.cli.main import orc
from tests.acceptance.rig import ROOT

README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
SHELL = {"sh", "console", "bash"}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
INLINE = re.compile(r"`([^`\n]+)`")

_COMMENT = re.compile(r"\s+#.*")
_CLIENT = re.compile(r"(?<![\w./-])(claude|codex|gemini|opencode)\b(?!/)")
_HEADING = re.compile(r"^Examples?:$")


class Example(NamedTuple):
    """A line that a page or a help text tells people to type."""

    where: str
    line: str

    @property
    def clients(self) -> list[str]:
        """The coding agents that it names, by their own names or by that of a tool."""
        named = {*_CLIENT.findall(self.line), *(["claude"] if "Bash(" in self.line else [])}
        return sorted(named)


def help_examples(command: click.Command, context: click.Context) -> Iterator[Example]:
    """Every line under `Example:` of a `--help`, with the command that it stands under, those of the commands in it included."""
    told = [line.strip() for line in (command.epilog or "").strip("\b\n").splitlines()]
    if told and _HEADING.match(told[0]):
        yield from (Example(f"{context.command_path} --help", line) for line in told[1:] if line)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from help_examples(found, click.Context(found, info_name=inner, parent=context))


def all_help_examples() -> list[Example]:
    """Those of the whole program."""
    return list(help_examples(orc, click.Context(orc, info_name="orc", **orc.context_settings)))


def page_examples(page: Path) -> Iterator[Example]:
    """Every line of a page's pieces of shell, and every `jq …` in its text; what is shown with its output is not among them."""
    whole = page.read_text("utf-8")
    queries = (code for code in INLINE.findall(FENCE.sub("", whole)) if code.startswith("jq "))
    yield from (Example(str(page.relative_to(ROOT)), code) for code in queries)
    for kind, text in FENCE.findall(whole):
        if kind in SHELL - {"console"}:
            lines = (_COMMENT.sub("", line).strip() for line in text.replace("\\\n", " ").splitlines())
            yield from (Example(str(page.relative_to(ROOT)), line) for line in lines if line and not line.startswith("#"))


def unique(examples: list[Example]) -> list[Example]:
    """Each line once, where it was seen first."""
    return list({example.line: example for example in reversed(examples)}.values())[::-1]


EXAMPLES = unique([*all_help_examples(), *(example for page in PAGES for example in page_examples(page))])
