"""The lock of a run: taken by one, and looked at by many."""

from __future__ import annotations

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.engine.ownership import Ownership, owner_of
from agent_orchestrator.errors import RunBusy

RUN = RunId("run")


def test_a_run_is_taken_up_while_others_look_who_drives_it(tmp_path: Path) -> None:
    Ownership(tmp_path, RUN).release()
    looking = os.open(tmp_path / "runs" / "run.lock", os.O_RDWR)
    fcntl.flock(looking, fcntl.LOCK_SH | fcntl.LOCK_NB)
    with ThreadPoolExecutor(1) as pool:
        taking = pool.submit(Ownership, tmp_path, RUN)
        with pytest.raises(TimeoutError):
            taking.result(0.02)
        os.close(looking)
        owned = taking.result()
    assert owner_of(tmp_path, RUN) == f"process {os.getpid()} on {os.uname().nodename}"
    owned.release()
    assert owner_of(tmp_path, RUN) is None


def test_a_run_that_is_driven_is_busy(tmp_path: Path) -> None:
    owned = Ownership(tmp_path, RUN)
    with pytest.raises(RunBusy):
        Ownership(tmp_path, RUN)
    owned.release()
