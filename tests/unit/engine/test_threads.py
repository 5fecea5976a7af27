"""Long work beside the event loop, also on a machine that has no thread left."""

from __future__ import annotations

import asyncio
import threading

import pytest

from agent_orchestrator.engine.threads import Threads


def test_work_is_done_once_in_a_thread_and_its_error_reaches_the_loop() -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device")

    async def play() -> None:
        threads = Threads(asyncio.get_running_loop())
        assert await threads.submit(threading.get_ident) != threading.get_ident()
        with pytest.raises(OSError, match="No space"):
            await threads.submit(fail)
        threads.close()

    asyncio.run(play())


def test_without_a_thread_the_work_is_done_in_place_and_never_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def play() -> list[int]:
        threads, done = Threads(asyncio.get_running_loop()), list[int]()
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            await threads.submit(lambda: done.append(threading.get_ident()))
        await threads.submit(lambda: None)  # A thread that comes later finds the first one queued.
        threads.close()
        return done

    assert asyncio.run(play()) == [threading.get_ident()]
