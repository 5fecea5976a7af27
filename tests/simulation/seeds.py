"""Which seeds a simulation plays: few in the suite, as many as one likes with `make soak TIMES=20`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

TIMES = int(os.environ.get("SEEDS_TIMES", "1"))


def seeds(block: int, per_test: int) -> range:
    """The seeds of one of a test's blocks; blocks share none."""
    count = per_test * TIMES
    return range(block * count, (block + 1) * count)


@contextmanager
def named(seed: int) -> Iterator[None]:
    """Name the seed in whatever goes wrong."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise
