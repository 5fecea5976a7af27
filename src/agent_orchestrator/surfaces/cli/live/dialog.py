"""The dialog about a question: pure. Keys and what is asked go in, what the person wants comes out."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.surfaces.cli.live.keyboard import Pasted

HELP = " (Enter sends, Esc goes back): "
NEWLINE = "⏎"
ENTRY_CHARS = 20_000


class Wish(StrEnum):
    """The kinds of things that a person may want."""

    APPROVE = "approve"
    REJECT = "reject"
    ANSWER = "answer"
    DIFF = "diff"
    LEAVE = "leave"


_LINES = {Wish.REJECT: "why not", Wish.APPROVE: "approve, with comments", Wish.ANSWER: "answer"}
"""The names of the lines that can be typed."""


class Wanted(NamedTuple):
    """One thing that the person wants."""

    wish: Wish
    question: AskHuman
    text: str = ""


class Dialog:
    """The questions of a run, of which one is shown, and the line that is being typed."""

    def __init__(self) -> None:
        self.asked: list[AskHuman] = []
        self._at = ""
        """The id of the question that is shown."""
        self._typed: str | None = None
        self._meant = Wish.REJECT
        """The kind of answer that the line is typed for."""
        self.said = ""
        """The last word about the question: that it was answered, or why it could not be."""
        self._answered: dict[str, str] = {}
        """The questions that were answered here, and the answers' ids."""

    @property
    def question(self) -> AskHuman | None:
        """The question that is shown."""
        return next((one for one in self.asked if one.id == self._at), None)

    @property
    def entry(self) -> str | None:
        """The line that is being typed, with what it is for; None while none is."""
        question = self.question
        if self._typed is None or question is None:
            return None
        return f"{_LINES[self._meant]}{HELP}{self._typed}".replace("\n", NEWLINE)

    @property
    def ways(self) -> tuple[str, ...]:
        """The keys that count now."""
        question = self.question
        if question is None or self._typed is not None or question.id in self._answered:
            return ()
        judge = ("[a] answer",) if question.in_words else ("[y] approve", "[c] with comments", "[n] reject")
        more = ("[Tab] next question",) if len(self.asked) > 1 else ()
        return ("[d] diff", *judge, "[l] leave", *more)

    def update(self, asked: list[AskHuman]) -> bool:
        """Take what is asked now; return True when another question than before is shown."""
        self.asked = asked
        if self.question is not None:
            return False
        before, self._at = self._at, asked[0].id if asked else ""
        self._typed, self.said = None, ""
        return self._at != before

    def press(self, key: str) -> Wanted | None:
        """Take a key; return what the person wants by it."""
        question = self.question
        if question is None or question.id in self._answered:
            return None
        if self._typed is not None:
            return self._type(question, self._typed, key)
        if isinstance(key, Pasted):
            return None
        match key.lower():
            case "d":
                return Wanted(Wish.DIFF, question)
            case "l":
                return Wanted(Wish.LEAVE, question)
            case "y" if not question.in_words:
                return Wanted(Wish.APPROVE, question)
            case "n" if not question.in_words:
                self._typed, self._meant = "", Wish.REJECT
            case "c" if not question.in_words:
                self._typed, self._meant = "", Wish.APPROVE
            case "a" if question.in_words:
                self._typed, self._meant = "", Wish.ANSWER
            case "tab":
                self._at = self.asked[(self.asked.index(question) + 1) % len(self.asked)].id
                self.said = ""
        return None

    def _type(self, question: AskHuman, typed: str, key: str) -> Wanted | None:
        match key:
            case Pasted():
                self._typed = (typed + key)[:ENTRY_CHARS]
            case "escape":
                self._typed = None
            case "backspace":
                self._typed = typed[:-1]
            case "ctrl-u":
                self._typed = ""
            case "ctrl-w":
                self._typed = typed.rstrip().rpartition(" ")[0]
            case "enter" if question.in_words and not typed.strip():
                self._typed = typed
            case "enter":
                self._typed = None
                return Wanted(self._meant, question, typed.strip())
            case _ if len(key) == 1:
                self._typed = (typed + key)[:ENTRY_CHARS]
        return None

    def settle(self, question: AskHuman, answer: str) -> None:
        """Note that the question was answered here, by the answer of this id; the run takes it next."""
        self._answered[question.id] = answer

    def refuse(self, answer: str, why: str) -> None:
        """Note why an answer did not count; the question stays."""
        refused = [question for question, given in self._answered.items() if given == answer]
        for question in refused:
            del self._answered[question]
        self.said = why if refused else self.said
