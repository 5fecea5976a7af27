"""The agents at work of each account, counted over all hosts and repositories of a database."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.errors import Fenced
from agent_orchestrator.store.port import StartingAgent
from agent_orchestrator.store.postgres.connection import Link
from agent_orchestrator.store.postgres.leases import Leases


class PostgresAccounts:
    """The agents at work of one repository's runs."""

    def __init__(self, link: Link, sql: dict[str, str], known: Callable[[], int | None], leases: Leases) -> None:
        self._link, self._sql, self._known, self._leases = link, sql, known, leases
        self._counted: set[EffectId] = set()
        """Agents that an append has counted, and that have not started yet."""

    @property
    def salt(self) -> str:
        """Return the identity of the database; raises StoreAway."""
        return str(self._link.read(self._sql["select_store"], ())[0][0])

    def start(self, run: RunId, effect: EffectId, account: str, *, adopted: bool = False) -> bool:
        """Let an agent start, if its account has room; one that was adopted works already. Raises Fenced and StoreAway."""
        if effect in self._counted:
            self._counted.discard(effect)
            return True
        epoch = self._leases.epoch(run)
        values = (self._known(), run, self._leases.worker, epoch, effect, account, adopted)
        answer = self._link.write(self._sql["start_work"], values)[0][0]
        if answer is None:
            raise Fenced(run=run, expected=epoch, found=0)
        return bool(answer)

    def note_counted(self, starting: Iterable[StartingAgent]) -> None:
        """Take it that an append has counted some agents."""
        self._counted.update(one.effect for one in starting)

    def end(self, run: RunId, effect: EffectId) -> None:
        """Count an agent no more; raises StoreAway."""
        self._counted.discard(effect)
        self._link.write(self._sql["end_work"], (self._known(), run, effect), tries=1)
