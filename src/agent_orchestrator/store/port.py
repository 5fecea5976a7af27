"""The port of stores. SQLite, PostgreSQL and memory keep the same promises, checked by `testing.check_store`.

`append` is the only way a fact gets in: all runs of a batch in one transaction, each run's part by itself, so that a
Conflict answers that run only. Nothing above the store knows SQL; nothing in the store knows what an event means.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import msgspec

from agent_orchestrator.core.ids import EffectId, RunId
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.printed import Identity, Printed
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Context
from agent_orchestrator.errors import Conflict, Unavailable
from agent_orchestrator.store.snapshots import SnapshotCache


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """Consumption of one launch; (effect, offset) is unique in a run, so a replayed outcome counts once."""

    effect: EffectId
    unit: str
    agent: str
    usage: Usage
    offset: int = 0


class RateWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A limit on how often an account may ask its model, hit by somebody: closed until it resets."""

    account: str
    name: str
    """As the agent calls it: 5-hour, weekly, …; "unknown" where it does not say."""
    resets_us: int
    seen_us: int
    strikes: int = 1
    """Refusals without a reset time, in a row."""


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """Consumption of all runs since a time, and the reservations for launches at work."""

    cost_usd: float = 0.0
    tokens: int = 0
    wall_s: float = 0.0
    reserved_usd: float = 0.0
    reserved_tokens: int = 0


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run before its first event."""

    system: str
    name: str
    context: Context
    spec: bytes
    summary: Summary


class StartingAgent(msgspec.Struct, frozen=True):
    """An agent that starts once an append is durable, and the account that it works for."""

    effect: EffectId
    account: str


class Append(msgspec.Struct, frozen=True, kw_only=True):
    """One run's part of a group commit."""

    run: RunId
    expected_seq: int
    """The last sequence number the writer knows: the fencing token."""
    epoch: int = 0
    """As whoever drives the run was given it where several hosts share a store; 0 for whatever this process has of the run."""
    at_us: int
    body: bytes | None = None
    """The encoded events; None appends no row."""
    summary: Summary | None = None
    taken: tuple[str, ...] = ()
    usage: tuple[UsageRow, ...] = ()
    windows: tuple[RateWindow, ...] = ()
    over: tuple[EffectId, ...] = ()
    """Launches that have ended: what was reserved for them is given back, and their agents are at work no more."""
    starting: tuple[StartingAgent, ...] = ()
    """Agents that are counted with it, where `Store.accounts` counts any, and their accounts have no limit."""
    release_all: bool = False
    """True for all reservations of the run: nothing of it is at work, or it is about to be looked at anew."""
    printed: tuple[Printed, ...] = ()


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as the store lists it."""

    id: RunId
    system: str
    name: str
    context: Context
    summary: Summary
    updated_us: int


class Which(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that a list is to have; without anything, all."""

    system: str | None = None
    name: str | None = None
    ended: bool | None = None
    begins: str = ""
    """The start of the id."""
    most: int | None = None

    def has(self, run: StoredRun) -> bool:
        """Return True if the run may be in the list, but for `most`."""
        return (
            self.system in (None, run.system)
            and self.name in (None, run.name)
            and self.ended in (None, run.summary.ended)
            and run.id.startswith(self.begins)
        )


EVERY = Which()


class Count(NamedTuple):
    """The number of runs in a store."""

    total: int
    unfinished: int


class StoredUsage(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the ledger."""

    run: RunId
    unit: str
    effect: EffectId
    agent: str
    at_us: int
    usage: Usage
    pruned: bool = False
    """True if the run is gone; another one may have its id by now."""


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """Consumption of one agent with one model."""

    agent: str
    model: str
    """"" where the agent does not say it."""
    launches: int
    cost_usd: float | None
    """Of the launches that said theirs; None where none did."""
    tokens: int
    unknown: int
    """Launches that did not say their cost."""


def sum_spending(lines: Iterable[StoredUsage]) -> list[Spending]:
    """Sum lines of the ledger by agent and model."""
    groups: dict[tuple[str, str], list[Usage]] = {}
    for line in lines:
        groups.setdefault((line.agent, line.usage.model or ""), []).append(line.usage)
    return [
        Spending(
            agent=agent,
            model=model,
            launches=len(some),
            cost_usd=sum(known) if (known := [one.cost_usd for one in some if one.cost_usd is not None]) else None,
            tokens=sum(one.tokens or 0 for one in some),
            unknown=len(some) - len(known),
        )
        for (agent, model), some in sorted(groups.items())
    ]


def fits(day: Day, amount: tuple[float, int], limit: tuple[float, int]) -> bool:
    """Return True if an amount in dollars and tokens, beside what the day has seen, stays within a limit; sums are not exact."""
    usd, tokens = day.cost_usd + day.reserved_usd + amount[0], day.tokens + day.reserved_tokens + amount[1]
    return usd <= limit[0] + 1e-9 and tokens <= limit[1]


Row = tuple[int, int, bytes]
"""seq, at_us, body"""


class TailRow(msgspec.Struct, frozen=True, gc=False):
    """A row of the journals of all runs, in the order in which they were committed."""

    key: int
    """Greater than that of every row before; none is ever given to another row of the store."""
    run: RunId
    seq: int
    at_us: int
    body: bytes | None
    """The encoded events; None where the run of this id was deleted or renamed, or has this id from now on."""


class Cursor(NamedTuple):
    """A reader's place in the journals, and what it keeps with it."""

    key: int
    body: bytes = b""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """Something to be told to somebody outside; known by the reader that tells it, the row that it is about, and its kind."""

    reader: str
    key: int
    kind: str = ""
    body: bytes
    given_up: bool = False


class Outbox(Protocol):
    """The places of readers that tell others what the journals say, and what they have to deliver."""

    def cursor(self, reader: str) -> Cursor | None:
        """Return a reader's place; None if it has none yet."""

    def advance(self, reader: str, expected: int | None, to: Cursor, deliveries: Sequence[Delivery] = ()) -> bool:
        """Move a reader's place on from the key it was at, None for none, and keep what follows from it: both or neither.

        False changes nothing: somebody else has moved it.
        """

    def deliveries(self, reader: str | None = None, *, given_up: bool | None = None) -> list[Delivery]:
        """Return what waits, of one reader or of all, in the order of the journals."""

    def put(self, delivery: Delivery) -> None:
        """Keep a delivery as it is now."""

    def drop(self, delivery: Delivery) -> None:
        """Forget a delivery."""

    def carry(self, reader: str, holder: uuid.UUID, for_s: float) -> bool:
        """Be the one who delivers to a reader, for so long from now on; False while another is. For no time, be it no more.

        A store of one machine says yes to everybody: there a lock on a file, which a death gives back at once, does it.
        """


class Accounts(Protocol):
    """The agents at work of each account, over all hosts that share a store."""

    @property
    def salt(self) -> str:
        """Return a text that no other store has, the same for all hosts and repositories that share it."""

    def start(self, run: RunId, effect: EffectId, account: str, *, adopted: bool = False) -> bool:
        """Let an agent start and count it, if its account has room; one that is adopted works already, and is only counted.

        Asks nobody about one that an append has counted.
        """

    def end(self, run: RunId, effect: EffectId) -> None:
        """Count an agent no more."""


class Store(Protocol):
    """Durable runs, journals, directives and identities of print-outs."""

    @property
    def accounts(self) -> Accounts | None:
        """Return who counts agents at work; None for a store of one machine, which limits none."""

    @property
    def snapshots(self) -> SnapshotCache | None:
        """Return where snapshots are kept; None where nothing but the journal is."""

    remote: bool
    """True for a store that may be away, and whose answers take time: nothing that must go on waits for them."""

    kind: str
    """The program that keeps it, with its version, for people."""

    @property
    def exists(self) -> bool:
        """Return True while there is something to read: looking at runs where there are none creates nothing."""

    @property
    def unwritable(self) -> Unavailable | None:
        """Return why this store can only be read; None where it can be written."""

    def driving(self) -> AbstractContextManager[None]:
        """Keep the schema from being changed for as long as this process drives runs."""

    def health(self) -> tuple[int, list[str]]:
        """Return the version of the schema and what is wrong with what is stored; slow on a large one."""

    @property
    def outbox(self) -> Outbox:
        """Return what is to be told to others."""

    def create(self, run: NewRun, first: Append, copied: Sequence[Row] = ()) -> None:
        """Insert a run under the id of its first events, after rows that are copied from another run. Raises RunExists.

        The id is another than the context's only for a journal that is kept: see `rename`.
        """

    def append_at_once(self, part: Append) -> Conflict | None:
        """Commit a single part, for an event loop that waits; raises StoreAway without an answer: `append` it then, the same."""

    def append(self, batch: Sequence[Append]) -> list[Conflict | None]:
        """Commit a batch; when it returns, what is not a Conflict is durable. Anything else raises for all."""

    def run(self, run: str) -> StoredRun | None:
        """Return one run by its exact id."""

    def runs(self, which: Which = EVERY) -> list[StoredRun]:
        """Return some runs, newest first; it costs what it lists."""

    def count(self) -> Count:
        """Return how many runs there are, and how many of them have not ended."""

    def scan(self, system: str) -> Iterator[StoredRun]:
        """Return a system's runs in the order they were created, for whoever must not hold all of them at once."""

    def spec(self, run: RunId) -> bytes:
        """Return the specification the run was created with."""

    def rows(self, run: RunId, after: int = 0) -> list[Row]:
        """Return the journal of a run in order, from the row after `after`."""

    def mark(self) -> object:
        """Return a value that is another than before if anything may have been committed since; cheap to ask."""

    def newest(self) -> tuple[str, int]:
        """Return the store's epoch, which no other store has, and the key of the newest row of all journals."""

    def since(self, key: int, limit: int) -> list[TailRow]:
        """Return the rows of all journals after a key, at most so many, in order; those of deleted runs are gone."""

    def post(self, run: RunId, directive: str, body: bytes, at_us: int) -> bool:
        """Put a directive into the inbox; False when its id was there before."""

    def posted(self, run: RunId, directive: str) -> bool | None:
        """Return True if a directive of this id was taken, False while it waits, None if the run was never sent one."""

    def moved(self) -> bool:
        """Return True if another process may have written, or a directive was posted, since the last call; cheap to ask."""

    def inbox(self, run: RunId) -> list[tuple[str, bytes]]:
        """Return the directives of a run not taken yet, oldest first."""

    def printed(self, run: RunId) -> dict[str, list[Identity]]:
        """Return the identities of the run's print-outs by path, newest last."""

    def usage(self, run: RunId | None = None) -> list[StoredUsage]:
        """Return the ledger of one run, or of all, pruned ones included."""

    def spending(self, since_us: int) -> list[Spending]:
        """Return the ledger since a time, summed by agent and model."""

    def costs(self, run: RunId | None = None) -> dict[RunId, float]:
        """Return the dollars that runs cost, or one of them; nothing of those none of whose launches said it."""

    def windows(self) -> list[RateWindow]:
        """Return the rate limits that were hit, newest reset of each; those that are over included."""

    def day(self, since_us: int, but_for: str = "") -> Day:
        """Return what all runs consumed since a time, and what they have reserved, one run's left out if asked."""

    def reserved(self, run: RunId) -> tuple[float, int]:
        """Return the dollars and tokens that are reserved for launches of one run."""

    def reserve(
        self, run: RunId, effect: EffectId, amount: tuple[float, int], limit: tuple[float, int], since_us: int, at_us: int
    ) -> bool:
        """Reserve dollars and tokens of the day for a launch, if with all others they stay within the limit.

        In one transaction: two processes cannot both take what only one can have. False changes nothing. Raises Fenced when
        somebody else drives the run.
        """

    def rename(self, run: RunId, to: RunId) -> None:
        """Give a run another id, so that its own can be used again."""

    def delete(self, run: RunId) -> None:
        """Forget a run and everything of it but what it spent."""

    def keep_reserve_file(self, *, release: bool) -> None:
        """Keep, or give up, a little disk space so that a stop can still be journaled on a full disk."""

    def give_up(self) -> None:
        """Let whoever waits for a store that is away go: the journal will say what came of it."""

    def close(self) -> None:
        """End the connection."""
