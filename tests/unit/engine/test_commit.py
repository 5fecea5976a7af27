"""Group commit: one transaction per turn of the loop, whoever appends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.engine.commit import Committer
from agent_orchestrator.errors import Conflict, DiskFull, StoreAway
from agent_orchestrator.store.memory import MemoryStore
from agent_orchestrator.store.port import Append
from agent_orchestrator.testing.clock import FakeClock, run_jumping
from agent_orchestrator.testing.store import new_run
from tests.unit.engine.rig import Recorder, Rig, agent

RUNS = ("one", "two", "three")


def part(run: str, seq: int = 1) -> Append:
    return Append(run=RunId(run), expected_seq=seq, at_us=5, body=b"[]")


def filled() -> Recorder:
    store = Recorder()
    for run in RUNS:
        store.create(*new_run(RunId(run)))
    store.batches.clear()
    return store


def test_everything_appended_in_one_turn_shares_one_transaction() -> None:
    store = filled()

    async def main() -> None:
        committer = Committer(store, asyncio.get_running_loop())
        for seq in (1, 2):
            await asyncio.gather(*(committer.append(part(run, seq)) for run in RUNS))

    run_jumping(main(), FakeClock())
    assert [[one.run for one in batch] for batch in store.batches] == [list(RUNS), list(RUNS)]


def test_nothing_is_durable_before_its_future_is_done() -> None:
    store = filled()

    async def main() -> None:
        done = Committer(store, asyncio.get_running_loop()).append(part("one"))
        assert not done.done()
        assert len(store.rows(RunId("one"))) == 1
        await done
        assert len(store.rows(RunId("one"))) == 2

    run_jumping(main(), FakeClock())
    assert len(store.batches) == 1


def test_a_conflict_answers_one_part_and_any_other_error_all() -> None:
    store = filled()

    async def main() -> list[list[object]]:
        committer = Committer(store, asyncio.get_running_loop())
        first = await asyncio.gather(
            *(committer.append(part(run, seq)) for run, seq in (("one", 1), ("two", 7))), return_exceptions=True
        )
        store.refuse(DiskFull(path="orc.db"))
        second = await asyncio.gather(*(committer.append(part(run, 2)) for run in ("one", "three")), return_exceptions=True)
        return [list(first), list(second)]

    first, second = run_jumping(main(), FakeClock())
    assert [type(answer) for answer in first] == [type(None), Conflict]
    assert [type(answer) for answer in second] == [DiskFull, DiskFull]


def test_somebody_who_no_longer_waits_does_not_stop_the_others() -> None:
    store = filled()

    async def main() -> None:
        committer = Committer(store, asyncio.get_running_loop())
        gone, kept = committer.append(part("one")), committer.append(part("two"))
        gone.cancel()
        await kept
        with pytest.raises(asyncio.CancelledError):
            await gone

    run_jumping(main(), FakeClock())
    assert [len(store.rows(RunId(run))) for run in ("one", "two")] == [2, 2], "what was appended is appended"


def test_runs_that_are_ready_together_are_committed_together(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    names = [f"run{number}" for number in range(50)]
    runs = [rig.toys(agent("a", name, agent=AgentChoice(name="scripted")), run=name) for name in names]
    assert {summary.status for summary in rig.drive_all(runs)} == {"completed"}
    facts = [[part.run for part in batch if part.body is not None] for batch in rig.store.batches]
    assert sum(len(batch) for batch in facts) == 100, "taken up, done"
    assert len([batch for batch in facts if batch]) <= 4


def test_an_error_that_nobody_foresaw_answers_everybody_too() -> None:
    store = filled()

    async def main() -> list[object]:
        committer = Committer(store, asyncio.get_running_loop())
        store.refuse(MemoryError("no memory"))  # type: ignore[arg-type]
        return list(await asyncio.gather(*(committer.append(part(run)) for run in ("one", "two")), return_exceptions=True))

    assert [type(answer) for answer in run_jumping(main(), FakeClock())] == [MemoryError, MemoryError]


def test_what_is_appended_now_is_durable_at_once_and_raises_what_went_wrong() -> None:
    store = filled()

    async def main() -> None:
        committer = Committer(store, asyncio.get_running_loop())
        assert committer.is_idle
        committer.append_now(part("two"))
        assert len(store.rows(RunId("two"))) == 2
        with pytest.raises(Conflict):
            committer.append_now(part("one", 7))
        store.refuse(DiskFull(path="orc.db"))
        with pytest.raises(DiskFull):
            committer.append_now(part("one"))

    run_jumping(main(), FakeClock())
    assert [one.run for one in store.batches[0]] == ["two"]


class Distant(Recorder):
    """A store that answers when it is let, as a server would."""

    remote = True

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.answers = threading.Semaphore(0), threading.Semaphore(len(RUNS))
        for run in RUNS:
            self.create(*new_run(RunId(run)))
            self.begun.acquire()
        self.batches.clear()

    def append(self, batch: Sequence[Append]) -> list[Conflict | None]:
        self.begun.release()
        assert self.answers.acquire(timeout=60)
        return super().append(batch)

    def append_at_once(self, part: Append) -> Conflict | None:
        if not self.answers.acquire(blocking=False):
            raise StoreAway(place="far", detail="no answer")
        return MemoryStore.append(self, [part])[0]


def test_the_loop_goes_on_while_a_distant_store_is_written_to_one_batch_after_the_other() -> None:
    store = Distant()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        committer = Committer(store, loop)
        assert not committer.is_idle, "nothing is committed in place"
        first = committer.append(part("one"))
        await loop.run_in_executor(None, store.begun.acquire)
        others = [committer.append(part(run)) for run in ("two", "three")]
        assert not first.done(), "the loop goes on before there is an answer"
        store.answers.release()
        await first
        assert not any(done.done() for done in others)
        store.answers.release()
        await asyncio.gather(*others)
        committer.close()

    asyncio.run(main())
    assert [[one.run for one in batch] for batch in store.batches] == [["one"], ["two", "three"]]


def test_a_lone_run_waits_in_place_for_a_distant_store_that_is_quick() -> None:
    store = Distant()

    async def main() -> None:
        committer = Committer(store, asyncio.get_running_loop(), quick_s=60.0)
        store.answers.release()
        await committer.append(part("one"))
        assert bool(committer.is_idle), "its answer was quick"
        store.answers.release()
        assert committer.append_now(part("one", 2)) is None
        assert len(store.rows(RunId("one"))) == 3, "it is durable, without a turn of the loop"
        store.answers.release()
        with pytest.raises(Conflict):
            committer.append_now(part("one", 2))
        late = part("one", 3)
        waits = committer.append_now(late)
        assert waits is not None
        assert not committer.is_idle, "the next one comes after it"
        store.answers.release()
        await waits
        assert store.batches[-1][0] is late, "the very same is written in a thread"
        committer.close()

    asyncio.run(main())
    assert len(store.rows(RunId("one"))) == 4


def test_a_distant_store_that_was_slow_is_not_waited_for_in_place() -> None:
    store = Distant()

    async def main() -> None:
        committer = Committer(store, asyncio.get_running_loop(), quick_s=0.0)
        store.answers.release()
        await committer.append(part("one"))
        assert not committer.is_idle
        committer.close()

    asyncio.run(main())
