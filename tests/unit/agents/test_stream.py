"""JSON lines of agents are read whole, bounded and once; what cannot be understood is passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.agents.claude import AGENT
from agent_orchestrator.agents.events import Consumed, Finished, Transcript, sum_usage
from agent_orchestrator.agents.stream import LOOK_BYTES, ResultWatch, count_at, money_at, read_transcript, text_at
from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.core.limits import LINE_LIMIT_BYTES

RESULT = b'{"type":"result","is_error":false,"subtype":"success","result":"done"}\n'


def texts(document: dict[str, Any]) -> list[Finished]:
    return [Finished(ok=True, message=text_at(document, "say"))] if "say" in document else []


def test_chatter_broken_lines_and_unknown_events_are_passed_over(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_bytes(b'Welcome!\n{"say": \n[1]\n{"type":"new_thing"}\n\xff\xfe\n{"say":"yes"}')
    seen = read_transcript(out, texts)
    assert seen.end == Finished(ok=True, message="yes")


def test_a_line_that_is_too_long_is_skipped_and_counted_and_the_next_is_read(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_bytes(b'{"say":"' + b"x" * LINE_LIMIT_BYTES + b'"}\n' + b'{"say":"short"}\n')
    seen = read_transcript(out, texts)
    assert (seen.skipped, seen.end) == (1, Finished(ok=True, message="short"))


def test_a_missing_file_says_nothing(tmp_path: Path) -> None:
    assert read_transcript(tmp_path / "none", texts).end is None
    with pytest.raises(OSError, match="not a regular file"):
        read_transcript(tmp_path, texts)


def test_a_growing_stream_is_looked_at_line_by_line(tmp_path: Path) -> None:
    out = tmp_path / "out"
    watch = ResultWatch(out, AGENT.read)
    assert not watch()
    with out.open("ab") as file:
        file.write(b'{"type":"system"}\n' + RESULT[:20])
        file.flush()
        assert not watch()
        file.write(RESULT[20:])
        file.flush()
        assert watch()
    out.unlink()
    assert watch()


def test_a_result_behind_a_flood_is_found(tmp_path: Path) -> None:
    out = tmp_path / "out"
    watch = ResultWatch(out, AGENT.read)
    out.write_bytes(b"x" * (3 * LOOK_BYTES) + b"\n" + RESULT)
    assert watch()


def test_what_failed_stays_failed() -> None:
    seen = Transcript()
    seen.add(Finished(ok=False, message="loop detected"))
    seen.add(Finished(ok=True))
    assert seen.end == Finished(ok=False, message="loop detected")


def test_usage_adds_up_and_a_total_replaces_it() -> None:
    seen = Transcript()
    seen.add(Consumed(usage=Usage(input_tokens=1, cost_usd=0.5)))
    seen.add(Consumed(usage=Usage(input_tokens=2, output_tokens=3)))
    assert seen.usage == Usage(input_tokens=3, output_tokens=3, cost_usd=0.5, calls=2)
    seen.add(Consumed(usage=Usage(input_tokens=9), total=True))
    assert seen.usage == Usage(input_tokens=9)
    assert sum_usage(Usage(), Usage()) == Usage()


def test_values_of_the_wrong_shape_are_not_values() -> None:
    document = {"a": {"n": -1, "b": True, "t": 7, "x": float("inf"), "ok": 3}}
    assert [count_at(document, "a", key) for key in ("n", "b", "x", "none")] == [None] * 4
    assert [money_at(document, "a", key) for key in ("n", "b", "x")] == [None] * 3
    assert (count_at(document, "a", "ok"), money_at(document, "a", "ok")) == (3, 3.0)
    assert text_at(document, "a", "t") == text_at(document, "a", "t", "deeper") == ""
