"""The stream of events for one reader: frames of runs that moved, of the runs it looks at, and of jobs that ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import msgspec

from agent_orchestrator.engine.journal import decode_events
from agent_orchestrator.errors import OrcError, UnknownRun
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.tail import TailPlace
from agent_orchestrator.surfaces.web.feed import Feed, find_place, read_rows
from agent_orchestrator.surfaces.web.overview import list_windows, show_day
from agent_orchestrator.surfaces.web.repositories import Repositories, Repository
from agent_orchestrator.surfaces.web.run_page import list_actions, list_entries, list_questions
from agent_orchestrator.surfaces.web.watched import graph_rows

FRAME_S = 0.1
ALIVE_S = 15.0
SPENT_EVERY_S = 2.0
ENTRIES_MAX = 200
TOPICS_MAX = 64

_encode = msgspec.json.Encoder(enc_hook=str).encode


class Hub:
    """The feeds of all repositories, and what is told to every reader."""

    def __init__(self, repositories: Repositories) -> None:
        self.repositories = repositories
        self.feeds = [Feed(one, self._wake) for one in repositories.all]
        self._changed = asyncio.Event()
        self._place = ""
        self.closing = False
        """True once the server ends: streams end by themselves, and pages come back when it is started again."""
        self._readers: set[Callable[[str, dict[str, Any]], None]] = set()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """Let every stream end."""
        self.closing = True
        self._wake()

    def publish(self, event: str, facts: dict[str, Any]) -> None:
        """Tell every reader something that no journal has."""
        for tell in list(self._readers):
            tell(event, facts)
        self._wake()

    async def place(self) -> str:
        """Return the newest place of all repositories, as far as is known: a store may be away."""
        with contextlib.suppress(OrcError):
            self._place = ",".join([await find_place(one) for one in self.repositories.all])
        return self._place

    async def wait(self, seconds: float) -> bool:
        """Wait until anything moves; False if nothing did so long."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def stream(self, topics: str, at: str) -> AsyncIterator[bytes]:
        """Yield the frames of one reader, from a place on, until it goes away."""
        reader = _Reader(self, topics)
        self._readers.add(reader.tell)
        try:
            for feed in self.feeds:
                feed.open()
            yield b"retry: 1000\n\n"
            async for frame in reader.frames(at):
                yield frame
        finally:
            self._readers.discard(reader.tell)
            for feed in self.feeds:
                feed.close()


class _Reader:
    """One connection: what it wants to know, and how far it has been told."""

    def __init__(self, hub: Hub, topics: str) -> None:
        self._hub = hub
        wanted = [one for one in topics.split(",") if one][:TOPICS_MAX]
        self._lists = "runs" in wanted
        self._runs: dict[str, int | None] = {one.removeprefix("run:"): None for one in wanted if one.startswith("run:")}
        """The row up to which each run was told; None before the first frame."""
        self._told: list[tuple[str, dict[str, Any]]] = []
        self._numbers: dict[str, int] = {}
        self._resets: dict[str, int] = {}
        self._problems: dict[str, str | None] = {}
        self._spent_s: dict[str, float] = {}
        """The times at which it was told what was spent; the sums cost more than the lines."""

    def tell(self, event: str, facts: dict[str, Any]) -> None:
        """Keep something to be sent."""
        self._told.append((event, facts))

    async def frames(self, at: str) -> AsyncIterator[bytes]:
        """Yield frames, at most ten times a second."""
        behind = await self._begin(at)
        if behind is None:
            yield self._frame("reset", {}, await self._hub.place())
            behind = {}
        while True:
            place = await self._hub.place()
            for event, facts in await self._collect(behind):
                yield self._frame(event, facts, place)
            behind = {}
            await asyncio.sleep(FRAME_S)
            while not self._has_news():
                if self._hub.closing:
                    return
                if not await self._hub.wait(ALIVE_S):
                    yield b": still here\n\n"

    def _has_news(self) -> bool:
        return bool(self._told) or any(
            feed.number != self._numbers[feed.repository.name] or feed.resets != self._resets[feed.repository.name]
            for feed in self._hub.feeds
        )

    async def _begin(self, at: str) -> dict[str, list[str]] | None:
        """Return the runs that moved since the reader's place; None if it has to load everything again."""
        places = at.split(",") if at else []
        missed: dict[str, list[str]] = {}
        for number, feed in enumerate(self._hub.feeds):
            await feed.ready.wait()
            name = feed.repository.name
            self._numbers[name], self._resets[name], self._problems[name] = feed.number, feed.resets, None
            given = places[number] if len(places) == len(self._hub.feeds) else ""
            try:
                found = await feed.catch_up(TailPlace.read(given)) if given else []
            except OrcError:
                found = []
            if found is None:
                return None
            missed[name] = found
            if self._lists:
                # A process that was killed since the reader loaded its list has left no row to be told of.
                self.tell("owners", {"repo": name, "driven": feed.driven()})
        return missed

    async def _collect(self, behind: dict[str, list[str]]) -> list[tuple[str, dict[str, Any]]]:
        """Return what there is to tell."""
        frames, self._told = self._told, []
        for feed in self._hub.feeds:
            name, number = feed.repository.name, feed.number
            if feed.resets != self._resets[name]:
                self._resets[name], self._numbers[name] = feed.resets, number
                return [*frames, ("reset", {})]
            moved = list(dict.fromkeys([*behind.get(name, ()), *feed.moved_since(self._numbers[name])]))
            self._numbers[name] = number
            if feed.problem != self._problems[name]:
                self._problems[name] = feed.problem
                frames.append(("problem", {"repo": name, "message": feed.problem}))
            if feed.problem is not None:
                continue
            try:
                frames += await feed.repository.read(self._read, feed.repository, moved)
            except OrcError as error:
                frames.append(("problem", {"repo": name, "message": str(error)}))
                self._problems[name] = str(error)
        return frames

    def _read(self, orchestrator: Orchestrator, repository: Repository, moved: list[str]) -> list[tuple[str, dict[str, Any]]]:
        """Return the frames about runs that moved, in the thread that reads their store."""
        frames: list[tuple[str, dict[str, Any]]] = []
        if moved and self._lists:
            rows, gone = read_rows(orchestrator, repository, moved)
            more, now_s = dict[str, Any](), orchestrator.clock.monotonic_s()
            if now_s - self._spent_s.get(repository.name, 0.0) >= SPENT_EVERY_S:
                more = {"day": show_day(orchestrator), "windows": list_windows(orchestrator, repository)}
                self._spent_s[repository.name] = now_s
            frames.append(("runs", {"repo": repository.name, "runs": rows, "gone": gone, **more}))
        for key, seq in self._runs.items():
            owner, run = self._hub.repositories.find_quietly(key)
            if owner is repository and (run in moved or seq is None):
                facts = read_run_frame(orchestrator, repository, run, seq)
                self._runs[key] = facts.get("seq", seq)
                frames.append(("run", {"key": key, **facts}))
        return frames

    @staticmethod
    def _frame(event: str, facts: dict[str, Any], place: str) -> bytes:
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (place.encode(), event.encode(), _encode({**facts, "at": place}))


def read_run_frame(orchestrator: Orchestrator, repository: Repository, run: str, seq: int | None) -> dict[str, Any]:
    """Return what changed of a run after a row; without one, only how it is."""
    try:
        watched = repository.watched.look(orchestrator, run)
    except UnknownRun as error:
        return {"gone": True, "message": str(error)}
    moment = watched.now()
    owner = None if moment.run.summary.ended else orchestrator.owner(moment.run)
    since = moment.folded.seq if seq is None else seq
    facts: dict[str, Any] = {
        "seq": moment.folded.seq,
        "run": repository.row(moment.run, owner, orchestrator.store.costs(moment.run.id).get(moment.run.id)),
        "actions": list_actions(watched, moment, owner),
        "questions": list_questions(moment.folded.state),
        "units": graph_rows(moment, set(watched.changed_since(since))),
        "reload": [
            *(["graph"] if watched.grown > since else []),
            *(["history"] if watched.turned > since else []),
        ],
        "history": watched.read_history(orchestrator).since(since),
    }
    rows = orchestrator.store.rows(moment.run.id, since)[-ENTRIES_MAX:]
    facts["journal"] = [
        {name: value for name, value in entry.items() if name != "data"}
        for row, at_us, body in rows
        for entry in list_entries(moment.run.system, row, at_us, decode_events(moment.folded.system, body))
    ]
    return facts


def sse_frames(frames: Iterable[tuple[str, str, dict[str, Any]]]) -> bytes:
    """Return frames of another stream, each with its place."""
    return b"".join(
        b"id: %b\nevent: %b\ndata: %b\n\n" % (place.encode(), event.encode(), _encode(facts)) for place, event, facts in frames
    )
