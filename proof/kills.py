"""Real kills of real processes: the orchestrator in every mode, then whoever is there (orchestrator, shim, agent, a whole group),
and an orchestrator that is frozen while another tries to take its run.

The runs and their invariants are those of `tests/crash`. Only processes that were started here are signalled, each by its id.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_orchestrator.core.events import StopReason
from agent_orchestrator.engine.process.folder import read_pid
from proof.trial import SYSTEMS, Kind, Trial
from tests.conftest import make_repo, pytest_configure
from tests.crash import test_kill_nine, test_loop_kill, test_phases_kill, test_swarm_kill, test_team_kill
from tests.crash.rig import Orc, Rig, wait_until

ROUNDS = {"workflow": 8, "loop": 10, "phases": 8, "team": 8, "swarm": 8}
"""Seeds of a whole proof; each kills several times."""
VICTIM_ROUNDS, FREEZE_ROUNDS = 8, 6
BLOWS = 6
SURVIVORS: dict[str, Callable[[int, Path], int]] = {
    "workflow": test_kill_nine.survive_kills,
    "loop": test_loop_kill.survive_kills,
    "phases": test_phases_kill.survive_kills,
    "team": test_team_kill.survive_kills,
    "swarm": test_swarm_kill.survive_kills,
}


def plan_kills(seed: int, scale: float) -> Iterator[Trial]:
    """Some seeds of every mode."""
    for system in SYSTEMS:
        for number in range(max(1, round(ROUNDS[system] * scale))):
            yield Trial("kill", system, (seed + number,))


def plan_victims(seed: int, scale: float) -> Iterator[Trial]:
    """Some seeds of workflows."""
    for number in range(max(1, round(VICTIM_ROUNDS * scale))):
        yield Trial("victim", "workflow", (seed + number,))


def plan_freezes(seed: int, scale: float) -> Iterator[Trial]:
    """Some seeds of workflows."""
    for number in range(max(1, round(FREEZE_ROUNDS * scale))):
        yield Trial("freeze", "workflow", (seed + number,))


@contextmanager
def nothing_left(folder: Path) -> Iterator[Path]:
    """Make a repository; at the end no orchestrator and no agent of the trial is left."""
    pytest_configure()
    folder.mkdir(parents=True)
    try:
        yield make_repo(folder / "repo")
    finally:
        while Orc.started:
            Orc.started.pop().kill()
        while Rig.made:
            Rig.made.pop().let_go()


def play_kills(trial: Trial, folder: Path) -> int:
    """Kill the orchestrator at moments that the seed chooses, until the run has ended."""
    with nothing_left(folder) as repo:
        return SURVIVORS[trial.system](trial.numbers[0], repo)


def play_victims(trial: Trial, folder: Path) -> int:
    """Kill whoever is there: an attempt may be lost and made again, but none is ever made twice."""
    chance, blows = random.Random(trial.numbers[0]), 0
    with nothing_left(folder) as repo:
        rig = Rig(repo, test_kill_nine.TWELVE_STEPS)
        orc = rig.run("run", "--max-attempts", "40")
        while blows < BLOWS:
            begun = len(rig.log())
            wait_until(lambda: len(rig.log()) > begun or orc.ended)  # noqa: B023 - asked at once
            if _is_over(orc):
                break
            _let_pass(chance.uniform(0.0, 0.15))
            blows += 1
            if chance.random() < 0.3:
                orc.kill()
            if chance.random() < 0.9:
                _strike(rig, chance)
            if _is_over(orc):
                orc = rig.start("resume", "run")
        orc.end()
        _check_attempts(rig)
    return blows


def _strike(rig: Rig, chance: random.Random) -> None:
    """Kill a shim, an agent, or everything of a launch."""
    folders = sorted((rig.repo / ".git" / "orc" / "launches" / "run").glob("*~*"))
    shims = [pid for folder in folders if (pid := read_pid(folder)) is not None and pid in rig.living("run")]
    if not shims:
        return
    shim = chance.choice(shims)
    victims = {"shim": [shim], "group": [-shim], "agent": [int(line[4]) for line in rig.log()[-1:]]}
    for pid in victims[chance.choice(sorted(victims))]:
        if pid < 0 or pid in rig.living("run"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _check_attempts(rig: Rig) -> None:
    state, _ = rig.fold("run")
    assert state.lifecycle.stop is StopReason.COMPLETED, state.lifecycle
    made = Counter(tuple(line[1:4]) for line in rig.log())
    assert max(made.values()) == 1, f"an attempt was started twice: {made}"
    assert rig.living("run") == []


def play_freezes(trial: Trial, folder: Path) -> int:
    """Stop the orchestrator, let a second one try to take the run, wake the first: nothing is started twice."""
    chance, freezes = random.Random(trial.numbers[0]), 0
    with nothing_left(folder) as repo:
        rig = Rig(repo, test_kill_nine.TWELVE_STEPS)
        orc = rig.run("run")
        while freezes < BLOWS and not orc.ended:
            begun = len(rig.log())
            wait_until(lambda: len(rig.log()) > begun or orc.ended)  # noqa: B023 - asked at once
            _let_pass(chance.uniform(0.0, 0.1))
            if _is_over(orc):
                break
            orc.signal(signal.SIGSTOP)
            try:
                second = rig.start("resume", "run")
                second.end()
                freezes += 1
                assert "is already running in another process" in second.said, second
            finally:
                orc.signal(signal.SIGCONT)
        orc.end()
        test_kill_nine.check_run(rig, "run")
    return freezes


def _is_over(orc: Orc) -> bool:
    """Ask anew: it may have ended since it was asked last."""
    return orc.ended


def _let_pass(seconds: float) -> None:
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        time.sleep(0.002)


KINDS = (
    Kind(name="kill", unit="kills of the orchestrator", plan=plan_kills, play=play_kills),
    Kind(name="victim", unit="kills of orchestrator, shim, agent or group", plan=plan_victims, play=play_victims),
    Kind(name="freeze", unit="freezes under a second driver", plan=plan_freezes, play=play_freezes),
)
