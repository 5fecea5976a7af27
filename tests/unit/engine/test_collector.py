"""The collector looks less often while runs are driven, and as before when none is."""

from __future__ import annotations

import gc

from agent_orchestrator.engine.collector import THRESHOLDS, relaxed


def test_the_collector_is_relaxed_until_the_last_run_is_let_go() -> None:
    before = gc.get_threshold()
    with relaxed():
        with relaxed():
            assert gc.get_threshold() == THRESHOLDS
        assert gc.get_threshold() == THRESHOLDS
    assert gc.get_threshold() == before


def test_a_collector_that_is_off_or_looks_less_often_already_stays_so() -> None:
    before = gc.get_threshold()
    try:
        for chosen in ((0, 10, 10), (50_000, 10, 10)):
            gc.set_threshold(*chosen)
            with relaxed():
                assert gc.get_threshold() == chosen
            assert gc.get_threshold() == chosen
    finally:
        gc.set_threshold(*before)
