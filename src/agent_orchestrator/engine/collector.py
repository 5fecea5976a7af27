"""Keeps Python's garbage collector from looking through long-lived states again and again while runs are driven.

States live as long as their run and have hardly any cycles: with Python's own thresholds a quarter of a busy engine's time
went into walking them, and each full walk kept the event loop for a tenth of a second.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

THRESHOLDS = (20_000, 20, 50)

_lock = threading.Lock()
_driven = 0
_before = THRESHOLDS


@contextlib.contextmanager
def relaxed() -> Iterator[None]:
    """Let the collector look less often, until the last run of the process that asked for it is let go."""
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _driven, _before
    with _lock:
        _driven += 1
        if _driven == 1:
            _before = gc.get_threshold()
            if 0 < _before[0] < THRESHOLDS[0]:  # 0 is off: somebody's choice
                gc.set_threshold(*THRESHOLDS)


def _leave() -> None:
    global _driven
    with _lock:
        _driven -= 1
        if _driven == 0:
            gc.set_threshold(*_before)
