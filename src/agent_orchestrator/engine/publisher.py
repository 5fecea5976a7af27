"""Publishes runs as files, coalesced: at most a few percent of the process's time, however many runs there are.

A print-out's identity is committed before the file appears, in the same group commit as everything else. A run that
waits, pauses or ends is always printed at once. A file that somebody changed meanwhile is put aside, never lost.

A tick may go through several states; those that the system promises to its readers are written one after the other,
with the tick's own commit (`Frames`).
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_orchestrator.core.events import Event
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.limits import SHORTAGE_BASE_S
from agent_orchestrator.core.printed import Identity, Printed
from agent_orchestrator.core.system import Document
from agent_orchestrator.core.units import iso
from agent_orchestrator.engine.allowance import Allowance
from agent_orchestrator.engine.files import move_aside, write_whole
from agent_orchestrator.engine.printer import Printer
from agent_orchestrator.errors import OrcError
from agent_orchestrator.projections.inspection import PrintoutState, inspect, remove_ours
from agent_orchestrator.projections.presence import PresentFiles
from agent_orchestrator.projections.syncs import Syncs
from agent_orchestrator.projections.writer import (
    Draft,
    append_lines,
    digest_of,
    discard_draft,
    encode_document,
    is_written,
    put_in_place,
    replace_known,
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


def _is_frozen(body: object) -> bool:
    """Say whether the same object always has the same content."""
    return isinstance(body, bytes | str) or (isinstance(body, msgspec.Struct) and body.__struct_config__.frozen)


FRAMES_MAX = 8
"""States of one tick that are written each for itself; the store remembers twice as many of our own files."""
ORDINARY_FRAMES_MAX = FRAMES_MAX // 2
ORDINARY_FRAMES_BYTES = 128 * 1024
"""After so many bytes no more of a tick's ordinary states are written: those of a thousand steps take milliseconds each."""


class Frames:
    """The states that one run goes through in one tick and that its readers are promised: drafts until the tick is durable."""

    def __init__(self, publisher: Publisher, driver: Driver) -> None:
        self._publisher, self._driver = publisher, driver
        self.drafts: list[Draft] = []
        self._bytes = self.taken = 0
        """The states so far; at FRAMES_MAX the tick should end, for another one could not be kept apart."""
        self._is_spare: bool | None = None
        """Say whether there is allowance left; None while nobody has asked since it was last spent."""

    @property
    def printed(self) -> tuple[Printed, ...]:
        """The identities, for the tick's own commit."""
        return self._publisher.identities(self._driver, self.drafts)

    def look(self, event: Event) -> None:
        """Keeps the state after one of the system's moments: always, or while there is allowance left."""
        if not self._driver.system.moments[type(event)]:
            if self._is_spare is None:
                self._is_spare = self._publisher.allowance.is_left()
            if not self._is_spare or self.taken >= ORDINARY_FRAMES_MAX or self._bytes >= ORDINARY_FRAMES_BYTES:
                return
        drafts = self._publisher.draft(self._driver)
        self.taken += 1
        self._bytes += sum(draft.printed.identity.size for draft in drafts)
        self.drafts += drafts
        self._is_spare = None

    def place(self) -> None:
        """Shows the states, in order."""
        self._publisher.place(self._driver, self.drafts)

    def discard(self) -> None:
        """Nothing of it happened."""
        if self.drafts:
            self._publisher.discard(self._driver, self.drafts)


class Publisher:
    """All print-outs of one process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._printers: dict[str, Printer] = {}
        self._dirty: dict[str, Driver] = {}
        self._copies: dict[str, dict[str, bytes]] = {}
        """By run and path; a run may have some before its first print-out."""
        self._next_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.allowance = Allowance(engine.clock)
        """For the states in the middle of ticks."""

    def offer(self, driver: Driver, *, idle: bool) -> None:
        """The run's state changed. Printed now when the run is idle or new here, else when it is its turn."""
        run = driver.run.id
        if idle or self._printers[run].is_new:
            self._print(driver, urgent=True)
            self.close(driver)
            return
        self._dirty[run] = driver
        self._print_next()  # From the driver's own offer too: a busy loop would starve a timer.

    def is_busy(self, driver: Driver) -> bool:
        """Say whether files of the run are written, and not in their places yet."""
        return self._printers[driver.run.id].busy is not None

    def copy_later(self, driver: Driver, path: str, content: bytes) -> None:
        """Writes a copy that no program waits for, with the run's next print-out."""
        self._copies.setdefault(driver.run.id, {})[path] = content

    def _on_timer(self) -> None:
        self._timer = None
        self._print_next()

    def _print_next(self) -> None:
        """Print the run that has waited longest, if it is time.

        While it is ahead of the journal the others wait behind it: of many busy runs nearly all are so at any time, and whoever
        were passed over for it would be passed over for ever. It offers itself as soon as it is durable.
        """
        first = next(iter(self._dirty.values()), None)
        if first is None or not first.durable:
            return
        now_s = self._engine.clock.monotonic_s()
        if now_s >= self._next_s:
            del self._dirty[first.run.id]
            self._print(first)
            ended_s = self._engine.clock.monotonic_s()
            self._next_s = ended_s + (ended_s - now_s) / DUTY
        if self._dirty and self._timer is None:
            self._timer = self._engine.loop.call_later(max(0.0, self._next_s - now_s), self._on_timer)

    async def flush(self, driver: Driver) -> None:
        """Prints the newest state and waits until it is in place; a store that refuses is asked a few times."""
        self.close(driver)
        if not self._engine.world.prints:
            return
        for attempt in range(FLUSH_TRIES if driver.durable else 0):
            self._print(driver, urgent=True)
            while (printer := self._printers[driver.run.id]).busy is not None:
                await asyncio.shield(printer.busy)
            if printer.shown and not printer.behind:
                return
            await asyncio.sleep(SHORTAGE_BASE_S * 2**attempt)
        self._engine.notify(driver, f"The state files are behind; `orc resume {driver.run.id}` writes them again.")

    def _print(self, driver: Driver, *, urgent: bool = False) -> None:
        if not driver.durable or not self._engine.world.prints:
            return  # It offers itself again when it is.
        printer = self._printer(driver)
        if printer.busy is not None:
            printer.again, printer.urgent = True, printer.urgent or urgent
            return
        try:
            self._write_copies(driver.run.id, driver.home)
            drafts = self._drafts(driver, printer)
        except (OSError, OrcError) as error:
            printer.shown.clear()  # What is on disk is not known; `flush` tries again.
            self._engine.notify(driver, f"The state files could not be written: {error}")
            return
        printer.is_new = False
        if drafts:
            printer.busy = self._engine.loop.create_future()
            part = Append(
                run=driver.run.id,
                expected_seq=0,
                epoch=self._engine.epoch,
                at_us=self._engine.clock.now_us(),
                printed=self.identities(driver, drafts),
            )
            recorded = self._engine.committer.append(part)
            recorded.add_done_callback(lambda done: self._recorded(driver, printer, drafts, done))

    def open(self, driver: Driver) -> None:
        """Read which files of a run are ours, before it is driven: later the store may be away."""
        if driver.run.id not in self._printers:
            self._printers[driver.run.id] = Printer(self._engine.store.printed(driver.run.id))

    def close(self, driver: Driver) -> None:
        """Let nobody wait behind a run that is printed at once, or driven no more."""
        self._dirty.pop(driver.run.id, None)
        self._print_next()

    def _printer(self, driver: Driver) -> Printer:
        return self._printers[driver.run.id]

    def identities(self, driver: Driver, drafts: list[Draft]) -> tuple[Printed, ...]:
        """The identities of drafts, to be committed before they appear.

        The store keeps the newest alone. Where files cannot be put in place, or processes die before they can, the one that
        stands would be forgotten and taken for somebody's edit: so it is named again.
        """
        printer = self._printer(driver)
        paths = dict.fromkeys(draft.printed.path for draft in drafts)
        kept = [Printed(path=path, identity=one) for path in paths if (one := printer.standing(driver.home, path))]
        return (*kept, *(draft.printed for draft in drafts))

    def draft(self, driver: Driver) -> list[Draft]:
        """Writes the state as it is now beside its place, before it is durable; what fails is left to the next print-out."""
        printer = self._printer(driver)
        try:
            return self._drafts(driver, printer, passing=True) if self._engine.world.prints else []
        except (OSError, OrcError):
            printer.shown.clear()
            return []

    def place(self, driver: Driver, drafts: list[Draft]) -> None:
        """Renames drafts whose identities are recorded over their targets, in order."""
        for draft in drafts:
            self._place(driver, self._printers[driver.run.id], draft)
        try:
            sync_folders(drafts)
        except (OSError, OrcError) as problem:
            self._engine.notify(driver, f"The state files may not survive a power cut: {problem}")

    def discard(self, driver: Driver, drafts: list[Draft]) -> None:
        """Removes drafts of states that did not come to be."""
        for draft in drafts:
            discard_draft(draft)
        self._printers[driver.run.id].shown.clear()

    def _drafts(self, driver: Driver, printer: Printer, *, passing: bool = False) -> list[Draft]:
        """Writes what differs from what was shown; of a state in passing only what is rewritten anyway."""
        home, drafts, size = driver.home, [], 0
        documents = list(driver.system.documents(driver.state, self._engine.clock.now_us()))
        if not printer.shown:
            sweep_drafts(home, (home / path for path in dict.fromkeys([*printer.known, *(one.path for one in documents)])))
        present = PresentFiles(home, [document.path for document in documents])
        with Syncs() as syncs:
            for document in documents:
                first = document.path not in printer.shown
                if (document.once or document.append) and passing:
                    continue
                known = document.once or printer.bodies.get(document.path) is document.body
                if known and not first and present.has(document.path):
                    continue
                content = encode_document(document)
                size += len(content)
                digest = digest_of(content)
                if self._shows(home, printer, document, content, digest, present):
                    continue
                _check(driver, document)
                drafts.append(write_draft(home, document, content, first=first, syncs=syncs, digest=digest))
        for draft in drafts:
            printer.shown[draft.printed.path] = draft.printed.identity.sha256
        if passing:
            self.allowance.spend(size, len(drafts))
            return drafts
        listed = {document.path for document in documents}
        for path in [path for path in printer.known if path not in listed]:
            # The system lists it no longer: it goes, unless somebody made it his own.
            remove_ours(home, home / path, printer.known.pop(path))
            printer.shown.pop(path, None)
            printer.behind.discard(path)
        return drafts

    def _shows(
        self, home: Path, printer: Printer, document: Document, content: bytes, digest: str, present: PresentFiles
    ) -> bool:
        """Say whether a document stands on disk with this content; lines to append are appended then."""
        path = document.path
        if _is_frozen(document.body):
            printer.bodies[path] = document.body
        is_shown = printer.shown.get(path) == digest
        if document.append:
            if not is_shown:
                append_lines(home, document)
        elif not (is_shown and present.has(path)) and not (document.once and is_written(home, home / path, content)):
            return False
        printer.shown[path] = digest
        return True

    def _write_copies(self, run: RunId, home: Path) -> None:
        copies = self._copies.get(run, {})
        for path in list(copies):
            with contextlib.suppress(OSError):  # It stays for the next time, and holds no state file up.
                write_whole(home, home / path, copies[path])
                del copies[path]

    def _recorded(self, driver: Driver, printer: Printer, drafts: list[Draft], done: asyncio.Future[None]) -> None:
        busy = printer.busy
        assert busy is not None
        try:
            if done.exception() is None:
                self.place(driver, drafts)
            else:
                printer.shown.clear()
        finally:  # Whatever breaks, and be it whoever is told of a file: nobody may wait for this print-out for ever.
            printer.busy = None
            again, urgent = printer.again, printer.urgent
            printer.again = printer.urgent = False
            busy.set_result(None)
        if urgent:
            self._print(driver, urgent=True)
        elif again and driver.run.id in self._engine.drivers:
            self.offer(driver, idle=False)

    def _place(self, driver: Driver, printer: Printer, draft: Draft) -> None:
        known = printer.known.setdefault(draft.printed.path, [])
        try:
            placed = replace_known(draft, known) or self._place_anew(driver, draft, known)
        except (OSError, OrcError) as error:
            placed = False
            discard_draft(draft)
            self._engine.notify(driver, f"{draft.target} could not be written: {error}")
        if placed:
            printer.put(draft)
        else:
            printer.miss(draft)

    def _place_anew(self, driver: Driver, draft: Draft, known: list[Identity]) -> bool:
        """Put a draft where nothing that is known to be ours stands; what somebody changed is put aside first."""
        if self._is_foreign(driver, draft, known) and draft.temporary.exists():
            aside = move_aside(draft.target, f"edited-{iso(self._engine.clock.now_us())}", driver.home)
            self._engine.notify(driver, f"{draft.target} was changed while the run was running; kept as {aside.name}.")
        return put_in_place(draft)

    def _is_foreign(self, driver: Driver, draft: Draft, known: list[Identity]) -> bool:
        foreign = (PrintoutState.EDITED, PrintoutState.BROKEN)
        if inspect(driver.home, draft.target, known).state not in foreign:
            return False
        # Not ours as far as we remember; the store knows what any process ever printed.
        known[:] = self._engine.store.printed(driver.run.id).get(draft.printed.path, [])
        return inspect(driver.home, draft.target, known).state in foreign
