"""`orc help`: the pages of the documentation, and the help of any command, without a browser."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from agent_orchestrator.core.text import find_near
from agent_orchestrator.errors import UsageError
from agent_orchestrator.surfaces.cli.options import command as make_command

EXAMPLE = """
orc help
orc help budgets
orc help loop run
"""

LINK = re.compile(r"!?\[([^\]]*)\]\(([^)]*)\)")
INTERNAL = {"cli", "index", "style"}
"""Pages for the site and for contributors; `--help` has what cli.md has."""


def _pages() -> dict[str, Path]:
    """Return the pages by topic: installed they are part of the package, in a clone they stand in docs/."""
    package = Path(__file__).parents[3]
    folder = package / "help"
    if not folder.is_dir():
        folder = package.parents[1] / "docs"
    return {page.stem: page for page in sorted(folder.glob("*.md")) if page.stem not in INTERNAL}


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    commands = ctx.find_root().command
    known = [*(commands.list_commands(ctx) if isinstance(commands, click.Group) else ()), *_pages()]
    return [CompletionItem(name) for name in known if name.startswith(incomplete)]


@make_command("help", EXAMPLE)
@click.argument("topic", nargs=-1, shell_complete=_complete)
def command(topic: tuple[str, ...], repo: str | None, as_json: bool) -> int:
    """Show a page of the documentation, or the help of a command.

    Without TOPIC, lists the pages.
    """
    pages = _pages()
    if not topic:
        _list(pages, as_json=as_json)
        return 0
    # The page first: `orc team --help` shows the command of that name.
    page = pages.get(" ".join(topic))
    text = _plain(page.read_text("utf-8")) if page is not None else _command_help(topic)
    if text is None:
        raise UsageError(detail=_say_unknown(" ".join(topic), list(pages)))
    if as_json:
        from agent_orchestrator.surfaces.cli.screen import print_json

        print_json({"topic": " ".join(topic), "text": text})
    elif sys.stdout.isatty():
        click.echo_via_pager(text)
    else:
        click.echo(text)
    return 0


def _list(pages: dict[str, Path], *, as_json: bool) -> None:
    titles = {name: page.open(encoding="utf-8").readline().lstrip("# ").rstrip() for name, page in pages.items()}
    if as_json:
        from agent_orchestrator.surfaces.cli.screen import print_json

        print_json({"topics": titles})
        return
    width = max(map(len, titles), default=0)
    for name, title in titles.items():
        click.echo(f"{name:<{width}}  {title}")
    click.echo("\norc help TOPIC shows a page, orc help COMMAND the help of a command.")


def _command_help(words: tuple[str, ...]) -> str | None:
    """Return the help of a command, or None when the words name none."""
    context = click.get_current_context().find_root()
    for word in words:
        group = context.command
        found = group.get_command(context, word) if isinstance(group, click.Group) else None
        if found is None:
            return None
        context = click.Context(found, info_name=word, parent=context)
    return context.get_help()


def _say_unknown(topic: str, known: list[str]) -> str:
    near = find_near(topic, known)
    meant = f" Did you mean {near}?" if near is not None else ""
    return f"There is no command or page {topic!r}.{meant} `orc help` lists the pages, `orc --help` the commands."


def _plain(text: str) -> str:
    """Return a page as a terminal shows it best: pictures left out, a link to a page as the command that shows it."""

    def word(link: re.Match[str]) -> str:
        if link[0].startswith("!"):
            return ""
        page = link[2].partition("#")[0]
        known = page.endswith(".md") and "/" not in page and page.removesuffix(".md") not in INTERNAL
        return f"{link[1]} (orc help {page.removesuffix('.md')})" if known else link[1]

    return LINK.sub(word, text).strip()
