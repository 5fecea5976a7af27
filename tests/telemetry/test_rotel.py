"""Spans and metrics through a collector that somebody else wrote: it takes them, and hands the same on."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.acceptance.rig import wait_until
from tests.telemetry.collector import Collector
from tests.telemetry.test_telemetry import PATIENCE_S, TelemetryRig, tree


def listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def rotel(folder: Path, behind: Collector) -> Iterator[str]:
    """Start the collector on free ports, in front of another; yields its address."""
    package = find_spec("rotel")
    if package is None or package.origin is None:
        pytest.skip("rotel is not installed; `make collector` does it where it can be had")
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        http, grpc = one.getsockname()[1], other.getsockname()[1]
    words = [
        *(str(Path(package.origin).with_name("rotel-agent")), "start"),
        *("--otlp-http-endpoint", f"127.0.0.1:{http}", "--otlp-grpc-endpoint", f"127.0.0.1:{grpc}"),
        *("--pid-file", str(folder / "pid"), "--log-file", str(folder / "log"), "--batch-timeout", "100ms"),
        *("--exporter", "otlp", "--otlp-exporter-endpoint", behind.url, "--otlp-exporter-protocol", "http"),
    ]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(words, stdout=said, stderr=said, env={"PATH": "/usr/bin:/bin"})
    try:
        wait_until(lambda: listens(http) or process.poll() is not None, PATIENCE_S)
        assert process.poll() is None, (folder / "said").read_text()
        yield f"http://127.0.0.1:{http}"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def test_a_collector_of_others_takes_the_spans_and_metrics_of_a_run_and_hands_them_on(repo: Path, tmp_path: Path) -> None:
    rig = TelemetryRig(repo)
    script = rig.side / "script.yaml"
    script.write_text("- {step: '*', cost_usd: 0.25, tokens: {input: 100, cache_read: 50, output: 20}}\n")
    rig.workflow("name: one\nsteps:\n  - {id: coding, agent: coder, prompt: prompt.md, check: 'true'}\n")
    with Collector() as straight, Collector() as behind, rotel(tmp_path, behind) as address:
        rig.variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": address}
        done = rig.orc("run", "--workflow", "workflow.yaml", "--rehearse", str(script), "--run-id", "f8c1")
        assert done.code == 0, done
        rig.traced(straight)
        assert rig.orc("telemetry", "export", "f8c1", "--metrics").code == 0
        wait_until(
            lambda: len(set(behind.spans)) == len(straight.spans) and len(behind.points) == len(straight.points), PATIENCE_S
        )
    assert set(behind.spans) == set(straight.spans)
    assert tree(list(set(behind.spans))) == {
        "": {"invoke_workflow one"},
        "invoke_workflow one": {"step coding"},
        "step coding": {"invoke_agent scripted", "check"},
    }
    used = rig.orc("usage", "f8c1", "--json").json["total"]
    counted = sum(used[name] for name in ("input_tokens", "cache_read_tokens", "output_tokens"))
    assert behind.sum_points("gen_ai.client.token.usage") == counted
