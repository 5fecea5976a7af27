"""Judges an iteration: its score, whether it got on, whether tests were weakened, whether the loop is stuck.

Completion is evidence: nothing here looks at what the agent claims, but for a prose criterion that was confirmed.
"""

from __future__ import annotations

import re
import zlib
from fnmatch import fnmatchcase

from agent_orchestrator.core.evidence import find_doubts, say_names
from agent_orchestrator.core.text import last_line
from agent_orchestrator.systems.loop.events import HumanAsked, IterationFinished, LoopEvent, StuckNoticed
from agent_orchestrator.systems.loop.state import Iteration, LoopState

SAME_ERROR_TIMES = 3
STEERS_BEFORE_STOP = 2
"""The number of times that the agent is told it is stuck before the loop stops."""
TREES_REMEMBERED = 10
LOW_DELTA = 5.0
"""An iteration that raises the score by less brings little."""
PLATEAU_ITERATIONS = 2
"""So many of them in a row are pointed out."""

_CHANGING = re.compile(
    r"\x1b\[[0-9;]*m"
    r"|\b\d+(?:\.\d+)?\s?(?:ms|s|sec|secs|seconds|m)\b"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*"
    r"|\b\d\d:\d\d:\d\d\b"
    r"|\b0x[0-9a-fA-F]+"
    r"|/tmp/\S+"
)


def signature_of(output: str, exit_code: int | None) -> str:
    """An error without what changes from run to run; '' when the check said nothing."""
    text = _CHANGING.sub("", output).strip()
    return f"{exit_code}:{zlib.crc32(text.encode()):08x}" if text else ""


def judge_iteration(state: LoopState) -> list[LoopEvent]:
    """The iteration at work is over: what came of it, and whether the loop is stuck."""
    current = state.current
    assert current is not None, "an iteration is judged"
    passed = bool(state.verdict)
    blocked = () if not passed or state.spec.allow_fewer_tests or state.accepted else find_weakened(state)
    if blocked and state.spec.interactive and state.accepted is None:
        question = f"The criterion is met, but {'; '.join(blocked)}. Accept it?"
        effect = state.name_effect("human")
        return [HumanAsked(effect=effect, about="weakened", question=question, after=state.record.agent_launch)]
    before = state.iterations[-1] if state.iterations else None
    signature = "" if passed else signature_of(state.check_output, state.check_exit)
    tree = current.saved.tree if current.saved is not None else None
    known = _known_trees(state)
    changed = tree is not None and (not known or tree != known[-1])
    result_changed = before is not None and (before.passed, before.signature) != (passed, signature)
    completes = passed and not blocked
    score = score_of(state, current, passed=completes)
    low_deltas = 0 if passed else _low_deltas(state, score)
    checkpoint = "completion" if completes else "iteration" if current.number % state.spec.checkpoint_interval == 0 else ""
    finished = IterationFinished(
        iteration=current.number,
        passed=passed,
        score=score,
        progress=changed or result_changed or (before is None and passed),
        failed=bool(current.agent_error),
        error="" if passed else error_of(state, current),
        signature=signature,
        blocked=blocked,
        moved_on=(tree is None or tree not in known) and (before is None or before.signature != signature),
        low_deltas=low_deltas,
        plateau=low_deltas >= PLATEAU_ITERATIONS,
        checkpoint=checkpoint,
        then="complete" if completes else "next",
    )
    evidence = () if passed else stuck_evidence(state, current, signature)
    return [finished, StuckNoticed(evidence=evidence)] if evidence else [finished]


def score_of(state: LoopState, current: Iteration, *, passed: bool) -> float:
    """The agent's own estimate, else the share of tests that pass, else all or nothing; deleting tests raises no score."""
    if current.reported_score is not None:
        return current.reported_score
    if passed:
        return 100.0
    ran, good = current.tests, current.tests_passed
    known = max(ran or 0, state.tests_most or 0)
    return round(100.0 * (good or 0) / known, 1) if known else 0.0


def _low_deltas(state: LoopState, score: float) -> int:
    before = state.iterations[-1].score if state.iterations else None
    return state.low_deltas + 1 if before is not None and round(score - before, 1) < LOW_DELTA else 0


def error_of(state: LoopState, current: Iteration) -> str:
    """Say in a line why the iteration did not do it."""
    said = last_line(state.check_output)
    if state.spec.command is None:
        return current.agent_error or said or "the agent does not say that it is done"
    return said or (f"exit code {state.check_exit}" if state.check_exit is not None else current.agent_error)


def find_weakened(state: LoopState) -> tuple[str, ...]:
    """Say how the tests were made easier to pass, if they were; that files of tests were changed is no reason by itself."""
    ran = state.current.tests if state.current is not None else None
    gone = [change for change in state.changed if change.status == "D"]
    found = list(find_doubts(ran, state.tests_most, gone))
    touched = [change.path for change in state.changed if is_protected(change.path, state.spec.protected)]
    if touched:
        found.append(f"protected files were changed: {say_names(touched)}")
    return tuple(found)


def is_protected(path: str, patterns: tuple[str, ...]) -> bool:
    """Tell whether a path is, or lies below, one of the patterns."""
    for pattern in patterns:
        stem = pattern.rstrip("/")
        if fnmatchcase(path, stem) or fnmatchcase(path, f"{stem}/*"):
            return True
    return False


def stuck_evidence(state: LoopState, current: Iteration, signature: str) -> tuple[str, ...]:
    """List the signs that the loop does not get on: the same error, no diff, a tree that was there before."""
    found = []
    recent = [one.signature for one in state.iterations[-(SAME_ERROR_TIMES - 1) :]]
    enough = state.window + 1 >= SAME_ERROR_TIMES and len(recent) == SAME_ERROR_TIMES - 1
    if signature and enough and all(one == signature for one in recent):
        found.append(f"the same error {SAME_ERROR_TIMES} times: {last_line(state.check_output)}")
    if current.saved is not None:
        trees = _known_trees(state)
        if trees and current.saved.tree == trees[-1]:
            found.append(f"iteration {current.number} changed nothing")
        elif current.saved.tree in trees:
            found.append(f"iteration {current.number} went back to a tree that was there before")
    if current.agent_error and state.failing + 1 >= SAME_ERROR_TIMES:
        found.append(f"the agent failed {state.failing + 1} times in a row: {current.agent_error}")
    return tuple(found)


def _known_trees(state: LoopState) -> list[str]:
    trees = [state.start.tree] if state.start is not None else []
    return [*trees, *(one.saved.tree for one in state.iterations[-TREES_REMEMBERED:] if one.saved is not None)]
