"""The process of `orc worker`: its options read, its signals, and its lines."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Mapping

from agent_orchestrator.cluster.snapshots import SNAPSHOT_S
from agent_orchestrator.cluster.submission import POOL
from agent_orchestrator.cluster.worker import QueueWorker, WorkerOptions
from agent_orchestrator.config import Settings
from agent_orchestrator.config.defaults import find_root
from agent_orchestrator.config.store_address import check_root
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.core.units import read_count, read_duration_s
from agent_orchestrator.engine.leases import LEASE_S
from agent_orchestrator.errors import InvalidValue
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.stores import require_shared
from agent_orchestrator.store.postgres.cluster import Cluster
from agent_orchestrator.surfaces.cli.progress import Writer
from agent_orchestrator.surfaces.cli.screen import plain

LEASE_MIN_S = 3.0


def serve_queue(orchestrator: Orchestrator, given: Mapping[str, str | None]) -> int:
    """Be a worker of the orchestrator's store until asked to leave; returns the exit code."""
    address, options = require_shared(orchestrator), read_worker_options(orchestrator.settings, given)
    writer, alone = Writer(sys.stdout), threading.Lock()

    def say(text: str) -> None:
        with alone:
            for line in text.splitlines():
                writer.line(plain(line))
            sys.stdout.flush()

    cluster = Cluster(address.url)
    try:
        worker = QueueWorker(cluster, orchestrator.settings, options, say)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: worker.interrupt())
        say(f"worker {options.name}: pool {options.pool}, {options.capacity} at once, homes in {options.root}")
        return worker.serve()
    finally:
        cluster.close()


def read_worker_options(settings: Settings, given: Mapping[str, str | None]) -> WorkerOptions:
    """Return the options of a worker; raise a UsageError for what could never work."""
    lease = given["lease"]
    ttl_s = read_duration_s(lease, "--lease") if lease is not None else LEASE_S
    if ttl_s < LEASE_MIN_S:
        raise InvalidValue(what="--lease", value=lease, expected=f"at least {LEASE_MIN_S:g}s, as in 15s")
    root = check_root(given["root"], "--root") if given["root"] is not None else find_root(settings)
    name = given["name"] or re.sub(r"[^A-Za-z0-9._-]", "-", os.uname().nodename).lstrip("._-") or "worker"
    capacity, snapshots = given["capacity"], given["snapshots"]
    return WorkerOptions(
        name=checked_id(name, "--name"),
        root=root,
        pool=checked_id(given["pool"] or POOL, "--pool"),
        capacity=read_count(capacity, "--capacity") if capacity is not None else 1,
        once=given["once"],
        ttl_s=ttl_s,
        snapshot_s=read_duration_s(snapshots, "--snapshots") if snapshots is not None else SNAPSHOT_S,
    )
