"""`orc telemetry export`: the spans of runs, again, and their metrics where they are asked for."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, run_argument

EXAMPLE = """
orc telemetry export RUN
orc telemetry export --all --json
orc telemetry export --all --metrics
"""
NOT_ON = "Telemetry is off: set OTEL_EXPORTER_OTLP_ENDPOINT (for http/protobuf), or `endpoint` of [telemetry]."


@make_command("export", EXAMPLE)
@run_argument()
@click.option("--all", "every", is_flag=True, help="All runs of the repository.")
@click.option("--metrics", is_flag=True, help="Their metrics, too: a collector that has them already counts them twice.")
def command(run: str | None, every: bool, metrics: bool, repo: str | None, as_json: bool) -> int:
    """Export the spans of runs again.

    Of one RUN, or of --all. They are derived from the journal: the same spans with the same ids, however often. Metrics have no
    ids, and a collector would count them twice: they are sent again for one that is new, with --metrics.
    """
    from agent_orchestrator.config.defaults import load_configuration
    from agent_orchestrator.config.telemetry import read_telemetry
    from agent_orchestrator.core.units import say_count
    from agent_orchestrator.errors import Refused, Unavailable
    from agent_orchestrator.runs.telemetry.exporter import Batch, make_sender, refuse_missing
    from agent_orchestrator.runs.telemetry.spans import read_trace
    from agent_orchestrator.runs.telemetry.trace import trace_id
    from agent_orchestrator.surfaces.cli.screen import print_json

    if (run is None) != every:
        raise Refused(why="Give a RUN, or --all.")
    with open_orchestrator(repo) as orchestrator:
        settings = orchestrator.settings
        telemetry = read_telemetry(settings.environ, load_configuration(settings).telemetry_endpoint)
        if telemetry is None or not telemetry.traces:
            raise Refused(why=NOT_ON)
        if metrics and not telemetry.metrics:
            raise Refused(why="Metrics are off: OTEL_METRICS_EXPORTER is none.")
        refuse_missing()
        send = make_sender(telemetry)
        runs = [orchestrator.find(run)] if run is not None else list(reversed(orchestrator.runs()))
        facts = []
        for one in runs:
            spans, launches = read_trace(orchestrator.store, one)
            batch = Batch(spans=spans, launches=launches if metrics else ())
            if (problem := send(batch) if spans else None) is not None:
                raise Unavailable(detail=f"The spans of run {one.id} could not be exported: {problem}; is it running?")
            facts.append({"run_id": one.id, "spans": len(spans), "trace": f"{trace_id(one.context):032x}"})
            if not as_json:
                click.echo(f"run {one.id}: {say_count(len(spans), 'span')}, trace {trace_id(one.context):032x}")
        if as_json:
            print_json({"exported": facts})
    return 0
