from __future__ import annotations

from pages import page_count


def test_a_page_that_is_begun_counts() -> None:
    assert page_count(21, per_page=10) == 3


def test_a_full_page_is_not_followed_by_an_empty_one() -> None:
    assert page_count(20, per_page=10) == 2


def test_nothing_fills_no_page() -> None:
    assert page_count(0, per_page=10) == 0
