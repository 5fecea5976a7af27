"""One subscriber's post on a clock that jumps: merged, in order, tried again, and the same after a kill."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from agent_orchestrator.config.subscribers import read_subscriber
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.engine.redact import Redactor
from agent_orchestrator.runs.notify.courier import Books, Courier, read_waiting
from agent_orchestrator.runs.notify.message import Message
from agent_orchestrator.runs.notify.response import Response
from agent_orchestrator.store.memory import MemoryStore
from agent_orchestrator.store.outbox import MemoryOutbox
from agent_orchestrator.store.port import Append, Delivery, Outbox, StoredRun
from agent_orchestrator.testing.clock import FakeClock
from agent_orchestrator.testing.store import new_run

DAY_S = 24 * 3600.0
SECRET = "hunter2-hunter2"
TOLD, DOWN = Response(ok=True, said="HTTP 204"), Response(ok=False, said="Connection refused")


class Killed(BaseException):
    """The process is gone."""


class Post:
    """A store with runs, a subscriber, and a receiver that answers as it is told to."""

    def __init__(self, **table: Any) -> None:
        self.store, self.clock = MemoryStore(), FakeClock()
        self.subscriber = read_subscriber({"url": "desktop:", **table})
        self.sent: list[Message] = []
        self.replies: list[Response] = []
        self.courier = self.begin()

    def begin(self, outbox: Outbox | None = None) -> Courier:
        """A process that delivers from now on."""
        books = Books(
            store=self.store,
            outbox=outbox or self.store.outbox,
            clock=self.clock,
            redactor=Redactor([SECRET]),
            repository="repo",
        )
        self.courier = Courier(self.subscriber, books, self._tell)
        self.courier.load()
        return self.courier

    def _tell(self, message: Message, run: StoredRun | None) -> Response:
        self.sent.append(message)
        return self.replies.pop(0) if self.replies else TOLD

    def turn(self) -> float | None:
        """Let it deliver; return the seconds until what waits in front is due, None if nothing waits."""
        self.courier.turn()
        waiting = [read_waiting(one) for one in self.store.outbox.deliveries(given_up=False)]
        return (waiting[0].due_us - self.clock.now_us()) / 1e6 if waiting else None

    def run(self, name: str) -> RunId:
        run = RunId(name)
        self.store.create(*new_run(run, self.clock.now_us()))
        return run

    def happens(self, run: RunId, *events: dict[str, Any]) -> None:
        """Journal some events of a run."""
        seq = len(self.store.rows(run))
        self.store.append([Append(run=run, expected_seq=seq, at_us=self.clock.now_us(), body=json.dumps(events).encode())])

    def fails(self, name: str, detail: str = "") -> None:
        self.happens(self.run(name), {"event": "ended", "stop": "failed", "detail": detail})

    @property
    def titles(self) -> list[str]:
        return [message.title for message in self.sent]


def test_a_thousand_failures_in_a_minute_are_two_messages() -> None:
    post = Post()
    for number in range(1_000):
        post.fails(f"r{number}")
        post.clock.advance(0.05)
        post.courier.turn()
    assert [message.count for message in post.sent] == [1], "the first is told at once"
    post.clock.advance(60)
    assert post.turn() is None
    assert [message.count for message in post.sent] == [1, 999]
    assert post.titles == ["orc: r0 failed", "orc: 999 runs failed"]
    assert post.sent[1].text.splitlines()[-2:] == ["… and 994 more", "in repo"]


def test_processes_that_end_within_a_minute_tell_two_messages_and_leave_the_rest() -> None:
    post = Post()
    for number in range(10):
        post.fails(f"r{number}")
        post.begin().turn(last=True)
    assert [message.count for message in post.sent] == [1, 1]
    post.clock.advance(60)
    post.begin().turn(last=True)
    assert [message.count for message in post.sent] == [1, 1, 8], "whoever comes next tells the others"


def test_kinds_do_not_wait_for_each_other_and_only_those_asked_for_are_told() -> None:
    post = Post(on=["person", "parked", "budget", "done"])
    one = post.run("one")
    hold: dict[str, object] = {"effect": "one/b/i0.a1.l1.agent", "why": "rate_limit", "reason": ""}
    hold |= {"until_us": 1_750_000_000_000_000, "account": "claude"}
    post.happens(one, {"event": "human_asked", "effect": "one/a/i0.a1.l1.human", "question": "Ship <b>it</b>?"})
    post.happens(one, {"event": "unit_held", "unit": "b", "hold": hold})
    post.happens(one, {"event": "unit_held", "unit": "c", "hold": {**hold, "why": "shortage"}})
    post.happens(one, {"event": "budget_warned", "what": "run.cost_usd", "percent": 80, "spent": 4.0, "limit": 5.0})
    post.happens(one, {"event": "ended", "stop": "failed"})
    post.courier.turn()
    assert post.titles == [
        "orc: one, a waits for an answer",
        "orc: one, b is parked",
        "orc: one has used 80 % of run.cost_usd (4 of 5)",
    ]
    assert "Ship <b>it</b>?" in post.sent[0].text
    assert "parked until 2025-06-15T15:06:40Z (claude, rate limit)" in post.sent[1].text


def test_what_fails_is_tried_again_and_the_order_stays() -> None:
    post = Post()
    post.replies = [DOWN, DOWN, DOWN]
    post.fails("one")
    waits = [post.turn()]
    post.happens(post.run("two"), {"event": "human_asked", "effect": "two/a/i0.a1.l1.human"})
    post.happens(post.run("three"), {"event": "ended", "stop": "completed"})
    for seconds in (5, 10, 20):
        assert post.turn() == seconds, "before that time nothing is tried"
        post.clock.advance(seconds)
        waits.append(post.turn())
    assert waits == [5, 10, 20, None]
    assert post.titles == ["orc: one failed"] * 4 + ["orc: two, a waits for an answer", "orc: three completed"]
    assert len({message.id for message in post.sent}) == 3
    assert len({msgspec.json.encode(message) for message in post.sent[:4]}) == 1, "a message that was tried never changes"


def test_after_a_day_it_is_given_up_kept_for_a_week_and_sent_when_asked_for() -> None:
    post = Post()
    post.fails("one")
    post.replies = [DOWN] * 100
    tries = 0
    while (wait := post.turn()) is not None:
        post.clock.advance(wait)
        tries += 1
    assert len(post.sent) == tries + 1 < 40
    [kept] = post.store.outbox.deliveries(given_up=True)
    assert read_waiting(kept).problem == "Connection refused"
    post.replies = []
    post.happens(post.run("two"), {"event": "ended", "stop": "completed"})
    post.courier.turn()
    assert post.titles[-1] == "orc: two completed", "others go on"
    post.begin().turn(again=True)
    assert post.titles[-1] == "orc: one failed"
    assert post.store.outbox.deliveries() == []


def test_who_wants_no_more_is_not_asked_again() -> None:
    post = Post()
    post.fails("one")
    post.replies = [Response(ok=False, said="HTTP 410", final=True)]
    assert post.turn() is None
    assert [one.given_up for one in post.store.outbox.deliveries()] == [True]
    post.clock.advance(8 * DAY_S)
    post.begin()
    assert post.store.outbox.deliveries() == [], "it is shown for a week"


def test_a_receiver_says_how_long_to_wait() -> None:
    post = Post()
    post.fails("one")
    post.replies = [Response(ok=False, said="HTTP 429", after_s=120)]
    assert post.turn() == 120


def test_a_subscriber_hears_of_what_happens_after_it_came_and_not_of_what_a_fork_took_over() -> None:
    post = Post()
    post.store = MemoryStore()
    post.fails("old")
    post.begin()
    rows = post.store.rows(RunId("old"))
    post.clock.advance(10)
    copied = [(1, 1, b"[]"), *((2, at, body) for _, at, body in rows[1:])]
    post.store.create(*new_run(RunId("fork"), post.clock.now_us()), copied=copied)
    post.courier.turn()
    assert post.sent == []
    post.happens(RunId("old"), {"event": "ended", "stop": "aborted"})
    post.courier.turn()
    assert post.titles == ["orc: old aborted"]


def test_agents_words_are_one_line_without_secrets_and_control_characters() -> None:
    post = Post()
    post.fails("one", f"bad\n\x1b[31mred\u202e {SECRET} {'x' * 1000}")
    post.courier.turn()
    said = post.sent[0].notices[0].detail
    assert said.startswith("bad [31mred [redacted] xxx")
    assert len(said) <= 300


def test_rows_of_another_version_are_passed_over() -> None:
    post = Post()
    one = post.run("one")
    for strange in ({"event": "ended"}, {"event": "human_asked", "effect": "x"}, {"event": "unit_held", "unit": 1, "hold": 2}):
        post.happens(one, strange)
    post.store.append([Append(run=one, expected_seq=4, at_us=post.clock.now_us(), body=b'{"ended"')])
    post.happens(one, {"event": "ended", "stop": "of a kind to come"})
    post.courier.turn()
    assert post.titles == ["orc: one of a kind to come"]


def test_a_clock_that_was_set_back_keeps_nothing_for_ever() -> None:
    post = Post()
    post.fails("one")
    post.replies = [DOWN]
    post.courier.turn()
    post.clock.set_wall(-10 * DAY_S)
    assert post.turn() is None
    assert len(post.sent) == 2


class Dying(MemoryOutbox):
    """An outbox whose process is killed before or after one of its writes."""

    def __init__(self, of: MemoryOutbox, dies_at: int) -> None:
        self._cursors, self._deliveries = of._cursors, of._deliveries
        self._left = dies_at

    def _boundary(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise Killed

    def advance(self, *given: Any, **named: Any) -> bool:
        self._boundary()
        moved = super().advance(*given, **named)
        self._boundary()
        return moved

    def drop(self, delivery: Delivery) -> None:
        self._boundary()
        super().drop(delivery)
        self._boundary()


@pytest.mark.parametrize("dies_at", range(1, 14))
def test_killed_at_any_boundary_nothing_is_lost_and_ids_tell_doubles(dies_at: int) -> None:
    post = Post()
    outbox = Dying(post.store.outbox, dies_at)
    try:
        post.begin(outbox)
        post.fails("one")
        post.courier.turn()
        post.clock.advance(61)
        post.fails("two")
        post.courier.turn()
        killed = False
    except Killed:
        killed = True
    assert killed == (dies_at < 13)
    post.begin()
    if RunId("two") not in [run.id for run in post.store.runs()]:
        post.fails("two")
    post.courier.turn(last=True)
    post.clock.advance(61)
    post.courier.turn()
    told = {message.id: msgspec.json.encode(message) for message in post.sent}
    assert {msgspec.json.encode(message) for message in post.sent} == set(told.values()), "one id, one content"
    assert sum(json.loads(one)["count"] for one in told.values()) == 2
    assert len(post.sent) - len(told) <= 1, "at most the one in flight is told twice"
    assert post.store.outbox.deliveries() == []


def test_a_run_in_one_line_says_what_a_command_of_its_own_is_told_when_it_is_taken_up() -> None:
    post = Post()
    post.subscriber = msgspec.structs.replace(post.subscriber, run="one", name="--on-wait", kinds=frozenset({"person"}))
    one = post.run("one")
    post.begin()
    summary = Summary(status="waiting", asks=("a", "b"))
    post.store.append([Append(run=one, expected_seq=1, at_us=post.clock.now_us(), summary=summary)])
    post.happens(one, {"event": "taken_up", "boot": "", "host": "", "pid": 1, "version": ""})
    post.happens(post.run("other"), {"event": "human_asked", "effect": "other/a/i0.a1.l1.human"})
    post.courier.turn()
    assert [[notice.unit for notice in message.notices] for message in post.sent] == [["a", "b"]]
