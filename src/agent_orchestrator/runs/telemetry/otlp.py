"""Spans and metrics to a collector by OTLP. The exporter reads the standard variables: headers, certificates, time-outs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from agent_orchestrator.config.telemetry import Telemetry
from agent_orchestrator.core.units import US
from agent_orchestrator.runs.telemetry.exporter import Batch
from agent_orchestrator.runs.telemetry.spans import EndedLaunch, SpanFact, Value, agent_attributes, input_tokens
from agent_orchestrator.version import __version__

SPANS_AT_ONCE = 512
TOKEN_BOUNDS = tuple(float(4**power) for power in range(14))
"""Of the conventions, as those of seconds are."""
SECOND_BOUNDS = tuple(0.01 * 2**power for power in range(14))
FAILED = "the collector did not take it"


class Collector:
    """A collector, at the configured place or at that of the variables."""

    def __init__(self, telemetry: Telemetry) -> None:
        # Its own words, and tracebacks, would stand among a run's lines.
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
        logging.getLogger("opentelemetry").propagate = False
        place, time = telemetry.endpoint, telemetry.timeout_s
        traces, metrics = (f"{place}/v1/{what}" if place else None for what in ("traces", "metrics"))
        self._traces = OTLPSpanExporter(endpoint=traces, timeout=time) if telemetry.traces else None
        self._metrics = OTLPMetricExporter(endpoint=metrics, timeout=time) if telemetry.metrics else None
        # Not Resource.create: it adds an id of this process, and every process has to say the same.
        own = Resource({"service.name": "orc", "service.version": __version__})
        self._resource = own.merge(OTELResourceDetector().detect())
        self._scope = InstrumentationScope("agent_orchestrator", __version__)

    def send(self, batch: Batch) -> str | None:
        """Export a batch; return what went wrong."""
        if self._traces is not None:
            for start in range(0, len(batch.spans), SPANS_AT_ONCE):
                spans = [self._span(one) for one in batch.spans[start : start + SPANS_AT_ONCE]]
                if self._traces.export(spans) is not SpanExportResult.SUCCESS:
                    return FAILED
        if self._metrics is not None and batch.launches:
            scope = ScopeMetrics(scope=self._scope, metrics=_count(batch.launches), schema_url="")
            whole = ResourceMetrics(resource=self._resource, scope_metrics=[scope], schema_url="")
            if self._metrics.export(MetricsData(resource_metrics=[whole])) is not MetricExportResult.SUCCESS:
                return FAILED
        return None

    def _span(self, fact: SpanFact) -> ReadableSpan:
        return ReadableSpan(
            name=fact.name,
            context=_context(fact.trace, fact.id),
            parent=_context(fact.trace, fact.parent) if fact.parent is not None else None,
            resource=self._resource,
            attributes={**fact.attributes, **({"error.type": fact.error} if fact.error is not None else {})},
            status=Status(StatusCode.ERROR, fact.error) if fact.error is not None else Status(StatusCode.UNSET),
            start_time=fact.start_us * 1000,
            end_time=fact.end_us * 1000,
            instrumentation_scope=self._scope,
        )


def _context(trace: int, span: int) -> SpanContext:
    return SpanContext(trace_id=trace, span_id=span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _count(launches: Sequence[EndedLaunch]) -> list[Metric]:
    """Return the metrics of the conventions, of these launches alone: the collector adds them to those before."""
    tokens: list[HistogramDataPoint] = []
    seconds: list[HistogramDataPoint] = []
    for one in launches:
        times = (one.event.started_us * 1000, one.event.ended_us * 1000)
        labels: dict[str, Value] = {"gen_ai.operation.name": "invoke_agent", **agent_attributes(one)}
        for kind, count in (("input", input_tokens(one.usage)), ("output", one.usage.output_tokens)):
            if count is not None:
                tokens.append(_point({**labels, "gen_ai.token.type": kind}, times, count, TOKEN_BOUNDS))
        failed = {"error.type": one.event.failure.kind.value} if one.event.failure is not None else {}
        took_s = max(0, one.event.ended_us - one.event.started_us) / US
        seconds.append(_point({**labels, **failed}, times, took_s, SECOND_BOUNDS))
    found = (("gen_ai.client.token.usage", "{token}", tokens), ("gen_ai.client.operation.duration", "s", seconds))
    return [
        Metric(name=name, description="", unit=unit, data=Histogram(points, AggregationTemporality.DELTA))
        for name, unit, points in found
        if points
    ]


def _point(labels: Mapping[str, Value], times: tuple[int, int], value: float, bounds: Sequence[float]) -> HistogramDataPoint:
    counts = [0] * (len(bounds) + 1)
    counts[next((number for number, bound in enumerate(bounds) if value <= bound), len(bounds))] = 1
    return HistogramDataPoint(
        attributes=labels,
        start_time_unix_nano=times[0],
        time_unix_nano=max(times),
        count=1,
        sum=value,
        bucket_counts=counts,
        explicit_bounds=bounds,
        min=value,
        max=value,
    )
