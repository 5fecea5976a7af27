"""Groups of commands that know their commands' names and one-line helps without loading any of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

FOLDERS = "agent_orchestrator.surfaces.cli"


class LazyGroup(click.Group):
    """A file per command in a folder, imported when the command is used: `--help` stays instant.

    `elsewhere` names the modules of commands that stand in another folder.
    """

    def __init__(
        self, *given: Any, helps: Mapping[str, str], folder: str, elsewhere: Mapping[str, str] | None = None, **named: Any
    ) -> None:
        super().__init__(*given, **named)
        self.helps, self._folder, self._elsewhere = dict(helps), folder, elsewhere or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Alone, it shows its commands, as `orc` does; click would make an error of the whole help."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The order in which a person meets them."""
        return list(self.helps)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads one command."""
        if cmd_name not in self.helps:
            return None
        module = "import_" if cmd_name == "import" else cmd_name  # a word of Python's own
        place = self._elsewhere.get(cmd_name, f"{self._folder}.{module}")
        command: click.Command = import_module(f"{FOLDERS}.{place}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list under `--help`."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.helps.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes command names without loading the commands."""
        return [CompletionItem(name, help=text) for name, text in self.helps.items() if name.startswith(incomplete)]
