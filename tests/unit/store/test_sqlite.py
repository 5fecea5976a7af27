"""The duties of SQLite beyond the port: survive cleaning, refuse the future, let directives in, name its failures."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import re
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

import apsw
import msgspec
import pytest

from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.errors import (
    DiskFull,
    StoreCorrupt,
    StoreLocked,
    StoreNewer,
    StoreUnwritable,
    StoreVanished,
    Unavailable,
    UnsupportedFilesystem,
)
from agent_orchestrator.store import database
from agent_orchestrator.store.failures import translated
from agent_orchestrator.store.filesystem import refuse_network_filesystem
from agent_orchestrator.store.port import Append, Day, UsageRow
from agent_orchestrator.store.queries import migrations, queries
from agent_orchestrator.store.sqlite import SqliteStore
from agent_orchestrator.testing.store import new_run

STARTED_AT_ONCE = 40


def part(seq: int, body: bytes = b"[]") -> Append:
    return Append(run=RunId("one"), expected_seq=seq, at_us=seq, body=body)


def test_what_was_appended_is_there_after_the_process_is_gone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.create(*new_run(RunId("one")))
    store.append([part(1, b"[2]")])
    again = SqliteStore(tmp_path)
    assert [body for _, _, body in again.rows(RunId("one"))] == [b"[1]", b"[2]"]


def test_a_new_store_is_for_its_owner_alone_and_a_mode_set_later_stays(tmp_path: Path) -> None:
    folder = tmp_path / "orc"
    folder.mkdir(mode=0o755)
    SqliteStore(folder).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o750)
    SqliteStore(folder).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750


def test_a_day_that_is_remembered_sees_what_other_processes_add_and_keeps_what_they_prune(tmp_path: Path) -> None:
    mine, theirs = SqliteStore(tmp_path), SqliteStore(tmp_path)
    theirs.create(*new_run(RunId("one")))
    for number in (1, 2):
        row = UsageRow(
            effect=EffectId(f"one/a/i0.a1.l{number}.agent"), unit="a", agent="x", usage=Usage(cost_usd=0.5, input_tokens=10)
        )
        theirs.append([Append(run=RunId("one"), expected_seq=0, at_us=7, usage=(row,))])
        assert mine.day(1) == mine.day(1) == Day(cost_usd=0.5 * number, tokens=10 * number)
    assert mine.day(8) == Day()
    theirs.delete(RunId("one"))
    assert mine.day(1) == Day(cost_usd=1.0, tokens=20)


def test_the_journal_is_synced_on_every_commit(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    assert store._db.pragma("journal_mode") == "wal"
    assert store._db.pragma("synchronous") == 2


def test_a_store_deleted_under_us_stops_acknowledging_and_is_rescued(tmp_path: Path) -> None:
    folder = tmp_path / "repo" / "orc"
    store = SqliteStore(folder)
    store.create(*new_run(RunId("one")))
    store.append([part(1, b"[2]")])
    shutil.rmtree(folder)
    with pytest.raises(StoreVanished) as raised:
        store.append([part(2, b"[3]")])
    assert stat.S_IMODE(raised.value.values["rescue"].stat().st_mode) == 0o600
    rescued = apsw.Connection(str(raised.value.values["rescue"]))
    assert rescued.execute("SELECT count(*) FROM events").fetchall() == [(3,)]


def test_a_newer_schema_stops_driving(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.create(*new_run(RunId("one")))
    assert store.append([part(1)]) == store.append([part(2)]) == [None]
    other = apsw.Connection(str(tmp_path / "orc.db"))
    other.pragma("user_version", 99)
    for _ in range(2):
        with pytest.raises(StoreNewer, match="99"):
            store.append([part(3)])
    with pytest.raises(StoreNewer, match="upgrade"):
        SqliteStore(tmp_path)


def test_a_newer_schema_is_noticed_though_this_process_has_read_and_written_since(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.create(*new_run(RunId("one")))
    assert store.append([part(1)]) == [None]
    other = apsw.Connection(str(tmp_path / "orc.db"))
    other.pragma("user_version", 99)
    assert len(store.rows(RunId("one"))) == 2
    assert store.post(RunId("one"), "d1", b"{}", 1)
    with pytest.raises(StoreNewer, match="99"):
        store.append([part(2)])


def test_the_schema_is_not_changed_while_somebody_drives(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    with store.driving():
        store._db.pragma("user_version", 0)
        with pytest.raises(Unavailable, match="another orc is running"):
            SqliteStore(tmp_path)


def test_migrations_make_the_schema_that_the_queries_need(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    for statement in queries().values():
        store._db.execute("EXPLAIN " + statement, (None,) * statement_parameters(statement)).fetchall()
    assert store._db.pragma("user_version") == len(migrations())


def test_the_ledger_of_the_second_schema_is_taken_over(tmp_path: Path) -> None:
    old = apsw.Connection(str(tmp_path / "orc.db"))
    for script in migrations()[:2]:
        old.execute(script)
    old.pragma("user_version", 2)
    old.execute("INSERT INTO runs VALUES (7, 'one', 'workflow', 'n', ?1, CAST('{}' AS BLOB), ?2, 1, 1)", _second_schema())
    old.execute("""INSERT INTO usage VALUES ('one/a/i0.a1.l1.agent', 0, 7, 'a', 'x', 5, CAST('{"cost_usd": 0.5}' AS BLOB))""")
    old.close()
    store = SqliteStore(tmp_path)
    assert [(line.run, line.usage.cost_usd) for line in store.usage(RunId("one"))] == [("one", 0.5)]
    assert store.day(1).cost_usd == 0.5


def _second_schema() -> tuple[bytes, bytes]:
    new, _ = new_run(RunId("one"))
    return msgspec.json.encode(new.context), msgspec.json.encode(new.summary)


def statement_parameters(statement: str) -> int:
    return max((int(word) for word in re.findall(r"\?(\d+)", statement)), default=0)


def _write_without_pause(folder: Path, ready: Event, stop: Event) -> None:
    store = SqliteStore(folder)
    store.create(*new_run(RunId("one")))
    ready.set()
    seq = 1
    while not stop.is_set():
        store.append([part(seq)])
        seq += 1


def test_a_directive_gets_in_while_another_process_writes_without_pause(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready, stop = context.Event(), context.Event()
    writer = context.Process(target=_write_without_pause, args=(tmp_path, ready, stop))
    writer.start()
    try:
        assert ready.wait(30)
        store = SqliteStore(tmp_path)
        # Without the turnstile some of these wait for the whole busy time-out; here it is shorter than that needs.
        store._db.set_busy_timeout(100)
        for number in range(100):
            assert store.post(RunId("one"), f"d{number}", b"x", number)
        assert len(store.inbox(RunId("one"))) == 100
    finally:
        stop.set()
        writer.join(30)


def _start_at_once(folder: Path, gate: Barrier, name: str) -> None:
    gate.wait(60)
    store = SqliteStore(folder)
    store.create(*new_run(RunId(name)))
    for seq in range(1, 4):
        assert store.append([Append(run=RunId(name), expected_seq=seq, at_us=1, body=b"[1]")]) == [None]
    store.close()


def test_forty_processes_that_start_on_a_new_store_at_once_all_get_their_turn(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    gate = context.Barrier(STARTED_AT_ONCE)
    names = [f"run-{number}" for number in range(STARTED_AT_ONCE)]
    starts = [context.Process(target=_start_at_once, args=(tmp_path / "orc", gate, name)) for name in names]
    for start in starts:
        start.start()
    for start in starts:
        start.join(120)
    assert [start.exitcode for start in starts] == [0] * STARTED_AT_ONCE
    assert {run.id for run in SqliteStore(tmp_path / "orc").runs()} == set(names)


def test_starts_queue_and_do_not_fight_for_the_lock_of_the_database(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    before = os.open(tmp_path / "turnstile", os.O_RDWR)
    fcntl.flock(before, fcntl.LOCK_EX)
    with ThreadPoolExecutor(1) as threads:
        creating = threads.submit(store.create, *new_run(RunId("one")))
        wait([creating], timeout=1.0)
        waited = not creating.done()
        os.close(before)
        creating.result()
    assert waited, "another one was about to start"
    assert store.run("one") is not None


def test_a_start_waits_for_another_one_that_makes_the_schema(tmp_path: Path) -> None:
    held = [os.open(tmp_path / name, os.O_RDWR | os.O_CREAT) for name in ("turnstile", "drivers.lock")]
    for lock in held:
        fcntl.flock(lock, fcntl.LOCK_EX)
    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(SqliteStore, tmp_path)
        wait([opening], timeout=1.5)  # It used to give up after half a second.
        for lock in held:
            os.close(lock)
        assert opening.result().health() == (len(migrations()), [])


def test_a_frozen_poster_does_not_stop_the_engine(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.create(*new_run(RunId("one")))
    frozen = os.open(tmp_path / "turnstile", os.O_RDWR)
    fcntl.flock(frozen, fcntl.LOCK_EX)
    assert store.append([part(1)]) == [None]
    os.close(frozen)


def test_another_process_is_noticed(tmp_path: Path) -> None:
    store, other = SqliteStore(tmp_path), SqliteStore(tmp_path)
    store.create(*new_run(RunId("one")))
    store.moved()
    assert not store.moved()
    other.post(RunId("one"), "d1", b"x", 1)
    assert store.moved()
    assert not store.moved()


def test_a_directive_of_the_process_itself_is_noticed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.create(*new_run(RunId("one")))
    store.moved()
    store.post(RunId("one"), "d1", b"x", 1)
    assert store.moved()
    assert not store.moved()


def test_a_damaged_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "orc.db").write_bytes(b"this is not a database, it is a sentence of prose" * 100)
    with pytest.raises(StoreCorrupt, match=r"orc\.db is damaged"):
        SqliteStore(tmp_path)


def test_a_locked_store_is_named(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.create(*new_run(RunId("one")))
    other = apsw.Connection(str(tmp_path / "orc.db"))
    other.execute("BEGIN IMMEDIATE")
    store._db.set_busy_timeout(1)
    with pytest.raises(StoreLocked):
        store.append([part(1)])
    other.execute("ROLLBACK")
    assert store.append([part(1)]) == [None]


def test_a_full_disk_changes_nothing_and_is_named(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.create(*new_run(RunId("one")))
    store._db.pragma("max_page_count", store._db.pragma("page_count"))
    with pytest.raises(DiskFull, match="nothing was lost"):
        store.append([part(1, b"x" * 100_000)])
    store._db.pragma("max_page_count", 100_000)
    assert len(store.rows(RunId("one"))) == 1
    assert store.append([part(1)]) == [None]


def test_the_systems_own_words_for_a_full_disk_are_mapped(tmp_path: Path) -> None:
    with pytest.raises(DiskFull), translated(tmp_path):
        raise OSError(28, "No space left on device")
    with pytest.raises(StoreUnwritable, match="Permission denied"), translated(tmp_path):
        raise PermissionError(13, "Permission denied")


LIMITED = """
import resource, signal, sys
from pathlib import Path
from agent_orchestrator.errors import Unavailable
from agent_orchestrator.store.sqlite import SqliteStore
from tests.unit.store.test_sqlite import new_run, part, RunId
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = SqliteStore(Path(sys.argv[1]))
store.create(*new_run(RunId("one")))
limit = Path(sys.argv[1], "orc.db-wal").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    store.append([part(1, b"x" * 100_000)])
except Unavailable as error:
    print(type(error).__name__, error)
"""


def test_a_file_that_may_not_grow_is_named_as_that(tmp_path: Path) -> None:
    """A real fault: the kernel refuses the write, and the disk is neither full nor failing."""
    said = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=True).stdout
    assert said.startswith("StoreUnwritable "), said
    assert "ulimit -f" in said


UNWRITABLE = """
import resource, signal, sys
from pathlib import Path
from agent_orchestrator.errors import Unavailable
from agent_orchestrator.store.sqlite import SqliteStore
from tests.unit.store.test_sqlite import part, RunId
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
store = SqliteStore(Path(sys.argv[1]))
print([run.id for run in store.runs()], len(store.rows(RunId("one"))))
one = RunId("one")
for write in (lambda: store.append([part(2)]), lambda: store.post(one, "d1", b"x", 1), lambda: store.delete(one), store.driving):
    try:
        write()
    except Unavailable as error:
        print("refused", error is store.unwritable)
store.close()
"""


def test_a_store_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    """A real fault: where no file may grow, SQLite cannot make the shared memory of its log, as on a full disk."""
    store = SqliteStore(tmp_path)
    store.create(*new_run(RunId("one")))
    store.append([part(1)])
    copied = tmp_path / "copied"
    copied.mkdir()
    for name in ("orc.db", "orc.db-wal"):
        shutil.copy(tmp_path / name, copied)
    done = subprocess.run([sys.executable, "-c", UNWRITABLE, str(copied)], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["['one'] 2", *["refused True"] * 4], done.stderr
    again = SqliteStore(copied)
    assert again.append([part(2)]) == [None], "and nothing was harmed by looking"


@pytest.mark.parametrize("kind", ["nfs4", "9p", "virtiofs", "drvfs"])
def test_network_file_systems_are_refused(kind: str, tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/x {tmp_path} {kind} rw 0 0\n")
    with pytest.raises(UnsupportedFilesystem, match=kind):
        refuse_network_filesystem(tmp_path / "repo", mounts)


def test_a_local_disk_below_a_network_mount_is_fine(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/x / nfs rw 0 0\n/dev/sda {tmp_path} ext4 rw 0 0\n")
    refuse_network_filesystem(tmp_path, mounts)
    with pytest.raises(UnsupportedFilesystem):
        refuse_network_filesystem(tmp_path.parent, mounts)


def test_the_reserve_is_kept_and_given_up(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    store.keep_reserve_file(release=False)
    assert (tmp_path / "reserve").stat().st_size == database.RESERVE_BYTES
    store.keep_reserve_file(release=True)
    assert not (tmp_path / "reserve").exists()
