"""Keys and what they mean: a question is answered by what was pressed for it, and by nothing else."""

from __future__ import annotations

import pytest

from agent_orchestrator.core.effects import AskHuman
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.surfaces.cli.live.dialog import Dialog, Wanted, Wish
from agent_orchestrator.surfaces.cli.live.keyboard import Pasted, read_keys
from agent_orchestrator.surfaces.cli.live.page import Page
from agent_orchestrator.surfaces.transcript import Span


def ask(unit: str, *, in_words: bool = False, launch: int = 1) -> AskHuman:
    effect = EffectId(f"run/{unit}/i0.a1.l{launch}.human")
    return AskHuman(id=effect, unit=unit, question="Good?", after=effect, in_words=in_words)


def press(dialog: Dialog, text: str) -> list[Wanted]:
    return [wanted for key in read_keys(text)[0] if (wanted := dialog.press(key)) is not None]


ONE, WORDS = ask("one"), ask("pm", in_words=True)


def asked(*questions: AskHuman) -> Dialog:
    dialog = Dialog()
    assert dialog.update(list(questions))
    return dialog


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("y", Wanted(Wish.APPROVE, ONE)),
        ("Y", Wanted(Wish.APPROVE, ONE)),
        ("cfine by me\r", Wanted(Wish.APPROVE, ONE, "fine by me")),
        ("d", Wanted(Wish.DIFF, ONE)),
        ("l", Wanted(Wish.LEAVE, ONE)),
        ("n\r", Wanted(Wish.REJECT, ONE)),
        ("nmore tests\r", Wanted(Wish.REJECT, ONE, "more tests")),
        ("nmore tästs\x7f\x7fx\n", Wanted(Wish.REJECT, ONE, "more täsx")),
        ("nmore tests\x17docs\r", Wanted(Wish.REJECT, ONE, "moredocs")),
        ("nmore\x15less\r", Wanted(Wish.REJECT, ONE, "less")),
        ("n\x1by", Wanted(Wish.APPROVE, ONE)),
        ("nfirst\x1b[200~a\r\nb y\x1b[201~\r", Wanted(Wish.REJECT, ONE, "firsta\nb y")),
    ],
)
def test_a_key_means_what_the_line_says(keys: str, wanted: Wanted) -> None:
    assert press(asked(ONE), keys) == [wanted]


@pytest.mark.parametrize("keys", ["a", "x", " ", "\r", "\x1b[A", "\x1b[Z", "\x1b[200~yes\r\x1b[201~", "ny", "n\x1b", "\x00\x05"])
def test_nothing_else_answers(keys: str) -> None:
    assert press(asked(ONE), keys) == []


def test_a_question_in_words_is_answered_in_words_and_not_by_nothing() -> None:
    dialog = asked(WORDS)
    assert dialog.ways == ("[d] diff", "[a] answer", "[l] leave")
    assert press(dialog, "yna\r \r") == []
    assert dialog.entry == "answer (Enter sends, Esc goes back):  "
    assert press(dialog, "one hour\r") == [Wanted(Wish.ANSWER, WORDS, "one hour")]


def test_without_a_question_no_key_means_anything() -> None:
    dialog = Dialog()
    assert not dialog.update([])
    assert press(dialog, "ynld\r") == []
    assert (dialog.ways, dialog.entry) == ((), None)


def test_a_question_that_is_answered_elsewhere_takes_the_typed_line_with_it() -> None:
    two = ask("two")
    dialog = asked(ONE, two)
    press(dialog, "nbad")
    assert dialog.update([two])
    assert (dialog.question, dialog.entry) == (two, None)
    assert press(dialog, "y") == [Wanted(Wish.APPROVE, two)]


def test_a_question_asked_anew_is_another_one() -> None:
    dialog = asked(ONE)
    press(dialog, "nbad")
    again = ask("one", launch=2)
    assert dialog.update([again])
    assert dialog.entry is None


def test_a_question_is_answered_once_and_again_if_the_answer_did_not_count() -> None:
    dialog = asked(ONE)
    dialog.settle(ONE, "answer-1")
    assert (press(dialog, "y"), dialog.ways) == ([], ())
    dialog.refuse("another", "no")
    assert press(dialog, "y") == []
    dialog.refuse("answer-1", "it came from inside a launch")
    assert dialog.said == "it came from inside a launch"
    assert press(dialog, "y") == [Wanted(Wish.APPROVE, ONE)]


def test_tab_goes_through_the_questions() -> None:
    dialog = asked(ONE, WORDS)
    press(dialog, "\t")
    assert dialog.question is WORDS
    press(dialog, "\t")
    assert dialog.question is ONE


def test_a_paste_that_comes_in_two_parts_is_one() -> None:
    keys, rest = read_keys("a\x1b[200~yes")
    assert (keys, rest) == (["a"], "\x1b[200~yes")
    keys, rest = read_keys(rest + " or no\x1b[201~b")
    assert (keys, rest) == (["yes or no", "b"], "")
    assert isinstance(keys[0], Pasted)


def test_a_page_is_scrolled_within_its_text() -> None:
    page, lines = Page("diff"), [[Span(f"line {number}")] for number in range(10)]

    def top() -> str:
        return "".join(span.text for span in page.render(lines, 30, 4)[0])

    assert top() == "line 0"
    for key, first in (("j", 1), (" ", 4), ("k", 3), ("G", 7), ("down", 7), ("b", 4), ("g", 0), ("up", 0), ("page down", 3)):
        assert page.press(key)
        assert top() == f"line {first}", key
    assert not page.press("q")
    assert not Page("diff").press("escape")
