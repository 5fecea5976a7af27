"""Links and pipes in the place of files in the store's own folder: nothing is written through one, and nobody waits at one."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_orchestrator.beneath import LinkInTheWay, NotRegular, open_own
from agent_orchestrator.config import data_folder, load_settings
from agent_orchestrator.core.files import DRAFT
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.engine.ownership import Ownership, owner_of
from agent_orchestrator.errors import StoreUnwritable, Unavailable
from agent_orchestrator.git.command import hold_lock
from agent_orchestrator.runs.agent_door import open_door
from agent_orchestrator.runs.lock import alone
from agent_orchestrator.runs.notify.notifier import CourierLock
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.database import RESERVE_BYTES, keep_reserve, keep_schema
from agent_orchestrator.store.sqlite import SqliteStore
from agent_orchestrator.surfaces.mcp.door import read_key
from agent_orchestrator.surfaces.web.jobs import Jobs
from agent_orchestrator.surfaces.web.sessions import Sessions
from tests.acceptance.rig import Rig
from tests.stores import OWN_STORE

KINDS = ("link", "dangling link", "pipe", "folder")
REFUSED = (LinkInTheWay, NotRegular, Unavailable, IsADirectoryError)


def plant(file: Path, kind: str, victim: Path) -> None:
    """Put something else in the place of a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to(victim if kind == "link" else victim.with_name("made"))


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of the user's that a link may lead to."""
    made = tmp_path / "elsewhere" / "victim"
    made.parent.mkdir()
    made.write_text("precious")
    return made


def is_untouched(victim: Path) -> bool:
    """Say whether nothing was written, or made, through a link."""
    return victim.read_text() == "precious" and list(victim.parent.iterdir()) == [victim]


def own(store: Path) -> None:
    """Take a run up."""
    Ownership(store, RunId("one")).release()


def start_alone(store: Path) -> None:
    """Start as the only one."""
    with alone(store, "loops"):
        pass


def drive(store: Path) -> None:
    """Keep the schema while a run is driven."""
    with keep_schema(store):
        pass


def open_store(store: Path) -> None:
    """Open the store."""
    SqliteStore(store).close()


def deliver(store: Path) -> None:
    """Take the right to deliver."""
    with Orchestrator(store.parent.parent) as orchestrator:
        lock = CourierLock(orchestrator, "desk")
        lock.take()
        lock.give_back()


def work(store: Path) -> None:
    """Change something with git."""
    with hold_lock(store.parent.parent, "worktrees") as held:
        held.intend(b"x")


def start_job(store: Path) -> None:
    """Let the page start something."""
    repository: Any = SimpleNamespace(settings=SimpleNamespace(folder=store, environ=os.environ), key=str)

    async def start() -> None:
        jobs = Jobs(lambda *_: None)
        await jobs.start(repository, "one", "version", "job", ["version"])
        await asyncio.gather(*jobs._tasks)

    asyncio.run(start())


WAYS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a run's lock": (own, "runs/one.lock"),
    "the lock of those that start": (start_alone, "loops.starting"),
    "the lock of drivers": (drive, "drivers.lock"),
    "the turnstile": (open_store, "turnstile"),
    "the store": (open_store, "orc.db"),
    "a courier's lock": (deliver, "notify/desk.lock"),
    "a lock of git": (work, "locks/worktrees"),
    "an intent of git": (work, "locks/worktrees.intent"),
    "the words of a job": (start_job, "web/job.err"),
}


def marked(ways: Iterable[str]) -> list[Any]:
    """A courier that delivers from a server has no lock here."""
    return [pytest.param(way, marks=OWN_STORE) if way == "a courier's lock" else way for way in ways]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", marked(WAYS))
def test_what_stands_in_the_place_of_a_file_of_the_store_is_refused(repo: Path, victim: Path, way: str, kind: str) -> None:
    use, name = WAYS[way]
    store = repo / ".git" / "orc"
    plant(store / name, kind, victim)
    with pytest.raises(REFUSED):
        use(store)
    assert is_untouched(victim)


@pytest.mark.parametrize("way", marked(way for way, (_, name) in WAYS.items() if "/" in name))
def test_a_link_in_the_place_of_a_folder_of_the_store_is_refused(repo: Path, victim: Path, way: str) -> None:
    use, name = WAYS[way]
    folder = (repo / ".git" / "orc" / name).parent
    folder.parent.mkdir(parents=True)
    folder.symlink_to(victim.parent)
    with pytest.raises(REFUSED):
        use(repo / ".git" / "orc")
    assert is_untouched(victim)


@pytest.mark.parametrize("kind", KINDS[:3])
def test_what_is_written_anew_replaces_what_stands_in_its_place(tmp_path: Path, victim: Path, kind: str) -> None:
    run: Any = SimpleNamespace(id="one")
    for name in ("reserve", "runs/one.door"):
        plant(tmp_path / "store" / name, kind, victim)
    keep_reserve(tmp_path / "store" / "reserve", release=False)
    open_door(tmp_path / "store" / "runs" / "one.door", run).listener.close()
    reserve, door = (tmp_path / "store" / name for name in ("reserve", "runs/one.door"))
    assert (reserve.is_symlink(), reserve.lstat().st_size, door.is_symlink()) == (False, RESERVE_BYTES, False)
    assert door.lstat().st_mode & 0o777 == 0o600
    assert is_untouched(victim)


@pytest.mark.parametrize("kind", KINDS[:3])
def test_keys_and_sessions_of_a_user_go_into_files_of_his_own(tmp_path: Path, victim: Path, kind: str) -> None:
    settings = load_settings(str(tmp_path), environ={"XDG_DATA_HOME": str(tmp_path / "data")})
    folder = data_folder(settings)
    assert folder is not None
    files = (folder / "web" / "sessions", folder / "mcp" / "key")
    for file in files:
        for draft in (f".{file.name}.{os.getpid()}", f".{file.name}.{os.getpid()}{DRAFT}"):
            plant(file.with_name(draft), kind, victim)
    sessions = Sessions(files[0])
    assert sessions.redeem(sessions.make_key()) is not None
    key = read_key(settings)
    assert [file.lstat().st_mode for file in files] == [stat.S_IFREG | 0o600] * 2
    assert files[1].read_text() == f"{key}\n"
    assert is_untouched(victim)


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_drives_a_run_whose_lock_is_none(tmp_path: Path, victim: Path, kind: str) -> None:
    plant(tmp_path / "store" / "runs" / "one.lock", kind, victim)
    assert owner_of(tmp_path / "store", RunId("one")) is None


def test_the_file_to_remove_is_named_and_never_the_store_instead(tmp_path: Path, victim: Path) -> None:
    SqliteStore(tmp_path / "store").close()
    plant(tmp_path / "store" / "turnstile", "link", victim)
    with pytest.raises(StoreUnwritable, match=r"remove \S*/turnstile, which is none of ours"):
        SqliteStore(tmp_path / "store")


def test_a_log_is_written_and_read_as_a_file_of_ours_only(tmp_path: Path, victim: Path) -> None:
    log = tmp_path / "store" / "runs" / "one.log"
    plant(log, "pipe", victim)
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_APPEND, os.O_RDWR):
        with pytest.raises(NotRegular, match="not a regular file"):
            open_own(tmp_path / "store", log, flags)


@pytest.mark.parametrize("name", [pytest.param("drivers.lock", marks=OWN_STORE), "runs/two.log", "locks/excluding"])
def test_a_command_says_what_stands_in_its_way_and_how_to_go_on(repo: Path, victim: Path, name: str) -> None:
    rig = Rig(repo)
    assert rig.run("--run-id", "one").code == 0
    plant(repo / ".git" / "orc" / name, "link", victim)
    refused = rig.run("--run-id", "two", "--detach")
    said = refused.out + refused.err
    assert (refused.code, f"{name} is none of ours" in said, "internal error" in said) == (3, True, False), refused
    assert is_untouched(victim)
