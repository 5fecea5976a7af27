"""Telemetry: whether spans and metrics are exported, and to where. Off unless a variable of OpenTelemetry or a file says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from agent_orchestrator.errors import InvalidValue

ENDPOINT_VARIABLES = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)
PROTOCOL = "http/protobuf"
TIMEOUT_S = 3.0
"""Shorter than the exporter's own: a process that ends does not wait for longer than it would for a webhook."""


class TelemetryTable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`[telemetry]`: where spans and metrics go."""

    endpoint: Annotated[str | None, Meta(description="A collector's URL for OTLP by HTTP: http://127.0.0.1:4318.")] = None


class Telemetry(msgspec.Struct, frozen=True, kw_only=True):
    """Telemetry that is on."""

    endpoint: str | None
    """The configured one; None where the exporter finds it in the variables of OpenTelemetry."""
    traces: bool = True
    metrics: bool = True
    timeout_s: float | None = None
    """The time for one request; None where a variable says it."""


def check_endpoint(value: object, what: str) -> None:
    """Raise InvalidValue for what is no URL of a collector."""
    parts = urlsplit(value) if isinstance(value, str) and value.isascii() and " " not in value else urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidValue(what=what, value=value, expected="a collector's URL: http://127.0.0.1:4318")


def read_telemetry(environ: Mapping[str, str], endpoint: str | None) -> Telemetry | None:
    """Return the telemetry that is on, given the configured endpoint; a variable wins over it."""
    said = any(environ.get(name) for name in ENDPOINT_VARIABLES)
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or not (said or endpoint):
        return None
    if said and environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", PROTOCOL) != PROTOCOL:
        return None
    traces, metrics = (environ.get(f"OTEL_{what}_EXPORTER", "otlp") != "none" for what in ("TRACES", "METRICS"))
    if not traces and not metrics:
        return None
    place = None if said or endpoint is None else endpoint.rstrip("/")
    timeout_s = None if environ.get("OTEL_EXPORTER_OTLP_TIMEOUT") else TIMEOUT_S
    return Telemetry(endpoint=place, traces=traces, metrics=metrics, timeout_s=timeout_s)
