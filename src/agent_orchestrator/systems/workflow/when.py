"""The `when` of a step: a condition over earlier steps, variables and the captured environment, and no other code.

    condition  = all {"or" all}            all = one {"and" one}
    one        = "not" one | "(" condition ")" | operand ("==" | "!=" | "<" | "<=" | ">" | ">=") operand
    operand    = STEP.status | STEP.metrics.NAME | vars.NAME | env.NAME | number | 'text' | true | false | null

What is missing is null. Two values that both look like numbers are compared as numbers, others as text; with null only
`==` and `!=` can hold.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Literal

import msgspec

NESTING_MAX = 50

_TOKEN = re.compile(r"""\s*(?:(?P<text>'[^']*'|"[^"]*")|(?P<mark>==|!=|<=|>=|<|>|\(|\))|(?P<word>-?[A-Za-z0-9_][\w.-]*))""")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?\Z")
_STEP = re.compile(r"(?P<step>.+?)\.(?:status|metrics\.(?P<metric>.+))\Z")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORDS: dict[str, str | None] = {"true": "true", "false": "false", "null": None, "none": None}


class WhenError(Exception):
    """The condition cannot be understood; `column` counts from 1 within it."""

    def __init__(self, message: str, column: int) -> None:
        self.column = column
        super().__init__(message)


class Operand(msgspec.Struct, frozen=True):
    """A literal, or the name of something looked up when the step is due."""

    kind: Literal["literal", "status", "metric", "vars", "env"]
    name: str | None
    """The literal's text, the variable's name, or the step."""
    metric: str = ""


class Comparison(msgspec.Struct, frozen=True):
    """left ? right"""

    left: Operand
    sign: str
    right: Operand


class Join(msgspec.Struct, frozen=True):
    """All (`and`) or any (`or`) of the parts; `not` has one part."""

    sign: Literal["and", "or", "not"]
    parts: tuple[Condition, ...]


Condition = Comparison | Join


def parse_when(text: str) -> Condition:
    """The condition; WhenError says what is wrong and where."""
    parser = _Parser(text)
    condition = parser.any_of()
    parser.expect_end()
    return condition


def holds(condition: Condition, look_up: Callable[[Operand], str | None]) -> bool:
    """Tell whether the condition is true; `look_up` gives the value behind a name."""
    if isinstance(condition, Join):
        if condition.sign == "not":
            return not holds(condition.parts[0], look_up)
        results = (holds(part, look_up) for part in condition.parts)
        return all(results) if condition.sign == "and" else any(results)
    left, right = (side.name if side.kind == "literal" else look_up(side) for side in (condition.left, condition.right))
    if left is None or right is None:
        return condition.sign in {"==", "!="} and _COMPARE[condition.sign](left, right)
    if _NUMBER.match(left) and _NUMBER.match(right):
        return _COMPARE[condition.sign](Decimal(left), Decimal(right))
    return _COMPARE[condition.sign](left, right)


def operands(condition: Condition) -> Iterator[Operand]:
    """Every operand, in the order of the text."""
    if isinstance(condition, Join):
        for part in condition.parts:
            yield from operands(part)
    else:
        yield from (condition.left, condition.right)


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str, int]] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                raise WhenError(f"unexpected {text[at]!r}", at + 1)
            kind = str(match.lastgroup)
            self._tokens.append((kind, match[kind], match.start(kind) + 1))
            at = match.end()
        self._end = len(text) + 1
        self._at = 0
        self._depth = 0

    def any_of(self) -> Condition:
        return self._joined("or", lambda: self._joined("and", self._one))

    def expect_end(self) -> None:
        if self._at < len(self._tokens):
            _, token, column = self._tokens[self._at]
            raise WhenError(f"unexpected {token!r} after the condition", column)

    def _joined(self, sign: Literal["and", "or"], part: Callable[[], Condition]) -> Condition:
        parts = [part()]
        while self._accept(sign):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Join(sign, tuple(parts))

    def _one(self) -> Condition:
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise WhenError("the condition is nested too deeply", self._column())
        if self._accept("not"):
            condition: Condition = Join("not", (self._one(),))
        elif self._accept("("):
            condition = self.any_of()
            if not self._accept(")"):
                raise WhenError("a ')' is missing", self._column())
        else:
            condition = self._comparison()
        self._depth -= 1
        return condition

    def _comparison(self) -> Condition:
        left = self._operand()
        sign = self._tokens[self._at][1] if self._at < len(self._tokens) else ""
        if sign not in _COMPARE:
            raise WhenError("a comparison (== != < <= > >=) is expected here", self._column())
        self._at += 1
        return Comparison(left, sign, self._operand())

    def _operand(self) -> Operand:
        column = self._column()
        if self._at >= len(self._tokens):
            raise WhenError("a value is expected at the end", column)
        kind, token, _ = self._tokens[self._at]
        self._at += 1
        if kind == "text":
            return Operand("literal", token[1:-1])
        if kind == "word":
            return _named(token, column)
        raise WhenError(f"a value is expected instead of {token!r}", column)

    def _accept(self, token: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at][0] != "text" and self._tokens[self._at][1] == token:
            self._at += 1
            return True
        return False

    def _column(self) -> int:
        return self._tokens[self._at][2] if self._at < len(self._tokens) else self._end


def _named(word: str, column: int) -> Operand:
    if word.lower() in _WORDS:
        return Operand("literal", _WORDS[word.lower()])
    if _NUMBER.match(word):
        return Operand("literal", word)
    space, _, name = word.partition(".")
    if space == "vars" and name:
        return Operand("vars", name)
    if space == "env" and name:
        return Operand("env", name)
    if match := _STEP.match(word):
        if match["metric"] is None:
            return Operand("status", match["step"])
        return Operand("metric", match["step"], match["metric"])
    raise WhenError(f"{word!r} is neither STEP.status, STEP.metrics.NAME, vars.NAME, env.NAME nor a value; quote text", column)
