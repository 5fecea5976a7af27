"""docs/cli.md is made from the help texts: this test fails when they differ, and `ORC_REWRITE=1` rewrites the page."""

from __future__ import annotations

import os

import click

from agent_orchestrator.runs.exits import EXIT_CODES
from agent_orchestrator.surfaces.cli.main import COMMANDS, orc
from tests.acceptance.rig import ROOT

PAGE = ROOT / "docs" / "cli.md"
HEAD = """# Command line

This page is made from the help texts (`ORC_REWRITE=1 pytest tests/acceptance/test_docs_cli.py`); change those, not this.

`orc`, `agent-orchestrator` and `python -m agent_orchestrator.cli` are the same program. Every command takes `--repo DIR`
(without it, the repository around the current directory) and `--json` (one object on standard output, everything else on
standard error). Run ids may be shortened to any unambiguous start; most commands find the run themselves when only one is
unfinished, and those that look take the newest when none is.

Errors are one sentence on standard error, beginning with `orc:`; with `--json` also an object
`{"error": {"kind", "message", "exit_code"}}` on standard output. Colour appears on terminals only, and never when `NO_COLOR`
is set. `ORC_DEBUG=1` shows the traceback of an internal error.

`--on-wait` and `--on-end` start a shell command beside the run, with RUN_ID, RUN_STATUS, RUN_REASON, WORKFLOW_NAME,
STATE_FILE and WAITING_STEPS in its environment. They are notifications: the run never waits for them, one that takes longer
than 60 s is stopped, and a failure is a warning.

| exit code | meaning |
|---|---|
"""


def _rendered() -> str:
    parts = [HEAD + "\n".join(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()) + "\n"]
    root = click.Context(orc, info_name="orc", terminal_width=100, **orc.context_settings)
    for name in COMMANDS:
        command = orc.get_command(root, name)
        assert command is not None
        parts += _sections(command, name, root)
    return "\n".join(parts)


def _sections(command: click.Command, name: str, parent: click.Context) -> list[str]:
    """The command's own section, and those of the commands in it."""
    context = click.Context(command, info_name=name, parent=parent, terminal_width=100)
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    sections = [f"## {context.command_path}\n\n```text\n{text}\n```\n"]
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            sections += _sections(found, inner, context)
    return sections


def test_the_page_is_what_the_help_texts_say() -> None:
    if os.environ.get("ORC_REWRITE"):
        PAGE.write_text(_rendered(), "utf-8")
    assert PAGE.read_text("utf-8") == _rendered()
