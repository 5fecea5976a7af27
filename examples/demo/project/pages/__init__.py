"""The number of pages that a list of items fills."""

from __future__ import annotations


def page_count(items: int, per_page: int) -> int:
    """The number of pages that `items` fill, with at most `per_page` on each."""
    return items // per_page
