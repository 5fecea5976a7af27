"""Epics of a tracker, closed when their children are."""

from __future__ import annotations

import os
from pathlib import Path

from tests.acceptance.swarm_rig import SwarmRig


def test_epics_are_closed_when_asked_and_a_tracker_that_refuses_changes_nothing(repo: Path) -> None:
    rig = SwarmRig(repo)
    rig.beads({"id": "bd-8.1", "prompt": "do it"})
    tracker = rig.side / "bin" / "bd"
    tracker.parent.mkdir()
    tracker.write_text(f'#!/bin/sh\necho "$@" >>{rig.side}/bd.log\n[ "$1" != epic ]\n')
    tracker.chmod(0o755)
    path = {"PATH": f"{tracker.parent}:{os.environ['PATH']}"}
    result = rig.orc(*rig.run_arguments("--max-agents", "1", "--bd-close-epics"), env=path)
    assert result.code == 0, result
    assert (rig.side / "bd.log").read_text().splitlines() == ["close bd-8.1 --reason Completed: do it", "epic close-eligible"]
    assert "was not closed" not in result.out
