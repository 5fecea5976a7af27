"""The bounds of every system: trouble that does not end, and a stop at any moment; `check_system` asks for it.

The same thing goes wrong again and again here: an agent that never gets its work done, a check that is always lost or
changes the tree, a session that is always gone. A system then gives up with a reason or asks a person, after few launches.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from agent_orchestrator.core.effects import AskHuman, Effect, RunAgent, RunCheck
from agent_orchestrator.core.events import Aborted, StopReason
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import Abort, AgentEnded, CheckEnded, Outcome, Pause, Resume
from agent_orchestrator.core.lifecycle import Phase
from agent_orchestrator.core.limits import CHECK_RERUNS_MAX
from agent_orchestrator.core.system import System
from agent_orchestrator.core.units import US
from agent_orchestrator.testing.outcomes import Reports
from agent_orchestrator.testing.play import Play

ENDS_WITHIN = 1_000
"""Results after which a run has given up or waits for a person."""
ANSWERS_MAX = 3
"""The times that a person says yes before they are out of the office."""
DAY_US = 86_400 * US
ROWS_TRIED = 40
"""Ticks that a run is brought back to."""

PATIENT = frozenset({FailureKind.STOPPED, FailureKind.RATE_LIMITED, FailureKind.BUDGET})
"""Ends after which the engine waits before anything starts again: no matter how often, the work goes on in the end."""

Trouble = Callable[[Play, Effect], Outcome | None]
"""The outcome of an effect, where it is one that ends badly."""


def check_bounds(system: System, spec: Any, reports: Reports | None) -> None:
    """Play the specification through each kind of trouble that does not end."""
    for what, trouble in _troubles():
        play = Play(system, spec, random.Random(0), reports, thorough=False)
        troubled = _insist(play, what, trouble)
        life = play.state.lifecycle
        assert not (troubled and life.stop is StopReason.COMPLETED), f"{what}, and the run counts as completed"
        if life.ended:
            assert life.stop is not None, f"{what}, and the run ends without a stop reason"
            assert life.detail or not troubled, f"{what}, and the run ends without a word on why"
    slow = Play(system, spec, random.Random(0), reports, thorough=False)
    _insist(slow, "a day passes with everything that is done", _takes_a_day)


def check_stops(system: System, spec: Any, reports: Reports | None) -> None:
    """Stop the run in every state that it comes into: an abort ends it, a pause leaves nothing running."""
    for ticks in _states(system, spec, reports):
        for kind in (Abort, Pause):
            play = Play(system, spec, random.Random(0), reports, thorough=False)
            for _ in range(ticks):
                _go_well(play)
            where = f"{kind.__name__} while {sorted(_standing(play))}"
            play.tell(play.directive(kind, **({"now": True} if kind is Pause else {"reason": "enough"})))
            _drain(play, where)
            life = play.state.lifecycle
            if kind is Abort:
                # A system may put an abort off with a fact of its own, as a loop does that is about to complete.
                taken = any(isinstance(event, Aborted) for event, _ in play.journal)
                assert life.ended, f"{where}: it is {life.phase}"
                assert not taken or life.stop is StopReason.ABORTED, f"{where}: it ended as {life.stop}"
            else:
                assert life.ended or life.phase is Phase.PAUSED, f"{where}: it is {life.phase}"
                _resume(play, where)


def check_returns(system: System, spec: Any, reports: Reports | None) -> None:
    """Bring the run to its end, then back to each tick of it, as itself and as a fork: from everywhere it gets to its end."""
    whole = _ended(system, spec, reports)
    for row in range(0, len(whole.rows), max(1, len(whole.rows) // ROWS_TRIED)):
        for fork in (False, True):
            play = _ended(system, spec, reports)
            play.go_back(row, fork=fork)
            _resume(play, f"{'fork' if fork else 'go back'} after tick {row}")


def _ended(system: System, spec: Any, reports: Reports | None) -> Play:
    play = Play(system, spec, random.Random(0), reports, thorough=False)
    for _ in range(ENDS_WITHIN):
        if play.state.lifecycle.ended:
            break
        _go_well(play)
    return play


def _insist(play: Play, what: str, trouble: Trouble) -> bool:
    """Let the same go wrong until the run gives up or only a person can help; answer whether anything went wrong."""
    answers, troubled = 0, False
    repeated: dict[str, tuple[str, int]] = {}
    for _ in range(ENDS_WITHIN):
        asked = [effect for effect in play.state.doing if isinstance(effect, AskHuman)]
        others = [effect for effect in play.state.doing if not isinstance(effect, AskHuman)]
        if play.state.lifecycle.ended or not (others or (asked and answers < ANSWERS_MAX)):
            return troubled
        effect = (others or asked)[0]
        answers += isinstance(effect, AskHuman)
        bad = trouble(play, effect)
        troubled |= bad is not None
        _count(repeated, effect, what if bad is not None else "")
        play.tell(bad or play.outcome(effect, kindly=True))
    raise AssertionError(f"{what}, and the run never gives up")


def _count(repeated: dict[str, tuple[str, int]], effect: Effect, what: str) -> None:
    """Count how often a unit runs the same check, in trouble each time, with nothing in between."""
    if not isinstance(effect, RunCheck) or not what:
        repeated.pop(effect.unit, None)
        return
    command, times = repeated.get(effect.unit, ("", 0))
    times = times + 1 if command == effect.command else 1
    repeated[effect.unit] = effect.command, times
    assert times <= CHECK_RERUNS_MAX + 1, f"{what}, and `{effect.command}` is run {times} times in a row"


def _troubles() -> Iterator[tuple[str, Trouble]]:
    for kind in FailureKind:
        if kind not in PATIENT:
            yield f"every agent ends with {kind.value}", _agents_fail(kind)
    for kind in (FailureKind.LOST, FailureKind.TIMEOUT, FailureKind.LAUNCH):
        yield f"every check ends with {kind.value}", _checks_end(Failure(kind=kind, message="it went wrong"))
    yield "every check changes the tree", _checks_end(None, moved=True)


def _agents_fail(kind: FailureKind) -> Trouble:
    """Let agents fail; checks are red, so that nothing can be done without them."""

    def trouble(play: Play, effect: Effect) -> Outcome | None:
        failure = Failure(kind=kind, message="it went wrong")
        if isinstance(effect, RunAgent):
            return AgentEnded(effect=effect.id, started_us=play.now_us, ended_us=play.now_us + US, failure=failure)
        return _checked(play, effect, exit_code=1) if isinstance(effect, RunCheck) and not effect.argv else None

    return trouble


def _checks_end(failure: Failure | None, *, moved: bool = False) -> Trouble:
    """Let agents do well; no check shows anything."""

    def trouble(play: Play, effect: Effect) -> Outcome | None:
        if not isinstance(effect, RunCheck) or effect.argv:
            return None
        ended = _checked(play, effect, exit_code=0 if failure is None else None)
        after = f"tree {play.now_us}" if moved else ended.tree_before
        return msgspec.structs.replace(ended, failure=failure, tree_after=after)

    return trouble


def _takes_a_day(play: Play, effect: Effect) -> Outcome | None:
    play.now_us += DAY_US
    return None


def _checked(play: Play, effect: RunCheck, exit_code: int | None) -> CheckEnded:
    return CheckEnded(
        effect=effect.id,
        started_us=play.now_us,
        ended_us=play.now_us + US,
        exit_code=exit_code,
        tree_before="tree",
        tree_after="tree",
    )


def _states(system: System, spec: Any, reports: Reports | None) -> list[int]:
    """Return the ticks of a run that goes well after which something is done that was not done before."""
    play = Play(system, spec, random.Random(0), reports, thorough=False)
    seen: set[frozenset[str]] = set()
    found = []
    for ticks in range(ENDS_WITHIN):
        if play.state.lifecycle.ended:
            break
        standing = _standing(play)
        if standing not in seen:
            found.append(ticks)
        seen.add(standing)
        _go_well(play)
    return found


def _standing(play: Play) -> frozenset[str]:
    """Name what is being done: each effect by its kind and what its id says of its purpose."""
    return frozenset(f"{type(effect).__name__} {effect.id.rpartition('.')[2]}" for effect in play.state.doing)


def _go_well(play: Play) -> None:
    doing = list(play.state.doing)
    play.tell(play.outcome(doing[0], kindly=True) if doing else play.directive(Resume))


def _drain(play: Play, where: str) -> None:
    """End what runs as it ends when it is stopped."""
    for _ in range(ENDS_WITHIN):
        programs = play.programs()
        if not programs:
            return
        play.tell(*(play.outcome(effect, kindly=True) for effect in list(play.state.doing) if effect.id in programs))
    raise AssertionError(f"{where}: something always runs")


def _resume(play: Play, where: str) -> None:
    """Resume a paused run and bring it to its end."""
    for _ in range(ENDS_WITHIN):
        if play.state.lifecycle.ended:
            return
        _go_well(play) if play.state.lifecycle.running else play.tell(play.directive(Resume))
    raise AssertionError(f"{where}: it does not end when it goes on")
