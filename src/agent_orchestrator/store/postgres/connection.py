"""One connection to the server, made when it is needed and made again when it was lost.

A statement is a transaction of its own. One that only reads is asked again after a lost connection. One that writes may have
been carried out though its answer was lost, so it carries a token and is sent until there is an answer: the server knows
what it has done already. While the server is away everything else is answered so at once, and a thread tries to connect
once a second: whoever asks may be an event loop, which must not wait for a host that does not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg

from agent_orchestrator.errors import STORE_PASSES, OrcError, StoreAway, StoreUnwritable
from agent_orchestrator.store.postgres.address import ServerAddress
from agent_orchestrator.store.postgres.failures import RETRIED, connection_error, statement_error
from agent_orchestrator.store.postgres.patience import LOOP_ANSWER_S, PARTING_S, NoAnswer, PatientConnection
from agent_orchestrator.store.queries import queries

AGAIN_S = 1.0
AT_ONCE_S = 0.1
"""An event loop that has found a server quick waits in place about as long for the next answer."""
LOOKS, LOOK_S = 20, 0.25
"""For so long a command waits for a server that is started again, before it says that it is away."""
RETRIES_MAX = 5
READS_MAX = 5
ANSWER_TRIES = 30
"""Seconds, about, for which a command of a person looks for an answer that was lost."""

SQL = Path(__file__).parent / "sql"

Rows = list[tuple[Any, ...]]


def connect_bounded(address: ServerAddress) -> psycopg.Connection:
    """Connect for transactions of others: whoever freezes inside one loses it, and its locks, after a while."""
    made = address.connect()
    made.execute(queries(SQL)["bound_transactions"].encode())
    made.commit()
    return made


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Link:
    """A connection for one thread at a time; others wait for it."""

    def __init__(
        self, address: ServerAddress, prepare: Callable[[psycopg.Connection], None] = lambda made: None, *, patient: bool = True
    ) -> None:
        self.address, self._patient = address, patient
        self._prepare = prepare
        """Called with each new connection, before anything else uses it."""
        self._made: psycopg.Connection | None = None
        self._lock = threading.RLock()
        self._away: OrcError | None = None
        """The last failure to connect, for as long as trying again would only cost time."""
        self._closed = threading.Event()
        self._heard: list[str] = []
        self._looks_left = LOOKS
        self.connections = 0
        self.answer_s: float | None = None
        """The longest silence of the server while an answer is due, where that has to be shorter than for others."""

    def read(self, statement: str, values: Sequence[object] = (), *, prepare: bool | None = None) -> Rows:
        """Return the rows of a statement that changes nothing."""
        silent = _is_on_loop()
        with self._lock:
            for _ in range(READS_MAX):
                made = self._connected()
                try:
                    return self._execute(made, statement, values, prepare)
                except NoAnswer as error:
                    if silent:
                        raise connection_error(self.address, error) from error
                    silent = True  # It may be this connection alone: another one is asked, once.
                except psycopg.Error as error:
                    if not made.closed:
                        raise statement_error(self.address, error) from error
            raise StoreAway(place=self.address.shown, detail="the connection is lost again and again")

    def write(self, statement: str, values: Sequence[object], *, tries: int | None = ANSWER_TRIES) -> Rows:
        """Return the answer to a statement that may be sent again; raises StoreAway only if it was never carried out.

        Without an answer it is sent again, as often as `tries`, or until this link is closed.
        """
        with self._lock:
            made, refused = self._lively(), 0
            while True:
                try:
                    return self._execute(made, statement, values, None)
                except psycopg.Error as error:
                    if made.closed:
                        break
                    refused += 1
                    if error.sqlstate not in RETRIED or refused == RETRIES_MAX:
                        raise statement_error(self.address, error) from error
            return self._ask_again(statement, values, tries)

    def write_at_once(self, statement: str, values: Sequence[object]) -> Rows | None:
        """Return the answer to a statement if it comes at once, for an event loop, which has others to look after.

        None says that it may have been done: then it has to be sent until there is an answer. StoreAway says that it was not.
        """
        with self._lock:
            made = self._made
            if made is None or not self._is_lively(made):
                raise StoreAway(place=self.address.shown, detail="the connection is lost")
            self.answer_s = AT_ONCE_S
            try:
                return self._execute(made, statement, values, None)
            except psycopg.Error as error:
                if made.closed:
                    return None
                if error.sqlstate in RETRIED:  # It gave way to another one: `write` tries it again.
                    raise StoreAway(place=self.address.shown, detail="it is busy") from error
                raise statement_error(self.address, error) from error
            finally:
                self.answer_s = None

    def find_out(self, statement: str, values: Sequence[object]) -> Rows:
        """Send a statement that was sent before until there is an answer, or this link is closed."""
        with self._lock:
            return self._ask_again(statement, values, None)

    def _ask_again(self, statement: str, values: Sequence[object], tries: int | None) -> Rows:
        """Send a statement until there is an answer, however long it takes; give up after so many seconds.

        A refusal that passes by itself, as of a server that is not yet writable, says nothing about the first time.
        """
        tried = 0
        while True:
            try:
                return self._execute(self._connected(), statement, values, None)
            except (StoreAway, psycopg.Error) as error:
                lost = self._made is None or self._made.closed
                ours = error if isinstance(error, StoreAway) or lost else statement_error(self.address, error)
                if not isinstance(ours, (*STORE_PASSES, StoreUnwritable, psycopg.Error)):
                    raise ours from error
                tried += 1
                # An event loop does not wait: what it writes by itself may be written again.
                if tried == tries or _is_on_loop() or self._closed.wait(AGAIN_S):
                    detail = "it went while something was being written, which may or may not be there when it is back"
                    raise StoreAway(place=self.address.shown, detail=detail) from error

    def _lively(self) -> psycopg.Connection:
        """Return a connection whose server had not closed it a moment ago: what is not sent need not be asked for later."""
        made = self._connected()
        return made if self._is_lively(made) else self._connected()

    def _is_lively(self, made: psycopg.Connection) -> bool:
        try:
            made.pgconn.consume_input()
        except psycopg.OperationalError:  # As of one that is closed.
            self._drop()
            return False
        return True

    def hear(self) -> list[str]:
        """Return what was said on the channels listened to; asks the socket, not the server. Raises StoreAway."""
        with self._lock:
            made = self._lively()
            while (notice := made.pgconn.notifies()) is not None:
                self._heard.append(notice.extra.decode("utf-8", "replace"))
            said, self._heard = self._heard, []
            return said

    def _execute(self, made: psycopg.Connection, statement: str, values: Sequence[object], prepare: bool | None) -> Rows:
        with psycopg.RawCursor(made) as cursor:
            cursor.format = psycopg.pq.Format.BINARY
            cursor.execute(statement.encode(), values, prepare=prepare)
            return cursor.fetchall() if cursor.pgresult is not None and cursor.pgresult.nfields else []

    def _connected(self) -> psycopg.Connection:
        while True:
            if self._made is not None and not self._made.closed:
                return self._made
            self._drop()
            failure = self._away
            if failure is None:
                try:
                    self._keep(self._connect())
                    continue
                except OrcError as error:
                    failure = error
                    self._come_back_later(error)
            if not isinstance(failure, StoreAway) or not self._await_connection():
                raise type(failure)(**failure.values)

    def _keep(self, made: psycopg.Connection) -> None:
        self._made, self._away = made, None
        self.connections += 1
        self._looks_left = LOOKS

    def _await_connection(self) -> bool:
        """Wait a few seconds of each absence for the thread that connects; an event loop never, nor whoever comes first.

        Nor one who is not patient: who holds a lease has to know at once that it cannot be renewed.
        """
        waits = self._patient and self.connections > 0 and not _is_on_loop()
        while waits and self._away is not None and self._looks_left:
            self._looks_left -= 1
            if self._closed.wait(LOOK_S):
                break
        return self._made is not None and self._away is None

    def _connect(self) -> psycopg.Connection:
        try:
            made = PatientConnection.connect(**self.address.parameters, autocommit=True)
            made.silence_s = self._silence_s
            made.add_notify_handler(lambda notice: self._heard.append(notice.payload))
        except psycopg.Error as error:
            raise connection_error(self.address, error) from error
        try:
            self._prepare(made)
        except psycopg.Error as error:
            lost = made.closed
            made.close()
            if lost:
                raise connection_error(self.address, error) from error
            raise statement_error(self.address, error) from error
        except BaseException:
            made.close()
            raise
        return made

    def _silence_s(self, answer_s: float) -> float:
        """Return for how long the server may be silent, as things are: a loop has little time, and who leaves has less."""
        most_s = answer_s if self.answer_s is None else min(answer_s, self.answer_s)
        if _is_on_loop():
            most_s = min(most_s, LOOP_ANSWER_S)
        return min(most_s, PARTING_S) if self._closed.is_set() else most_s

    def _come_back_later(self, error: OrcError) -> None:
        """Answer with this error until a thread has connected."""
        with contextlib.suppress(RuntimeError):  # no thread to be had: then whoever asks next tries
            threading.Thread(target=self._come_back, name="orc-store", daemon=True).start()
            self._away = error

    def _come_back(self) -> None:
        while not self._closed.wait(AGAIN_S):
            try:
                made = self._connect()
            except OrcError as error:
                self._away = error
                continue
            self._keep(made)
            if self._closed.is_set():
                made.close()
            return
        self._away = None

    def _drop(self) -> None:
        if self._made is not None:
            self._made.close()
            self._made = None

    def give_up(self) -> None:
        """Let whoever waits for a lost answer go; what came of it is then for the journal to say."""
        self._closed.set()

    def close(self) -> None:
        """End the connection."""
        self.give_up()
        with self._lock:
            self._drop()
