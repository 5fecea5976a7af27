"""A collector on loopback: it decodes what it is sent with the protocol's own package, and keeps it."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Span(NamedTuple):
    """A span as it came in."""

    trace: str
    id: str
    parent: str
    name: str
    start: int
    end: int
    attributes: tuple[tuple[str, Any], ...]
    error: str
    service: str

    @property
    def facts(self) -> dict[str, Any]:
        return dict(self.attributes)


class Collector:
    """The server; `answers` are given in turn, then 200 for ever."""

    def __init__(self, *answers: int, port: int = 0) -> None:
        self.answers = list(answers)
        self.requests = 0
        self.spans: list[Span] = []
        self.points: list[tuple[str, dict[str, Any], float]] = []
        outer = self

        class Takes(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
                outer.requests += 1
                answer = outer.answers.pop(0) if outer.answers else 200
                if answer == 200:
                    outer.take(self.path, body)
                self.send_response(answer)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *given: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Takes)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, body: bytes) -> None:
        """Decode a request."""
        if path == "/v1/traces":
            for whole in ExportTraceServiceRequest.FromString(body).resource_spans:
                service = str(_values(whole.resource.attributes).get("service.name"))
                for scope in whole.scope_spans:
                    self.spans += [_span(one, service) for one in scope.spans]
        elif path == "/v1/metrics":
            for all_metrics in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for metrics in all_metrics.scope_metrics:
                    for metric in metrics.metrics:
                        found = ((metric.name, _values(point.attributes), point.sum) for point in metric.histogram.data_points)
                        self.points += found

    def sum_points(self, name: str, kind: str | None = None) -> float:
        """Return the sum of a metric, of one kind of tokens where that is asked for."""
        return sum(value for one, labels, value in self.points if one == name and kind in (None, labels.get("gen_ai.token.type")))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _span(one: Any, service: str) -> Span:
    return Span(
        trace=one.trace_id.hex(),
        id=one.span_id.hex(),
        parent=one.parent_span_id.hex(),
        name=one.name,
        start=one.start_time_unix_nano,
        end=one.end_time_unix_nano,
        attributes=tuple(sorted(_values(one.attributes).items())),
        error=one.status.message,
        service=service,
    )


def _values(attributes: Any) -> dict[str, Any]:
    """Return attributes as plain values; lists, which only others send, as text."""
    found = {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}
    return {key: value if isinstance(value, str | int | float) else str(value) for key, value in found.items()}


def main(command: list[str]) -> int:
    """Run a command for which telemetry is on; there have to be spans."""
    with Collector() as collector:
        code = subprocess.run(command, env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}, check=False).returncode
        return code if collector.spans else 99


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
