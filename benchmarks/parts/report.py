"""The cost of a report over many records: against reading and decoding the files bare, and in memory from the store."""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec

from agent_orchestrator.analysis.figures import Figures, recommend
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.system import Context
from agent_orchestrator.engine.journal import encode_events
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.swarm.records import outcomes_of_files, outcomes_of_store
from agent_orchestrator.store.port import Append, NewRun
from agent_orchestrator.systems.swarm.events import AttemptEnded, AttemptStarted
from agent_orchestrator.systems.swarm.records import AttemptStatus, AttemptVerdict, end_record, start_record
from agent_orchestrator.systems.swarm.spec import BeadSpec, SwarmSpec
from agent_orchestrator.systems.swarm.system import SWARM
from benchmarks.bench import Bench
from benchmarks.measure import Figure, Row, of_rounds

RECORDS, RECORDS_ALONE = 100_000, 10_000
STORED = (2_000, 10_000)
"""Both larger than a page of the store's."""
START_US = 1_750_000_000_000_000
TIME_TARGET, MEMORY_TARGET = 5.0, 1.1


def measure(bench: Bench) -> Iterator[Figure]:
    """`orc swarm analyze` over record files, without the start of an interpreter; then the same from the store, in memory."""
    records = bench.size(RECORDS if bench.peers else RECORDS_ALONE, 20)
    files = bench.folder / "files"
    _write_records(files, records)
    ratios = []
    for _ in bench.rounds(most=5, share=0.5):
        before_s = _timed(lambda: _read_bare(files))
        report_s = _timed(lambda: recommend(Figures().count(outcomes_of_files(files, {}, []))))
        ratios.append(report_s / min(before_s, _timed(lambda: _read_bare(files))))
    yield of_rounds(f"a report over {records:,} record files / reading and decoding them", ratios, target=TIME_TARGET)
    yield _compare_memory(bench)


def _compare_memory(bench: Bench) -> Row:
    peaks = []
    for wanted in STORED:
        count = bench.size(wanted, 10)
        with Orchestrator(str(_stored(bench.folder / str(wanted), count))) as orchestrator:
            tracemalloc.start()
            figures = Figures().count(outcomes_of_store(orchestrator))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert figures.all.total == count
    return Row(
        what=f"memory of a report from the store, {STORED[1]:,} / {STORED[0]:,} runs",
        value=peaks[1] / peaks[0],
        target=MEMORY_TARGET,
        note=", ".join(f"{peak / 2**20:.1f} MiB" for peak in peaks),
    )


def _timed(act: object) -> float:
    assert callable(act)
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _bead(name: str) -> BeadSpec:
    prompt = f"Fix what is wrong with {name}, and show with a test that it is right. " * 4
    return BeadSpec(id=name, prompt=prompt, agent=AgentChoice(name="claude", model="sonnet"), repo="/repo", template="bug-fix")


def _write_records(folder: Path, records: int) -> None:
    for name in ("runs", "results"):
        (folder / "state" / name).mkdir(parents=True)
    for number in range(records // 2):
        bead = _bead(f"bd-{number}")
        failed = number % 5 == 0
        verdict = AttemptVerdict(
            status=AttemptStatus.FAILED if failed else AttemptStatus.DONE, reason="x", failure_reason="exit-1" if failed else None
        )
        started = start_record(bead, 1, 2, START_US)
        output = "the end of what it said\n" * 10
        ended = end_record(started, verdict, started_us=START_US, ended_us=START_US + 90_000_000, output=output, will_retry=False)
        for name, record in zip(("runs", "results"), ended, strict=True):
            content = msgspec.json.format(msgspec.json.encode(record), indent=2)
            (folder / "state" / name / f"{bead.id}.json").write_bytes(content)


def _read_bare(folder: Path) -> None:
    decode = msgspec.json.decode
    for name in ("runs", "results"):
        path = f"{folder}/state/{name}"
        for file in os.listdir(path):  # noqa: PTH208 - bare is what the system calls cost
            with open(f"{path}/{file}", "rb") as opened:  # noqa: PTH123
                decode(opened.read())


def _stored(home: Path, count: int) -> Path:
    home.mkdir(parents=True)
    with Orchestrator(str(home)) as orchestrator:
        for number in range(count):
            bead = _bead(f"bd-{number}")
            spec = SwarmSpec(beads=(bead,), dispatch=True)
            context = Context(run=RunId(bead.id), home=str(home), workdir=str(home), created_us=START_US)
            events = [
                *SWARM.begin(spec, context),
                AttemptStarted(bead=bead.id, effect=EffectId(f"{bead.id}/{bead.id}/i0.a1.l1.agent"), attempt=1),
                AttemptEnded(bead=bead.id, verdict=AttemptVerdict(status=AttemptStatus.DONE, reason="x", exit_code=0)),
            ]
            state = SWARM.fresh(spec, context)
            for event in events:
                SWARM.evolve(state, event, START_US)
            first = Append(run=RunId(bead.id), expected_seq=0, at_us=START_US, body=encode_events(events))
            summary, encoded = SWARM.summary(state), msgspec.json.encode(spec)
            new = NewRun(system=SWARM.name, name=bead.id, context=context, spec=encoded, summary=summary)
            orchestrator.store.create(new, first)
    return home
