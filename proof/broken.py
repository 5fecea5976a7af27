"""Engines that are broken on purpose: a proof that finds nothing wrong with them proves nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agent_orchestrator.engine.commit import Committer
from agent_orchestrator.engine.perform.launch import Launched
from agent_orchestrator.store.port import Append

_append: Callable[[Committer, Append], asyncio.Future[None]] = Committer.append
_start: Callable[..., None] = Launched.start


def _hasty(committer: Committer, part: Append) -> asyncio.Future[None]:
    """Say that a fact is durable before it is."""
    done = _append(committer, part)
    if not done.done():
        done.set_result(None)
    return done


def _deaf(committer: Committer, part: Append) -> asyncio.Future[None]:
    """Go on although somebody else has moved the run."""
    done = _append(committer, part)
    believed: asyncio.Future[None] = done.get_loop().create_future()

    def believe(answer: asyncio.Future[None]) -> None:
        answer.exception()
        if not believed.done():
            believed.set_result(None)

    done.add_done_callback(believe)
    return believed


def _forgetful(launched: Any, *, halt: bool) -> None:
    """Start what an earlier process may have started already."""
    launched._inherited = False
    _start(launched, halt=halt)


BREAKS: dict[str, tuple[type, str, Any]] = {
    "hasty": (Committer, "append", _hasty),
    "deaf": (Committer, "append", _deaf),
    "forgetful": (Launched, "start", _forgetful),
}


@contextmanager
def broken(name: str) -> Iterator[None]:
    """Break the engine of this process for a while."""
    where, what, how = BREAKS[name]
    kept = getattr(where, what)
    setattr(where, what, how)
    try:
        yield
    finally:
        setattr(where, what, kept)
