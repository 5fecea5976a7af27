"""Opens the store that a repository's runs are kept in. Whoever has a file of its own pays for nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_orchestrator.config.store_address import NAME_FILE, kept_name
from agent_orchestrator.errors import Refused, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from agent_orchestrator.config import Settings
    from agent_orchestrator.config.store_address import StoreAddress
    from agent_orchestrator.engine.owners import Owners
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import Store

INSTALL = "pip install 'orc-agents[postgres]'"


def open_store(folder: Path, address: StoreAddress | None) -> Store:
    """Open the repository's own store, made where there is none, or its part of a database."""
    if address is None:
        from agent_orchestrator.store.sqlite import SqliteStore

        return SqliteStore(folder)
    try:
        from agent_orchestrator.store.postgres import PostgresStore
    except ModuleNotFoundError as error:
        raise Unavailable(detail=f"A store on PostgreSQL needs {error.name}, which is not installed: {INSTALL}.") from error
    return PostgresStore(address.url, address.repository)


def keep_name(settings: Settings, address: StoreAddress | None) -> None:
    """Keep the name that the runs of a repository have in a database, if nobody gave it: another remote does not change it."""
    if address is None or address.configured or kept_name(settings):
        return
    from agent_orchestrator.engine.files import write_whole

    settings.folder.mkdir(parents=True, exist_ok=True)
    write_whole(settings.folder, settings.folder / NAME_FILE, f"{address.repository}\n".encode())


def lease_owners(store: Store, settings: Settings) -> Owners:
    """Return what says who drives the runs of a database: the leases in it."""
    from agent_orchestrator.engine.leases import LeaseOwners, this_worker
    from agent_orchestrator.store.postgres import PostgresStore
    from agent_orchestrator.version import __version__

    assert isinstance(store, PostgresStore), store
    return LeaseOwners(store.leases, this_worker(root=str(settings.home), version=__version__))


def require_shared(orchestrator: Orchestrator) -> StoreAddress:
    """Return the store that workers share, which can be opened; raise Refused where runs are kept in the repository's own."""
    if orchestrator.address is None:
        raise Refused(why="Workers take runs from a store that they share; give --store postgresql://HOST/DATABASE.")
    assert orchestrator.store.exists, "a shared store is opened, or says why it cannot be"
    return orchestrator.address


def install_store(address: StoreAddress, *, migrate: bool = False) -> int:
    """Prepare a database, or only bring one that is prepared to this version; return its version before, 0 for none."""
    try:
        from agent_orchestrator.store.postgres import install
    except ModuleNotFoundError as error:
        raise Unavailable(detail=f"A store on PostgreSQL needs {error.name}, which is not installed: {INSTALL}.") from error
    return install(address.url, create=not migrate)
