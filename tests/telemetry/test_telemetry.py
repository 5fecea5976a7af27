"""Spans of real runs at a collector: one tree, the same set however often and after a kill, and never in a run's way."""

from __future__ import annotations

import signal
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_orchestrator.config.telemetry import read_telemetry
from tests.acceptance.rig import HUMAN, Rig, wait_until
from tests.telemetry.collector import Collector, Span

PATIENCE_S = 60.0


class TelemetryRig(Rig):
    """The rig of acceptance tests, with a workflow that checks and asks, and a variable that names a collector."""

    def __init__(self, repo: Path) -> None:
        super().__init__(repo)
        self.variables: dict[str, str] = {}
        self.workflow(HUMAN.replace("prompt: prompt.md}", "prompt: prompt.md, check: 'true'}", 1))

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return super().environment({**self.variables, **(more or {})})

    def traced(self, collector: Collector) -> None:
        self.variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}


@pytest.fixture
def rig(repo: Path) -> TelemetryRig:
    return TelemetryRig(repo)


def tree(spans: list[Span]) -> dict[str, set[str]]:
    """Return the names of each span's children, the root under ""."""
    names = {span.id: span.name for span in spans}
    found: dict[str, set[str]] = {}
    for span in spans:
        found.setdefault(names.get(span.parent, span.parent), set()).add(span.name)
    return found


def test_a_run_is_one_tree_exported_as_it_goes_and_the_same_again(rig: TelemetryRig) -> None:
    with Collector() as collector:
        rig.traced(collector)
        running = rig.start_run("--run-id", "f8c1")
        # Its driver waits for a person, so that the first spans come from a process that goes on.
        wait_until(lambda: any(span.name == "check" for span in collector.spans), PATIENCE_S)
        assert rig.orc("approve").code == 0
        assert running.end().code == 0
        exported = rig.orc("telemetry", "export", "f8c1", "--json")
        assert exported.code == 0, exported
        live, again = collector.spans, collector.spans[-exported.json["exported"][0]["spans"] :]
        assert tree(again) == {
            "": {"invoke_workflow human"},
            "invoke_workflow human": {"step coding", "step approval"},
            "step coding": {"invoke_agent", "check"},
            "step approval": {"invoke_agent"},
        }
        assert set(live) == set(again), "the driver and the command say the same"
        assert {span.trace for span in again} == {exported.json["exported"][0]["trace"]}
        assert {span.service for span in again} == {"orc"}
        [root] = [span for span in again if not span.parent]
        assert root.facts["gen_ai.operation.name"] == "invoke_workflow"
        assert root.facts["orc.status"] == "completed"
        assert all("orc.cost.usd" not in span.facts for span in again), "what is not known is not there"


def test_what_agents_took_stands_in_spans_and_metrics(rig: TelemetryRig) -> None:
    script = rig.side / "script.yaml"
    script.write_text("- {step: coding, cost_usd: 0.25, tokens: {input: 100, cache_read: 50, output: 20}}\n- {step: '*'}\n")
    with Collector() as collector:
        rig.traced(collector)
        running = rig.start("run", "--workflow", "workflow.yaml", "--rehearse", str(script), "--run-id", "f8c1")
        wait_until(lambda: len(collector.points) >= 4, PATIENCE_S)
        assert rig.orc("approve").code == 0
        assert running.end().code == 0
        [span] = {one for one in collector.spans if "orc.cost.usd" in one.facts}
        used = rig.orc("usage", "f8c1", "--json").json
        assert rig.orc("telemetry", "export", "f8c1").code == 0
        sent = list(collector.points)
        assert rig.orc("telemetry", "export", "f8c1", "--metrics").code == 0
        again = collector.points[len(sent) :]
        assert sorted(map(str, again)) == sorted(map(str, sent)), "spans alone do not count twice, metrics do where asked for"
        collector.points = sent
    assert (span.name, span.facts["orc.cost.usd"]) == ("invoke_agent scripted", 0.25)
    assert span.facts["gen_ai.usage.input_tokens"] == 150
    assert span.facts["gen_ai.usage.cache_read.input_tokens"] == 50
    tokens = {kind: collector.sum_points("gen_ai.client.token.usage", kind) for kind in ("input", "output")}
    assert tokens == {"input": 150, "output": 20}
    counted = ("input_tokens", "cache_read_tokens", "output_tokens")
    assert sum(used["total"][name] for name in counted) == sum(tokens.values())
    assert collector.sum_points("gen_ai.client.operation.duration") > 0


def test_killed_and_started_again_the_set_of_spans_is_the_same(rig: TelemetryRig) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    rig.variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"}
    running = rig.start_run("--run-id", "f8c1")
    running.wait_for("approve:")
    running.signal(signal.SIGKILL)
    running.process.wait(PATIENCE_S)
    with Collector(503, port=port) as collector:
        assert rig.orc("approve").code == 0
        resumed = rig.start("web", "--port", "0")
        try:
            wait_until(lambda: collector.spans, PATIENCE_S)
        finally:
            resumed.signal(signal.SIGKILL)
            resumed.process.wait(PATIENCE_S)
        assert rig.orc("resume").code == 0
        wait_until(lambda: rig.orc("telemetry", "export", "--all").code == 0)
        exported = rig.orc("telemetry", "export", "f8c1", "--json").json["exported"][0]["spans"]
        assert set(collector.spans) == set(collector.spans[-exported:])
        assert len({span.id for span in collector.spans}) == exported == 6


def test_a_collector_that_is_down_keeps_no_run_and_an_agent_knows_its_place(rig: TelemetryRig) -> None:
    told = rig.side / "told"
    rig.workflow("name: one\nsteps:\n  - {id: coding, agent: coder, prompt: prompt.md}\n")
    agent = f"sh -c 'printf %s \"$TRACEPARENT\" >{told}'"
    rig.variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    done = rig.orc("run", "--workflow", "workflow.yaml", "--agent-command", agent, "--run-id", "f8c1")
    assert done.code == 0, done
    assert "opentelemetry" not in done.err.lower()
    refused = rig.orc("telemetry", "export", "f8c1")
    assert (refused.code, "could not be exported" in refused.err) == (3, True)
    with Collector() as collector:
        rig.traced(collector)
        assert rig.orc("telemetry", "export", "f8c1").code == 0
        [span] = [one for one in collector.spans if one.name.startswith("invoke_agent")]
        assert told.read_text() == f"00-{span.trace}-{span.id}-01"
    rig.variables = {}
    assert rig.orc("run", "--workflow", "workflow.yaml", "--agent-command", agent).code == 0
    assert told.read_text() == "", "without telemetry there is no trace"


def test_it_is_off_unless_somebody_names_a_collector(rig: TelemetryRig) -> None:
    assert read_telemetry({}, None) is None
    assert read_telemetry({}, "http://c:4318/") is not None
    on = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}
    off = ({"OTEL_SDK_DISABLED": "true"}, {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    assert [read_telemetry({**on, **more}, None) for more in off] == [None, None]
    quiet = read_telemetry({**on, "OTEL_METRICS_EXPORTER": "none"}, "http://other")
    assert quiet is not None
    assert (quiet.endpoint, quiet.traces, quiet.metrics) == (None, True, False)
    refused = rig.orc("telemetry", "export", "--all")
    assert (refused.code, "Telemetry is off" in refused.err) == (2, True)
    (rig.repo / ".orc.toml").write_text('[telemetry]\nendpoint = "collector"\n')
    assert "telemetry.endpoint is 'collector': it must be a collector's URL" in rig.orc("config", "check").out
    (rig.repo / ".orc.toml").write_text('[telemetry]\nendpoint = "https://collector.example"\n')
    untrusted = rig.run("--no-wait", env={"ORC_TRUSTED_PATHS": ""})
    assert (untrusted.code, "telemetry.endpoint sends what happens here to others" in untrusted.err) == (2, True)
    assert rig.orc("telemetry", "export").code == 2
