"""A coverage-guided fuzzer for every parser: inputs that reach new lines of the product are kept and changed further.

It is small on purpose: it needs no compiler and no other package, and one trial is the same on every machine and day.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import agent_orchestrator
from proof.parsers import ALLOWED, PARSERS, Parser
from proof.trial import Kind, Trial

HOME = str(Path(agent_orchestrator.__file__).parent)
INPUTS = 1_500
ROUNDS = 4
SIZE_MAX = 30_000
SPLICES = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b"'",
        b":",
        b",",
        b"-",
        b"\n",
        b"\t",
        b"\0",
        b"\\",
        b"#",
        b"|",
        b"&a ",
        b"*a",
        b"<<: ",
        b"!!",
    ),
    *(b"\xff", b"\xed\xa0\x80", "é\u202e\u0085".encode(), b"null", b"true", b"NaN", b"1e999", b"-1", b"9" * 400, b"0x", b"../"),
    *(b'{"a":' * 60, b"[" * 200, b"- " * 100, b'"id"', b'"status"', b'"type"', b'"result"', b"--", b"=", b"$(x)", b"%s", b"{}"),
)


class Coverage:
    """The lines of the product that have been reached so far."""

    def __init__(self) -> None:
        self._seen: set[tuple[CodeType, int]] = set()
        self._new = False

    def is_extended_by(self, parser: Parser, data: bytes, folder: Path) -> bool:
        """Feed the parser; return True when it went where it had never been."""
        self._new = False
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            parser.read(data, folder)
        except ALLOWED:
            pass
        except BaseException as error:
            sys.settrace(before)
            error.add_note(f"{parser.name}, fed with {data!r}")
            raise
        finally:
            sys.settrace(before)
        return self._new

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._step if frame.f_code.co_filename.startswith(HOME) else None

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        line = (frame.f_code, frame.f_lineno)
        if line not in self._seen:
            self._seen.add(line)
            self._new = True
        return self._step


def change(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Change an input in one to four ways."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.choice((0, len(made), *(chance.randint(0, len(made)) for _ in range(8))))
        match chance.randrange(7):
            case 0:
                made[at:at] = chance.choice(SPLICES)
            case 1:
                del made[at : at + chance.randint(1, 40)]
            case 2:
                made[at : at + 1] = bytes([chance.randrange(256)])
            case 3:
                made[at:at] = made[at : at + chance.randint(1, 200)]
            case 4:
                other = chance.choice(others)
                begin = chance.randint(0, len(other))
                made[at:] = other[begin:]
            case 5:
                other = chance.choice(others)
                begin = chance.randint(0, len(other))
                made[at:at] = other[begin : begin + chance.randint(1, 100)]
            case _:
                made[at : at + chance.randint(1, 8)] = chance.choice(SPLICES)
    return bytes(made[:SIZE_MAX])


def plan(seed: int, scale: float) -> Iterator[Trial]:
    """Some seeds of every parser."""
    for number in range(max(1, round(ROUNDS * scale))):
        for index, parser in enumerate(PARSERS):
            yield Trial("fuzz", parser.system, (index, seed + number))


def feed(parser: Parser, inputs: int, chance: random.Random, folder: Path) -> None:
    """Feed a parser with its seeds and so many inputs made of them; raises what it raised, with the input as a note."""
    coverage, kept = Coverage(), list(parser.seeds())
    for seed in kept:
        coverage.is_extended_by(parser, seed, folder)
    for _ in range(inputs):
        # The newest are the most promising.
        data = change(kept[-1 - int(chance.random() ** 2 * len(kept))], kept, chance)
        if coverage.is_extended_by(parser, data, folder):
            kept.append(data)


def play(trial: Trial, folder: Path) -> int:
    """Feed one parser with many inputs."""
    folder.mkdir(parents=True)
    feed(PARSERS[trial.numbers[0]], INPUTS, random.Random(trial.name), folder)
    return INPUTS


KINDS = (Kind(name="fuzz", unit="inputs to parsers", plan=plan, play=play, in_memory=True),)
