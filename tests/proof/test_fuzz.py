"""The fuzzer: it finds what can only be found step by step, and every parser stands a little of it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from proof.fuzz import HOME, feed
from proof.parsers import PARSERS, Parser

A_LITTLE, ENOUGH = 30, 6_000
FRAGILE: dict[str, Any] = {}
exec(
    compile(
        """
def read(data, folder):
    if b"[" in data:
        if data.count(b"{") > 1:
            if b"null" in data:
                if data.startswith(b"-"):
                    raise ZeroDivisionError
""",
        f"{HOME}/fragile.py",
        "exec",
    ),
    FRAGILE,
)


def test_what_breaks_deep_inside_a_parser_of_ours_is_found(tmp_path: Path) -> None:
    fragile = Parser(name="fragile", system="any", seeds=lambda: (b"x",), read=FRAGILE["read"])
    with pytest.raises(ZeroDivisionError) as caught:
        feed(fragile, ENOUGH, random.Random(1), tmp_path)
    assert caught.value.__notes__[0].startswith("fragile, fed with b'-")


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_a_parser_says_a_sentence_or_gives_a_value(parser: Parser, tmp_path: Path) -> None:
    assert parser.seeds()
    feed(parser, A_LITTLE, random.Random(7), tmp_path)
