"""`orc telemetry`: what ended in runs, for a collector. A file per command, loaded when it is used."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.groups import LazyGroup

TELEMETRY_COMMANDS = {"export": "Export the spans of runs again."}
"""Every command with its one-line help; a test keeps these equal to the commands' own first sentences."""

EXAMPLE = """\b
Example:
  orc telemetry export RUN"""


@click.group("telemetry", cls=LazyGroup, helps=TELEMETRY_COMMANDS, folder="telemetry", epilog=EXAMPLE)
def command() -> None:
    """Export spans to a collector.

    Telemetry is on where OTEL_EXPORTER_OTLP_ENDPOINT or [telemetry] of the configuration names a collector; processes that
    drive runs, and `orc web`, export by themselves. `orc help telemetry` has the page.
    """
