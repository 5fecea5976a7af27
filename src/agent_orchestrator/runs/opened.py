"""The parts of a repository's runs that are opened when they are first needed: the store, and what says who drives a run."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Callable
from pathlib import Path
from typing import Self

from agent_orchestrator.config import Settings, load_settings
from agent_orchestrator.config.store_address import StoreAddress, find_store
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.who import Surface
from agent_orchestrator.engine.clock import SystemClock, boot_id, place_id
from agent_orchestrator.engine.owners import LockOwners, Owned, Owners
from agent_orchestrator.errors import StoreAway
from agent_orchestrator.runs.stores import keep_name, lease_owners, open_store
from agent_orchestrator.store.failures import translated
from agent_orchestrator.store.port import Store

AWAITED_LOOKS, AWAITED_LOOK_S = 120, 0.5


class OpenedRuns:
    """The store of a repository, and the runs in it that this object has taken up."""

    def __init__(
        self,
        repo: str | Path | None = None,
        *,
        settings: Settings | None = None,
        surface: Surface = Surface.LIBRARY,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.settings = settings or load_settings(None if repo is None else str(repo))
        self._surface, self.say = surface, say or (lambda text: None)
        self.clock = SystemClock()
        self._address: tuple[StoreAddress | None] | None = None
        self._store: Store | None = None
        self._owned: dict[str, Owned] = {}
        self._owners: Owners | None = None

    @property
    def address(self) -> StoreAddress | None:
        """Return the database that the runs are kept in; None for the repository's own store."""
        if self._address is None:
            self._address = (find_store(self.settings),)
        return self._address[0]

    @property
    def store(self) -> Store:
        """Return the store, opened (and made) when first needed."""
        if self._store is None:
            self._store = open_store(self.settings.folder, self.address)
            if self._store.unwritable is not None:
                self.say(f"{self._store.unwritable} Until then runs can be looked at, and nothing else.")
        return self._store

    @property
    def owners(self) -> Owners:
        """Return what says who drives runs."""
        if self._owners is None:
            self._owners = LockOwners(self.settings.folder) if self.address is None else lease_owners(self.store, self.settings)
        return self._owners

    @property
    def boot(self) -> str:
        """Identify this boot of the machine; with a store that other machines share, the place in it, too."""
        return boot_id() if self.address is None else place_id()

    def await_store(self) -> None:
        """Wait a while for a store that is away: what follows the end of a run needs it, and says so if it stays away."""
        for _ in range(AWAITED_LOOKS):
            with contextlib.suppress(StoreAway):
                self.store.mark()
                return
            select.select([], [], [], AWAITED_LOOK_S)

    def lend(self, other: OpenedRuns) -> None:
        """Let another object use the store, the lease and the runs that were taken up; only this one closes them."""
        other._surface, other._store, other._owners, other._owned = self._surface, self.store, self.owners, self._owned

    def close(self) -> None:
        """Close the store, and let go of runs that were started and never driven."""
        for owned in self._owned.values():
            if owned.held:
                owned.release()
        if self._owners is not None:
            self._owners.close()
            self._owners = None
        if self._store is not None:
            self._store.close()
            self._store = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def has_store(self) -> bool:
        """True if there is a store; reading runs where there are none creates nothing."""
        return self._store is not None or self.address is not None or (self.settings.folder / "orc.db").exists()

    def own(self, run: str) -> Owned:
        """Take a run up, so that nobody else drives it; raises RunBusy."""
        keep_name(self.settings, self.address)
        with translated(self.settings.folder / "orc.db"):
            self._owned[run] = owned = self.owners.own(RunId(run))
        return owned

    def owned(self, run: str) -> Owned | None:
        """Return what this object holds of a run that it has taken up and not let go of."""
        owned = self._owned.get(run)
        return owned if owned is not None and owned.held else None
