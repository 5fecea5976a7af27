"""One trace through orc's spans and the client's own, at a collector on loopback; the tokens are those of the ledger."""

from __future__ import annotations

import json

from agent_orchestrator.testing.model_server import Lane, Reply, Write
from tests.clients.rig import Rig, charged, report
from tests.telemetry.collector import Collector, Span

OWN = ("CLAUDE_CODE_ENABLE_TELEMETRY", "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA", "OTEL_TRACES_EXPORTER")
SHARED = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_TRACES_EXPORT_INTERVAL")


def test_a_run_of_claude_is_one_trace_with_its_own_spans_in_it(rig: Rig) -> None:
    with Collector() as collector:
        rig.environ |= dict.fromkeys(OWN[:2], "1") | {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_TRACES_EXPORT_INTERVAL": "100"}
        rig.environ |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        lane = rig.lane("claude", [Write("hello.txt", "hi"), Reply(report())])
        passed = [word for name in (*OWN, *SHARED) for word in ("--pass-env", name)]
        rig.orc("run", "--workflow", "workflow.yaml", "--agent", "claude", "--run-id", "f8c1", *passed)
        rig.orc("telemetry", "export", "f8c1")
        spans = set(collector.spans)
    own = [span for span in spans if span.name.startswith("claude_code.")]
    check_trace(spans, own, "claude", "anthropic", lane)


def check_trace(spans: set[Span], own: list[Span], client: str, provider: str, lane: Lane) -> None:
    """The client's spans are below that of its launch, in one trace; tokens are those on the model's bill."""
    ours = [span for span in spans if span.service == "orc"]
    assert {span.trace for span in ours} == {span.trace for span in own}, sorted(span.name for span in spans)
    [launch] = [span for span in ours if span.name == f"invoke_agent {client}"]
    assert launch.id in {span.parent for span in own}, [(span.name, span.parent) for span in own]
    bill = charged(lane)
    assert launch.facts["gen_ai.usage.output_tokens"] == bill["output_tokens"]
    assert launch.facts["gen_ai.usage.input_tokens"] == sum(bill.values()) - bill["output_tokens"]
    assert launch.facts["gen_ai.provider.name"] == provider


def test_a_run_of_codex_is_one_trace_with_its_own_spans_in_it(rig: Rig) -> None:
    with Collector() as collector:
        rig.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
        told = f'otel.trace_exporter={{otlp-http={{endpoint="{collector.url}/v1/traces",protocol="binary"}}}}'
        lane = rig.lane("codex", [Write("hello.txt", "hi"), Reply(report())], f"args = {json.dumps(['-c', told])}")
        rig.orc("run", "--workflow", "workflow.yaml", "--agent", "codex", "--run-id", "f8c1")
        rig.orc("telemetry", "export", "f8c1")
        spans = set(collector.spans)
    names = ("codex.exec", "run_turn", "run_sampling_request", "apply_patch")
    own = [span for span in spans if span.name in names]
    assert {span.name for span in own} == set(names)
    check_trace(spans, own, "codex", "openai", lane)
