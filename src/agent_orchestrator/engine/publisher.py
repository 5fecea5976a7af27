"""Publishes runs as files, coalesced: at most a few percent of the process's time, however many runs there are.

A print-out's identity is committed before the file appears, in the same group commit as everything else. A run that
waits, pauses or ends is always printed at once. A file that somebody changed meanwhile is put aside, never lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.limits import SHORTAGE_BASE_S
from agent_orchestrator.core.printed import Identity
from agent_orchestrator.core.system import Document
from agent_orchestrator.core.units import iso
from agent_orchestrator.engine.files import move_aside, write_whole
from agent_orchestrator.errors import OrcError
from agent_orchestrator.projections.inspection import PrintoutState, inspect, is_ours
from agent_orchestrator.projections.writer import (
    Draft,
    append_lines,
    encode_document,
    put_in_place,
    sweep_drafts,
    sync_folders,
    write_draft,
)
from agent_orchestrator.store.port import Append

if TYPE_CHECKING:
    from agent_orchestrator.engine.driver import Driver
    from agent_orchestrator.engine.engine import Engine

FLUSH_TRIES = 5

DUTY = 0.03
"""The share of the process's time that publishing may take while runs are busy."""


def _check(driver: Driver, document: Document) -> None:
    """A document that breaks its own schema is a bug of ours: it must not reach anybody's disk."""
    if document.checked:
        faults = driver.system.faults(document.path, msgspec.to_builtins(document.body))
        assert not faults, f"{document.path} breaks its schema: {'; '.join(faults[:3])}"


def _stands(target: Path, content: bytes) -> bool:
    """Say whether a file that is never rewritten stands as it was written."""
    try:
        return target.stat().st_size == len(content) and target.read_bytes() == content
    except OSError:
        return False


class _Printer:
    """The state of one run's print-outs."""

    def __init__(self, known: dict[str, list[Identity]]) -> None:
        self.known = known
        self.shown: dict[str, str] = {}
        self.busy: asyncio.Future[None] | None = None
        self.again = False


class Publisher:
    """All print-outs of one process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._printers: dict[str, _Printer] = {}
        self._dirty: dict[str, Driver] = {}
        self._copies: dict[str, dict[str, bytes]] = {}
        """By run and path; a run may have some before its first print-out."""
        self._next_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def offer(self, driver: Driver, *, idle: bool) -> None:
        """The run's state changed. Printed now when the run is idle or new here, else when it is its turn."""
        run = driver.run.id
        if idle or run not in self._printers:
            self._dirty.pop(run, None)
            self._print(driver)
            return
        self._dirty[run] = driver
        now_s = self._engine.clock.monotonic_s()
        if now_s >= self._next_s:
            # From the driver's own offer too: a busy loop would starve a timer.
            self._print_next(now_s)
        elif self._timer is None:
            self._timer = self._engine.loop.call_later(self._next_s - now_s, self._on_timer)

    def copy_later(self, driver: Driver, path: str, content: bytes) -> None:
        """Writes a copy that no program waits for, with the run's next print-out."""
        self._copies.setdefault(driver.run.id, {})[path] = content

    def _on_timer(self) -> None:
        self._timer = None
        if self._dirty:
            self._print_next(self._engine.clock.monotonic_s())
        if self._dirty:
            left_s = self._next_s - self._engine.clock.monotonic_s()
            self._timer = self._engine.loop.call_later(max(0.0, left_s), self._on_timer)

    def _print_next(self, now_s: float) -> None:
        run = next(iter(self._dirty))
        self._print(self._dirty.pop(run))
        ended_s = self._engine.clock.monotonic_s()
        self._next_s = ended_s + (ended_s - now_s) / DUTY

    async def flush(self, driver: Driver) -> None:
        """Prints the newest state and waits until it is in place; a store that refuses is asked a few times."""
        self._dirty.pop(driver.run.id, None)
        for attempt in range(FLUSH_TRIES):
            self._print(driver)
            while (printer := self._printers[driver.run.id]).busy is not None:
                await asyncio.shield(printer.busy)
            if printer.shown:
                return
            await asyncio.sleep(SHORTAGE_BASE_S * 2**attempt)
        self._engine.notify(driver, f"The state files are behind; `orc resume {driver.run.id}` writes them again.")

    def _print(self, driver: Driver) -> None:
        if not driver.durable:
            return  # It offers itself again when it is.
        run = driver.run
        home = Path(run.context.home)
        printer = self._printers.get(run.id)
        if printer is None:
            printer = self._printers[run.id] = _Printer(self._engine.store.printed(run.id))
        if printer.busy is not None:
            printer.again = True
            return
        try:
            drafts = self._drafts(driver, home, printer)
        except (OSError, OrcError) as error:
            printer.shown.clear()  # What is on disk is not known; `flush` tries again.
            self._engine.notify(driver, f"The state files could not be written: {error}")
            return
        if drafts:
            printer.busy = self._engine.loop.create_future()
            part = Append(
                run=run.id,
                expected_seq=0,
                at_us=self._engine.clock.now_us(),
                printed=tuple(draft.printed for draft in drafts),
            )
            recorded = self._engine.committer.append(part)
            recorded.add_done_callback(lambda done: self._recorded(driver, printer, drafts, done))

    def _drafts(self, driver: Driver, home: Path, printer: _Printer) -> list[Draft]:
        drafts, listed = [], set()
        self._write_copies(driver.run.id, home)
        documents = list(driver.system.documents(driver.state, self._engine.clock.now_us()))
        if not printer.shown:
            sweep_drafts(home / path for path in dict.fromkeys([*printer.known, *(one.path for one in documents)]))
        for document in documents:
            listed.add(document.path)
            target = home / document.path
            first = document.path not in printer.shown
            if document.once and not first and target.exists():
                continue
            content = encode_document(document)
            digest = hashlib.sha256(content).hexdigest()
            if document.append:
                if first or printer.shown[document.path] != digest:
                    append_lines(home, document)
                    printer.shown[document.path] = digest
                continue
            if document.once and _stands(target, content):
                printer.shown[document.path] = digest
                continue
            if first or printer.shown[document.path] != digest or not target.exists():
                _check(driver, document)
                drafts.append(write_draft(home, document, content, first=first))
                printer.shown[document.path] = digest
        for path in [path for path in printer.known if path not in listed]:
            # The system lists it no longer: it goes, unless somebody made it his own.
            if is_ours(home / path, printer.known.pop(path)):
                (home / path).unlink(missing_ok=True)
            printer.shown.pop(path, None)
        return drafts

    def _write_copies(self, run: RunId, home: Path) -> None:
        copies = self._copies.get(run, {})
        for path in list(copies):
            with contextlib.suppress(OSError):  # It stays for the next time, and holds no state file up.
                write_whole(home / path, copies[path])
                del copies[path]

    def _recorded(self, driver: Driver, printer: _Printer, drafts: list[Draft], done: asyncio.Future[None]) -> None:
        error = done.exception()
        if error is None:
            for draft in drafts:
                self._place(driver, printer, draft)
            try:
                sync_folders(drafts)
            except OSError as problem:
                self._engine.notify(driver, f"The state files may not survive a power cut: {problem}")
        else:
            printer.shown.clear()
        busy, printer.busy = printer.busy, None
        if printer.again:
            printer.again = False
            self._print(driver)
        assert busy is not None
        busy.set_result(None)

    def _place(self, driver: Driver, printer: _Printer, draft: Draft) -> None:
        path = draft.printed.path
        known = printer.known.setdefault(path, [])
        try:
            if self._is_foreign(driver, draft, known) and draft.temporary.exists():
                aside = move_aside(draft.target, f"edited-{iso(self._engine.clock.now_us())}")
                self._engine.notify(driver, f"{draft.target} was changed while the run was driven; kept as {aside.name}.")
            if not put_in_place(draft):
                printer.shown.pop(path, None)
        except OSError as error:
            self._engine.notify(driver, f"{draft.target} could not be written: {error}")
        known.append(draft.printed.identity)
        del known[:-16]

    def _is_foreign(self, driver: Driver, draft: Draft, known: list[Identity]) -> bool:
        foreign = (PrintoutState.EDITED, PrintoutState.BROKEN)
        if inspect(draft.target, known).state not in foreign:
            return False
        # Not ours as far as we remember; the store knows what any process ever printed.
        known[:] = self._engine.store.printed(driver.run.id).get(draft.printed.path, [])
        return inspect(draft.target, known).state in foreign
