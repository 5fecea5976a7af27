"""A launch's lines as items of a transcript: fed one by one, whatever their shape, and never a crash."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.agents import events
from agent_orchestrator.agents.transcript import (
    CallEnded,
    CallState,
    Item,
    Reported,
    SpentSoFar,
    TextLine,
    TranscriptReader,
    Unread,
    WorkEnded,
    describe_call,
)
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.surfaces.transcript import TranscriptText

DATA = Path(__file__).parent / "data"
CLIENTS = ("claude", "codex", "gemini", "opencode")
INIT = {"type": "init", "session_id": "s", "model": "m"}
BEGUN = {"type": "system", "subtype": "init", "session_id": "s", "model": "m"}


def read(*documents: Any, ended: bool = True) -> list[Item]:
    reader = TranscriptReader()
    lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in documents]
    found = [item for line in lines for item in reader.read(line)]
    return [*found, *reader.close(ended=ended)][1 if lines[0].startswith(b"{") else 0 :]


def captures(client: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{client}.json").read_text("utf-8"))
    return found


def test_what_is_nobodys_stream_is_text() -> None:
    lines = (b"hello", b'{"type": "mine"}', b"", b"\xff{", b"{torn")
    assert [item.text for item in read(*lines) if isinstance(item, TextLine)] == ["hello", '{"type": "mine"}', "", "�{", "{torn"]


def test_a_client_is_known_whatever_stands_above_its_stream() -> None:
    found = read(b"warning: something", BEGUN, b"and something below")
    assert found[0] == TextLine(text="warning: something")
    assert found[1] == events.SessionBegan(session="s", model="m")
    assert found[2] == TextLine(text="and something below")


def test_a_line_of_a_shape_that_is_not_known_is_named() -> None:
    found = read(BEGUN, {"type": "brand_new"}, {"no": "type"}, {"type": "system", "subtype": "odd"}, ended=False)
    assert found == [Unread(what="brand_new"), Unread(what='{"no":"type"}'), Unread(what="system odd")]


def test_a_torn_line_is_shown_as_text_and_a_line_that_is_too_long_is_said() -> None:
    reader = TranscriptReader()
    assert list(reader.read(json.dumps(BEGUN).encode()))
    assert list(reader.read(b'{"type": "assis')) == [Unread(what='{"type": "assis')]
    assert list(reader.read(None)) == [Unread(what="a line that is too long to show")]


def test_a_message_in_pieces_is_said_once_it_is_whole() -> None:
    pieces = [{"type": "message", "role": "assistant", "content": part, "delta": True} for part in ("One\n", "\ntwo", " three")]
    assert read(INIT, *pieces, ended=False) == [events.Said(text="One\n\ntwo three")]
    used = {"type": "tool_use", "tool_name": "ls", "tool_id": "1", "parameters": {}}
    said = [item.text for item in read(INIT, *pieces, used, pieces[1]) if isinstance(item, events.Said)]
    assert said == ["One\n\ntwo three", "\ntwo"]


def test_an_answer_of_data_is_a_report() -> None:
    said = {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": '{"status": "COMPLETED"}'}}
    found = read({"type": "thread.started", "thread_id": "t"}, said, ended=False)
    assert found == [Reported(report={"status": "COMPLETED"})]


def test_an_end_that_is_taken_back_is_not_told() -> None:
    step = {"sessionID": "ses_1", "type": "step_finish", "part": {"reason": "stop", "tokens": {"input": 5, "output": 1}}}
    again = {"sessionID": "ses_1", "type": "step_start", "part": {}}
    ends = [item for item in read(again, step, again, step) if isinstance(item, WorkEnded)]
    assert [end.usage.tokens for end in ends if end.usage is not None] == [12]


def test_calls_that_run_at_once_end_as_they_come() -> None:
    used = [
        {"type": "tool_use", "tool_name": name, "tool_id": name, "parameters": {"command": f"do {name}"}} for name in ("a", "b")
    ]
    ended = {"type": "tool_result", "tool_id": "b", "status": "error", "output": "é", "timestamp": "no time"}
    calls = [item for item in read(INIT, *used, ended, ended) if isinstance(item, CallEnded)]
    assert calls == [
        CallEnded(tool="b", state=CallState.FAILED, about="do b", result_bytes=2),
        CallEnded(tool="a", state=CallState.UNFINISHED, about="do a"),
    ]


def test_one_who_works_on_has_spent_so_far_and_one_who_is_over_has_no_result() -> None:
    message = {"id": "1", "model": "m", "usage": {"input_tokens": 9}, "content": [{"type": "text", "text": "hm"}]}
    said = {"type": "assistant", "session_id": "s", "message": message}
    assert isinstance(read(BEGUN, said, ended=False)[-1], SpentSoFar)
    (end,) = [item for item in read(BEGUN, said) if isinstance(item, WorkEnded)]
    assert end.ok is None


def test_a_price_that_was_set_gives_the_cost_unless_it_may_be_another() -> None:
    lines = (
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 5}},
    )

    def cost(*prices: dict[str, Any]) -> float | None:
        choices = [AgentChoice(name="codex", options={"prices": {"default": one}}) for one in prices]
        reader = TranscriptReader((AgentChoice(name="claude"), *choices))
        assert [item for line in lines for item in reader.read(json.dumps(line).encode())]
        assert reader.usage is not None
        return reader.usage.cost_usd

    cheap, dear = {"input": 1_000.0, "output": 2_000.0}, {"input": 9_000.0, "output": 9_000.0}
    assert cost() is None
    assert cost(cheap, cheap) == pytest.approx(0.02)
    assert cost(cheap, dear) is None


def test_a_call_is_about_its_best_argument() -> None:
    assert describe_call({"content": "x", "file_path": "a.py"}) == "a.py"
    assert describe_call({"number": 5, "odd": "one\n  two"}) == "one two"
    assert describe_call({"nested": {"command": "x"}}) == ""


@pytest.mark.parametrize("client", CLIENTS)
def test_no_change_of_shape_is_too_odd(client: str) -> None:
    """Every value of the recorded lines is replaced by values of other kinds, one at a time, once for all lines of a shape."""
    tried = 0
    shapes: set[Any] = set()
    for capture in captures(client).values():
        documents = [json.loads(line) for line in capture["out"] if line.startswith("{") and line.endswith("}")]
        for document in documents:
            shape = (shape_of(documents[0]), shape_of(document))
            if shape in shapes:
                continue
            shapes.add(shape)
            for changed in mutate(document):
                reader, text = TranscriptReader(), TranscriptText(80, wrap=True)
                lines = [json.dumps(one).encode() for one in (documents[0], changed)]
                items = [*(item for line in lines for item in reader.read(line)), *reader.close(ended=True)]
                assert items, changed
                tried += len([line for item in items for line in text.lines(item)])
    assert tried > 100


def shape_of(value: Any) -> Any:
    """Return the names, the kinds of the values, and the words among them: `type` and `status` say how a line is read."""
    if isinstance(value, dict):
        return tuple((name, shape_of(one)) for name, one in value.items())
    if isinstance(value, list):
        return list, tuple(shape_of(one) for one in value)
    return value if isinstance(value, str) and re.fullmatch(r"[A-Za-z_.]*", value) else type(value)


def mutate(document: Any) -> Iterator[Any]:
    """The document with one of its values replaced, for as many as are quickly tried."""
    seen = 0
    for path in paths_of(document):
        for odd in (None, -1, [1], {"x": 1}, "odd", True):
            changed = copy.deepcopy(document)
            place = changed
            for name in path[:-1]:
                place = place[name]
            place[path[-1]] = odd
            yield changed
            seen += 1
            if seen > 240:
                return


def paths_of(document: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    named = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    for name, value in named:
        yield (*above, name)
        yield from paths_of(value, (*above, name))
