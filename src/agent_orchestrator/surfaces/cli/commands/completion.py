"""`orc completion`: the script that teaches a shell to complete commands, runs and steps."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command

EXAMPLE = """
eval "$(orc completion bash)"
orc completion fish > ~/.config/fish/completions/orc.fish
"""


@make_command("completion", EXAMPLE)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str, repo: str | None, as_json: bool) -> int:
    """Print a shell's completion script."""
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None
    complete = kind(root, {}, "orc", "_ORC_COMPLETE")
    # Not .source(): for bash that starts a bash to look at its version.
    script = complete.source_template % complete.source_vars()
    if as_json:
        import json

        click.echo(json.dumps({"shell": shell, "script": script}, indent=2))
    else:
        click.echo(script)
    return 0
