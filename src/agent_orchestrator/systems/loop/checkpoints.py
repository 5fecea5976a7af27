"""Checkpoint files: gzip JSON, one per iteration that has one; made once and never rewritten.

The same state gives the same bytes: the gzip header carries no time.
"""

from __future__ import annotations

import gzip

import msgspec

from agent_orchestrator.core.text import stamp
from agent_orchestrator.systems.loop.spec import CHECKPOINTS_KEPT
from agent_orchestrator.systems.loop.state import Iteration, LoopState

RETENTION_DAYS = 30
SCHEMA_VERSION = "1.0.0"
_WORDS = {"A": "created", "M": "modified", "D": "deleted", "T": "modified"}


def checkpoint_path(run: str, iteration: int) -> str:
    """Give the path of a checkpoint, relative to the loop's home."""
    return f".aiwg/ralph/loops/{run}/checkpoints/iteration-{iteration:03d}.json.gz"


def keep_checkpoint(state: LoopState, current: Iteration, trigger: str, at_us: int) -> None:
    """Makes the checkpoint of an iteration; the newest five stay, and the best one."""
    state.checkpoints[current.number] = _pack(state, current, trigger, at_us)
    state.newest_checkpoint = current.number
    best = state.best.number if state.best is not None else None
    for number in sorted(state.checkpoints)[:-CHECKPOINTS_KEPT]:
        if number != best:
            del state.checkpoints[number]


def _pack(state: LoopState, current: Iteration, trigger: str, at_us: int) -> bytes:
    run = state.context.run
    held = {
        "phase": "completing" if trigger == "completion" else "running",
        "progress": 100 if trigger == "completion" else round(current.score or 0.0),
        "artifacts": [
            {"path": change.path, "hash": change.blob, "status": _WORDS.get(change.status, "modified")}
            for change in state.changed
        ],
        "iteration": {"current": current.number, "max": state.spec.max_iterations, "failures": state.failures},
    }
    document = {
        "checkpoint_id": f"{run}-{current.number:03d}",
        "workflow_id": run,
        "loop_id": run,
        "created_at": stamp(at_us),
        "trigger": trigger,
        "state": held,
        "metadata": {
            "size_bytes": len(msgspec.json.encode(held)),
            "compression": "gzip",
            "retention_days": RETENTION_DAYS,
            "schema_version": SCHEMA_VERSION,
        },
    }
    return gzip.compress(msgspec.json.encode(document), mtime=0)
