"""Real kills of real processes: the orchestrator in every mode, then whoever is there (orchestrator, shim, agent, a whole group),
and an orchestrator that is frozen while another tries to take its run.

The runs and their invariants are those of `tests/crash`, and the small ones of `proof.subjects`. Only processes that were
started here are signalled, each by its id.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent_orchestrator.engine.process.folder import read_pid
from proof.subjects import Subject, open_subject
from proof.syscalls import check_words, recover
from proof.trial import SYSTEMS, Kind, Trial
from tests.conftest import make_repo, pytest_configure
from tests.crash import test_kill_nine, test_loop_kill, test_phases_kill, test_swarm_kill, test_team_kill
from tests.crash.rig import Orc, Rig

ROUNDS = {"workflow": 8, "loop": 10, "phases": 8, "team": 8, "swarm": 8}
"""Seeds of a whole proof; each kills several times."""
VICTIM_ROUNDS, FREEZE_ROUNDS = 8, 6
BLOWS = 6
REFUSALS = ("is already running in another process", "a loop that is running cannot become running")
WORK_S = 0.3
"""The time that agents take, so that there is somebody to hurt."""
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
    """Some seeds of every system."""
    for number in range(max(1, round(VICTIM_ROUNDS * scale))):
        for system in SYSTEMS:
            yield Trial("victim", system, (seed + number,))


def plan_freezes(seed: int, scale: float) -> Iterator[Trial]:
    """Some seeds of every system."""
    for number in range(max(1, round(FREEZE_ROUNDS * scale))):
        for system in SYSTEMS:
            yield Trial("freeze", system, (seed + number,))


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
    """Kill whoever is there: a launch may be lost and another made, but none is ever made twice."""
    chance, blows = random.Random(trial.numbers[0]), 0
    with open_subject(trial.system, folder) as subject:
        subject.let_work(WORK_S)
        orc = subject.begin()
        while blows < BLOWS:
            _wait_for_a_start(subject, orc)
            if _is_over(orc):
                break
            _let_pass(chance.uniform(0.0, WORK_S))
            blows += 1
            if chance.random() < 0.3:
                orc.kill()
            if chance.random() < 0.9:
                _strike(subject, chance)
            if _is_over(orc):
                orc = subject.go_on()
        subject.attend(orc)
        check_words(orc)
        recover(subject, failed=True)
    return blows


def _strike(subject: Subject, chance: random.Random) -> None:
    """Kill a shim, an agent, or everything of a launch."""
    folders = sorted((subject.repo / ".git" / "orc" / "launches").glob("*/*~*"))
    living = set(subject.living())
    shims = [pid for folder in folders if (pid := read_pid(folder)) is not None and pid in living]
    if not shims:
        return
    shim = chance.choice(shims)
    agents = [pid for line in subject.log()[-1:] if (pid := int(line[5])) in living]
    victims = {"shim": [shim], "group": [-shim], "agent": agents}
    for pid in victims[chance.choice(sorted(victims))]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def play_freezes(trial: Trial, folder: Path) -> int:
    """Stop the orchestrator, let a second one try to take the run, wake the first: nothing is started twice."""
    chance, freezes = random.Random(trial.numbers[0]), 0
    with open_subject(trial.system, folder) as subject:
        subject.let_work(WORK_S)
        orc = subject.begin()
        while freezes < BLOWS:
            _wait_for_a_start(subject, orc)
            _let_pass(chance.uniform(0.0, WORK_S))
            if _is_over(orc):
                break
            orc.signal(signal.SIGSTOP)
            try:
                stored = subject.stored()
                assert stored is not None
                if stored.summary.ended:
                    break  # Nothing is left to be taken: the first has only its last words to say.
                second = subject.go_on()
                second.end()
                freezes += 1
                assert any(words in second.said for words in REFUSALS), second
            finally:
                orc.signal(signal.SIGCONT)
        assert orc.end() == 0, orc
        subject.check_end(orc)
    return freezes


def _wait_for_a_start(subject: Subject, orc: Orc) -> None:
    begun = len(subject.log())
    subject.attend(orc, lambda: len(subject.log()) > begun)


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
