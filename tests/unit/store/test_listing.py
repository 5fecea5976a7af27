"""A list costs what it shows: with hundreds of runs stored, SQLite does the same work as with a few."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import msgspec
import pytest

from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.runs.names import new_run_id
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import Append, UsageRow, Which
from agent_orchestrator.store.queries import migrations
from agent_orchestrator.store.sqlite import SqliteStore
from agent_orchestrator.surfaces.cli.main import main
from agent_orchestrator.testing.store import new_run
from tests.counting import counted
from tests.stores import OWN_STORE

FEW, MANY = 20, 320
OPEN = 3
"""Unfinished runs, however many there are."""


def fill(folder: Path, count: int) -> None:
    """Runs of one system that have ended but for a few, each with a line in the ledger and a large specification."""
    store = SqliteStore(folder)
    for number in range(count):
        run = RunId(f"{number:05}")
        new, first = new_run(run, number)
        usage = UsageRow(effect=EffectId(f"{run}/a/i0.a1.l1.agent"), unit="a", agent="x", usage=Usage(cost_usd=1.0))
        summary = Summary(status="running" if number < OPEN else "completed")
        store.create(
            msgspec.structs.replace(new, system="workflow", spec=bytes(20_000), summary=summary),
            msgspec.structs.replace(first, usage=(usage,), summary=summary),
        )
    store.close()


LISTS: dict[str, Callable[[Orchestrator], object]] = {
    "newest": lambda orchestrator: orchestrator.runs(Which(most=10)),
    "unfinished": lambda orchestrator: orchestrator.runs(Which(ended=False)),
    "ended": lambda orchestrator: orchestrator.runs(Which(ended=True, most=5)),
    "of a system": lambda orchestrator: orchestrator.runs(Which(system="workflow", most=5)),
    "unfinished of a system": lambda orchestrator: orchestrator.runs(Which(system="workflow", ended=False)),
    "of a name": lambda orchestrator: orchestrator.runs(Which(name="demo", most=1)),
    "one by the start of its id": lambda orchestrator: orchestrator.find("00007"[:5]),
    "a new id": new_run_id,
    "the ledger of one": lambda orchestrator: orchestrator.store.usage(RunId("00007")),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    homes = tmp_path_factory.mktemp("few"), tmp_path_factory.mktemp("many")
    for home, count in zip(homes, (FEW, MANY), strict=True):
        fill(home / ".agents" / "orc", count)
    return homes


def work(home: Path, what: Callable[[Orchestrator], object]) -> int:
    with counted() as done, Orchestrator(home) as orchestrator:
        assert orchestrator.has_store
        what(orchestrator)
    return done.steps


@OWN_STORE
@pytest.mark.parametrize("name", LISTS)
def test_a_list_costs_what_it_shows(name: str, stores: tuple[Path, Path]) -> None:
    few, many = (work(home, LISTS[name]) for home in stores)
    assert many <= few + 5


@pytest.mark.parametrize("command", ["status", "list --limit 10", ""])
def test_a_command_costs_what_it_shows(command: str, stores: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []
    for home in stores:
        monkeypatch.chdir(home)
        with counted() as done:
            assert main(command.split()) == 0
        steps.append(done.steps)
    counting = 5 * (MANY - FEW)  # SQLite counts the runs one by one, in an index that has nothing else.
    assert steps[1] <= steps[0] + counting


def test_a_summary_does_not_write_the_specification_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    new, first = new_run(RunId("one"))
    store.create(msgspec.structs.replace(new, spec=bytes(1_000_000)), first)
    log = tmp_path / "orc.db-wal"
    before = log.stat().st_size
    for number in range(10):
        summary = Summary(status="running", detail="x" * number)
        assert store.append([Append(run=RunId("one"), expected_seq=1, at_us=2, summary=summary)]) == [None]
    assert log.stat().st_size - before < 100_000
    assert len(store.spec(RunId("one"))) == 1_000_000


def test_runs_of_the_older_schema_are_listed_as_they_were(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "orc.db"))
    for version, script in enumerate(migrations()[:3], 1):
        db.execute(script)
        db.pragma("user_version", version)
    new, _ = new_run(RunId("x"))
    encode = msgspec.json.encode
    for number, status in enumerate(("running", "completed", "paused", "waiting", "aborting", "failed"), 1):
        context = encode(msgspec.structs.replace(new.context, run=RunId(status)))
        values = (number, status, "sample", "demo", context, b"{%d}" % number, encode(Summary(status=status)), number, number)
        db.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    db.close()
    store = SqliteStore(tmp_path)
    assert [run.id for run in store.runs(Which(ended=True))] == ["failed", "completed"]
    assert [run.id for run in store.runs(Which(ended=False))] == ["aborting", "waiting", "paused", "running"]
    assert [store.spec(RunId(run)) for run in ("running", "failed")] == [b"{1}", b"{6}"]
