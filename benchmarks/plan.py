"""The parts in the order in which they are measured, with the time that each may take."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from benchmarks.bench import Bench
from benchmarks.measure import Figure
from benchmarks.parts import cluster, commands, disk, handover, many, report, resume, starts, steps, systems, web
from benchmarks.parts import live as live_agents


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One question."""

    name: str
    about: str
    measure: Callable[[Bench], Iterator[Figure]]
    budget_s: float
    """The time with peers; a part with long rounds may exceed it by one of them."""
    alone_s: float


def _list() -> Iterator[Part]:
    yield Part(name="steps", about="A durable step in a chain", measure=steps.measure_steps, budget_s=110, alone_s=8)
    yield Part(name="growth", about="The same step after many others", measure=steps.measure_growth, budget_s=230, alone_s=8)
    yield Part(name="many", about="Many runs at once", measure=many.measure, budget_s=40, alone_s=8)
    yield Part(name="resume", about="Taking up a long run", measure=resume.measure, budget_s=180, alone_s=10)
    yield Part(name="handover", about="From one agent to the next", measure=handover.measure, budget_s=20, alone_s=6)
    yield Part(name="live", about="A thousand living agents", measure=live_agents.measure, budget_s=180, alone_s=22)
    yield Part(name="commands", about="Commands that look", measure=commands.measure, budget_s=60, alone_s=18)
    yield Part(name="bytes", about="Bytes on disk", measure=disk.measure_bytes, budget_s=90, alone_s=3)
    yield Part(name="fsyncs", about="Fsyncs per step", measure=disk.measure_syncs, budget_s=90, alone_s=4)
    yield Part(name="systems", about="Growth of each way to work", measure=systems.measure, budget_s=300, alone_s=18)
    yield Part(name="web", about="The page over many runs", measure=web.measure, budget_s=60, alone_s=20)
    yield Part(name="report", about="A report over many records", measure=report.measure, budget_s=60, alone_s=10)
    yield Part(name="cluster", about="Runs in PostgreSQL", measure=cluster.measure, budget_s=60, alone_s=20)
    yield Part(name="starts", about="Many commands at once", measure=starts.measure, budget_s=60, alone_s=10)


PARTS = {part.name: part for part in _list()}
