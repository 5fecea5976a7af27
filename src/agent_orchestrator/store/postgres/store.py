"""The store on PostgreSQL: one call of a function of the server per write, fenced by the epoch of whoever drives the run.

Two connections: appends have one of their own, for they may be made in a thread and wait for a lost answer, while the event
loop goes on reading with the other. Rules and reasons are in the README beside.
"""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec
import psycopg

from agent_orchestrator import typed
from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.printed import Identity
from agent_orchestrator.errors import Conflict, Fenced, RunExists, StoreAway, Unavailable
from agent_orchestrator.store.port import (
    EVERY,
    Append,
    Count,
    Day,
    NewRun,
    RateWindow,
    Row,
    Spending,
    StoredRun,
    StoredUsage,
    TailRow,
    Which,
)
from agent_orchestrator.store.postgres.accounts import PostgresAccounts
from agent_orchestrator.store.postgres.address import ServerAddress
from agent_orchestrator.store.postgres.arrays import Bigints, Bodies, Booleans, Documents, Texts, register_arrays
from agent_orchestrator.store.postgres.connection import Link, Rows
from agent_orchestrator.store.postgres.leases import Leases
from agent_orchestrator.store.postgres.outbox import PostgresOutbox
from agent_orchestrator.store.postgres.outputs import PostgresOutputs
from agent_orchestrator.store.postgres.schema import SQL, open_schema
from agent_orchestrator.store.postgres.text import encode_more, storable
from agent_orchestrator.store.queries import newest_version, queries
from agent_orchestrator.store.rows import read_run

PAGE = 1_000
LOOKS_BETWEEN = 20
"""Looks after which something may have happened that nobody announced: a lost notice, a pooler that passes none on."""
FENCED, UNCOUNTED = -2, -3
LAST = "\U0010ffff"

_encode = msgspec.json.encode
_identity = typed.decoder(Identity)
_usage = typed.decoder(Usage)


class PostgresStore:
    """The runs of one repository in a database that many share."""

    remote = True
    snapshots = None
    exists = True
    unwritable: Unavailable | None = None

    def __init__(self, address: str, repository: str) -> None:
        self.url, self.address, self.repository = address, ServerAddress(address), repository
        self._sql = queries(SQL)
        self._ident, self.kind = "", "PostgreSQL"
        self._key: int | None = None
        self._unanswered: dict[int, tuple[Append, uuid.UUID]] = {}
        """Parts of which nobody knows what became of them, with the token of each: it is known by that when it comes again."""
        self._listens = False
        self._looks = 0
        self._connections = 0
        self._main, self._appends = Link(self.address, self._prepare), Link(self.address, self._prepare)
        self.outbox = PostgresOutbox(self._main, self._sql, self._known, self._repository)
        self.leases = Leases(Link(self.address, self._prepare), self._sql, repository, self._known)
        self.outputs = PostgresOutputs(Link(self.address, self._prepare), self._sql, self._known, self.leases)
        self.accounts = PostgresAccounts(self._main, self._sql, self._known, self.leases)
        try:
            self._fetch("horizon")  # whoever opens a store hears at once that it is away, or none
        except BaseException:
            self.close()
            raise

    def _prepare(self, made: psycopg.Connection) -> None:
        self._ident = open_schema(self.address, made)
        register_arrays(made)
        self.kind = f"PostgreSQL {made.info.parameter_status('server_version')}"
        if self._listens:
            made.execute(self._sql["listen"].encode())

    def _fetch(self, name: str, *values: object, prepare: bool | None = None) -> Rows:
        return self._main.read(self._sql[name], values, prepare=prepare)

    def _known(self) -> int | None:
        """Return the key of the repository; None while nothing is kept of it, and then nothing is found."""
        if self._key is None:
            self._key = next((key for (key,) in self._fetch("find_repository", self.repository)), None)
        return self._key

    def _repository(self) -> int:
        """Return the key of the repository, which is made known with the first thing that is kept of it."""
        if self._known() is None:
            self._key = self._main.write(self._sql["make_repository"], (self.repository,))[0][0]
        assert self._key is not None
        return self._key

    def driving(self) -> AbstractContextManager[None]:
        """Do nothing: the lease of whoever drives keeps migrations away."""
        return contextlib.nullcontext()

    def create(self, run: NewRun, first: Append, copied: Sequence[Row] = ()) -> None:
        """Insert a run with its first events, after copied rows."""
        context, summary = run.context, first.summary or run.summary
        worker, claim = self.leases.pending(first.run)
        values = (
            *(uuid.uuid4(), self._repository(), worker, claim, first.run, run.system, storable(run.name), _encode(context)),
            *(run.spec, _encode(summary), context.created_us, summary.ended),
            *([row[0] for row in copied], [row[1] for row in copied], [row[2] for row in copied]),
            *(first.expected_seq, first.at_us, first.body, encode_more(first)),
        )
        epoch = self._main.write(self._sql["create_run"], values)[0][0]
        if epoch is None:
            known = self.run(first.run)
            raise RunExists(run=first.run, status=known.summary.status if known else "unknown")
        self.leases.made(first.run, epoch)

    def append(self, batch: Sequence[Append]) -> list[Conflict | None]:
        """Commit a batch in one call; when an answer is lost it is asked for until it is known."""
        parts = sorted(batch, key=lambda part: part.run)
        if (unanswered := self._unanswered.pop(id(batch[0]), None)) is not None:
            rows = self._appends.find_out(self._sql["append"], self._values(parts, unanswered[1]))
        else:
            rows = self._appends.write(self._sql["append"], self._values(parts, uuid.uuid4()), tries=None)
        answers: list[int | None] = rows[0][0]
        self._announce(parts)
        told = {id(part): self._conflict(part, answer) for part, answer in zip(parts, answers, strict=True)}
        return [told[id(part)] for part in batch]

    def append_at_once(self, part: Append) -> Conflict | None:
        """Append a single part, from an event loop; raises StoreAway where no answer comes at once: `append` finds out then."""
        token = uuid.uuid4()
        rows = self._appends.write_at_once(self._sql["append"], self._values([part], token))
        if rows is None:
            self._unanswered[id(part)] = part, token
            raise StoreAway(place=self.address.shown, detail="it does not answer at once")
        self._announce([part])
        return self._conflict(part, rows[0][0][0])

    def _announce(self, parts: list[Append]) -> None:
        """Tell others of limits that were hit: rare, and worth it.

        Never with the append itself: committing a notice takes a lock of the whole server.
        """
        if any(part.windows for part in parts):
            with contextlib.suppress(Unavailable):
                self._appends.write(self._sql["notify"], (f"{self._repository()}/",))

    def _values(self, parts: list[Append], token: uuid.UUID) -> tuple[object, ...]:
        summaries = [part.summary for part in parts]
        launches: list[tuple[int, EffectId, str | None]] = []
        for number, part in enumerate(parts, 1):
            launches += [(number, effect, None) for effect in part.over]
            launches += [(number, one.effect, one.account) for one in part.starting]
        return (
            *(token, self._repository(), self.leases.worker),
            Texts(part.run for part in parts),
            Bigints(part.epoch or self.leases.epoch(part.run) for part in parts),
            Bigints(part.expected_seq for part in parts),
            Bigints(part.at_us for part in parts),
            Bodies(part.body for part in parts),
            Bodies(_encode(summary) if summary is not None else None for summary in summaries),
            Booleans(summary.ended if summary is not None else None for summary in summaries),
            Documents(encode_more(part) for part in parts),
            Bigints(number for number, _, _ in launches),
            Texts(effect for _, effect, _ in launches),
            Texts(account for _, _, account in launches),
        )

    def _conflict(self, part: Append, answer: int | None) -> Conflict | None:
        """Return what an answer means, and note which agents were counted."""
        if answer is None:
            self.accounts.note_counted(part.starting)
        if answer is None or answer == UNCOUNTED:
            return None
        refused = Fenced if answer == FENCED else Conflict
        return refused(run=part.run, expected=part.expected_seq, found=answer)

    def run(self, run: str) -> StoredRun | None:
        """Return one run by its exact id."""
        rows = self._fetch("select_run", self._known(), storable(run))
        return read_run(rows[0]) if rows else None

    def runs(self, which: Which = EVERY) -> list[StoredRun]:
        """Return some runs, newest first."""
        begins = storable(which.begins) or None
        name = storable(which.name) if which.name is not None else None
        values = (which.system, name, which.ended, begins, begins and begins + LAST, which.most)
        return [read_run(row) for row in self._fetch("select_runs", self._known(), *values, prepare=False)]

    def count(self) -> Count:
        """Return how many runs there are."""
        return Count(*self._fetch("count_runs", self._known())[0])

    def scan(self, system: str) -> Iterator[StoredRun]:
        """Return a system's runs, oldest first, a page at a time."""
        last = 0
        while rows := self._fetch("select_page", self._known(), last, system, PAGE):
            for row in rows:
                yield read_run(row[1:])
            last = rows[-1][0]

    def spec(self, run: RunId) -> bytes:
        """Return the specification the run was created with."""
        body: bytes = self._fetch("select_spec", self._known(), run)[0][0]
        return body

    def rows(self, run: RunId, after: int = 0) -> list[Row]:
        """Return the journal of a run in order."""
        rows: Any = self._fetch("select_rows", self._known(), run, after)
        return list(rows)

    def mark(self) -> object:
        """Return the key up to which all is committed: every write takes one."""
        return self._fetch("horizon")[0][0]

    def newest(self) -> tuple[str, int]:
        """Return the epoch of this repository in this store, and the key of its newest row below which no other can appear."""
        ident, key = self._fetch("select_newest", self._known())[0]
        return hashlib.sha256(f"{ident}/{self.repository}".encode()).hexdigest()[:12], key

    def since(self, key: int, limit: int) -> list[TailRow]:
        """Return the rows of all journals after a key, as far as all before them are committed."""
        return [TailRow(*row) for row in self._fetch("select_since", self._known(), key, limit)]

    def post(self, run: RunId, directive: str, body: bytes, at_us: int) -> bool:
        """Put a directive into the inbox; whoever drives the run hears of it."""
        values = (uuid.uuid4(), self._repository(), run, storable(directive), at_us, body)
        posted = self._main.write(self._sql["post"], values)[0][0]
        if posted is None:
            raise Conflict(run=run, expected=0, found=-1)
        return bool(posted)

    def posted(self, run: RunId, directive: str) -> bool | None:
        """Return True if a directive was taken, False while it waits, None if there is none."""
        found = self._fetch("select_posted", self._known(), run, storable(directive))
        return bool(found[0][0]) if found else None

    def moved(self) -> bool:
        """Return True if something was announced for this repository, or may have been: after a lost connection, now and then."""
        if not self._listens:
            self._main.read(self._sql["listen"])
            self._listens = True
        self._looks += 1
        heard = self._main.hear()
        seen, self._connections = self._connections, self._main.connections
        if seen != self._connections or self._looks % LOOKS_BETWEEN == 0:
            return True
        return any(said.startswith(f"{self._key}/") for said in heard)

    def inbox(self, run: RunId) -> list[tuple[str, bytes]]:
        """Return the directives of a run not taken yet."""
        rows: Any = self._fetch("select_inbox", self._known(), run)
        return list(rows)

    def printed(self, run: RunId) -> dict[str, list[Identity]]:
        """Return the identities of the run's print-outs by path."""
        found: dict[str, list[Identity]] = {}
        for path, body in self._fetch("select_printed", self._known(), run):
            found.setdefault(path, []).append(_identity(body))
        return found

    def usage(self, run: RunId | None = None) -> list[StoredUsage]:
        """Return the ledger of one run, or of all."""
        return [
            StoredUsage(run=name, unit=unit, effect=effect, agent=agent, at_us=at_us, usage=_usage(body), pruned=pruned)
            for name, unit, effect, agent, at_us, body, pruned in self._fetch("select_usage", self._known(), run, prepare=False)
        ]

    def spending(self, since_us: int) -> list[Spending]:
        """Return the ledger since a time, by agent and model."""
        return [
            Spending(agent=agent, model=model, launches=launches, cost_usd=cost_usd, tokens=tokens, unknown=launches - known)
            for agent, model, launches, cost_usd, known, tokens in self._fetch("select_spending", self._known(), since_us)
        ]

    def costs(self, run: RunId | None = None) -> dict[RunId, float]:
        """Return what runs cost, or one of them, where any launch said so."""
        rows: Any = self._fetch("select_costs", self._known(), run, prepare=False)
        return dict(rows)

    def windows(self) -> list[RateWindow]:
        """Return the rate limits that were hit."""
        return [
            RateWindow(account=account, name=name, resets_us=resets_us, seen_us=seen_us, strikes=strikes)
            for account, name, resets_us, seen_us, strikes in self._fetch("select_windows")
        ]

    def day(self, since_us: int, but_for: str = "") -> Day:
        """Return what all runs of the repository consumed and reserved since a time."""
        usd, tokens, wall_s, held_usd, held_tokens = self._fetch("select_day", self._known(), since_us, but_for)[0]
        return Day(cost_usd=usd, tokens=tokens, wall_s=wall_s, reserved_usd=held_usd, reserved_tokens=held_tokens)

    def reserved(self, run: RunId) -> tuple[float, int]:
        """Return what is reserved for launches of one run."""
        usd, tokens = self._fetch("select_run_reserved", self._known(), run)[0]
        return usd, tokens

    def reserve(
        self, run: RunId, effect: EffectId, amount: tuple[float, int], limit: tuple[float, int], since_us: int, at_us: int
    ) -> bool:
        """Reserve something, if it fits."""
        epoch, worker = self.leases.epoch(run), self.leases.worker
        values = (uuid.uuid4(), self._repository(), worker, run, epoch, effect, *amount, *limit, since_us, at_us)
        answer = self._main.write(self._sql["reserve"], values)[0][0]
        if answer is None:
            raise Fenced(run=run, expected=epoch, found=FENCED)
        return bool(answer)

    def placed(self, run: RunId) -> tuple[str, str, int]:
        """Return whether a run rests, is queued, driven or ended, its pool, '' for none, and its priority."""
        state, pool, priority = self._fetch("select_placed", self._known(), run)[0]
        return state, pool, priority

    def rename(self, run: RunId, to: RunId) -> None:
        """Give a run another id; nobody drives it under that."""
        for (key,) in self._fetch("run_key", self._known(), run):
            self._main.write(self._sql["rename_run"], (self._repository(), key, to))
            self.leases.freed(run)

    def delete(self, run: RunId) -> None:
        """Forget a run and everything of it but what it spent."""
        for (key,) in self._fetch("run_key", self._known(), run):
            self._main.write(self._sql["delete_run"], (self._repository(), key))
            self.leases.freed(run)

    def keep_reserve_file(self, *, release: bool) -> None:
        """Do nothing: the server's disk is not ours to keep room on."""

    def health(self) -> tuple[int, list[str]]:
        """Return the schema version and the runs whose journals are not whole."""
        found = self._fetch("find_faults", self._known())
        faults = [f"the journal of run {run} has {rows} rows up to {last}, not {seq}" for run, seq, rows, last in found]
        return newest_version(SQL), faults

    def give_up(self) -> None:
        """Ask no more for the answer to an append that was lost."""
        self._appends.give_up()

    def close(self) -> None:
        """End the connections; whoever waits for a lost answer is let go."""
        for link in (self._appends, self._main):
            link.close()
        self.leases.close()
        self.outputs.close()
