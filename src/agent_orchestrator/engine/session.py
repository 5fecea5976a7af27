"""Drives one run on an event loop of its own, with signals mapped to what people mean by them.

Ctrl-C once drains, twice stops what runs; TERM and HUP let go at once: agents live on and `orc resume` adopts them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.inputs import Given, Pause
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import System
from agent_orchestrator.core.who import Surface, Who
from agent_orchestrator.engine.driver import Driver
from agent_orchestrator.engine.engine import Engine, Observer, World
from agent_orchestrator.engine.sender import name_of_user
from agent_orchestrator.errors import Shortage, is_shortage
from agent_orchestrator.store.port import StoredRun


def drive_in_loop(
    world: World,
    run: StoredRun,
    system: System,
    observer: Observer,
    stays: Callable[[Driver], bool],
    inputs: Sequence[Given] = (),
) -> Summary:
    """Drives the run until it ends or rests, and returns it in one line."""
    with asyncio.Runner(loop_factory=_make_loop) as runner:
        runner.get_loop()  # before there is anything to run: what is short must not leave it behind
        return runner.run(_drive(world, run, system, observer, stays, inputs))


def _make_loop() -> asyncio.AbstractEventLoop:
    """Make an event loop. Raises Shortage without the descriptors that it takes."""
    said, why = sys.unraisablehook, ""
    sys.unraisablehook = lambda unraised: None  # A loop that is made in part cannot close what it does not have, and says so.
    try:
        return asyncio.new_event_loop()
    except OSError as error:
        if not is_shortage(error):
            raise
        why = str(error.strerror)
    finally:
        sys.unraisablehook = said
    raise Shortage(detail=f"The run cannot be driven now: {why}.")


async def _drive(
    world: World,
    run: StoredRun,
    system: System,
    observer: Observer,
    stays: Callable[[Driver], bool],
    inputs: Sequence[Given],
) -> Summary:
    engine = Engine(world, observer)
    signals = Signals(engine, run.id)
    engine.loop.set_exception_handler(lambda loop, about: engine.fail(_error(about)))
    signals.install()
    try:
        return await engine.drive(run, system, stays, inputs)
    finally:
        signals.remove()
        engine.committer.close()
        engine.threads.close()


def _error(about: dict[str, Any]) -> BaseException:
    error = about.get("exception")
    return error if isinstance(error, BaseException) else RuntimeError(str(about.get("message")))


class Signals:
    """The signals of a person, told to the run as directives."""

    def __init__(self, engine: Engine, run: RunId) -> None:
        self._engine, self._run = engine, run
        self._interrupts = 0

    def install(self) -> None:
        """From now on signals are directives; they are the main thread's, so that another one hears none."""
        if threading.current_thread() is not threading.main_thread():
            return
        loop = self._engine.loop
        loop.add_signal_handler(signal.SIGINT, self._interrupted)
        loop.add_signal_handler(signal.SIGTERM, self._engine.leave)
        loop.add_signal_handler(signal.SIGHUP, self._engine.leave)

    def remove(self) -> None:
        """Signals do again what they did."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._engine.loop.remove_signal_handler(number)

    def _interrupted(self) -> None:
        self._interrupts += 1
        driver = self._engine.drivers.get(self._run)
        if driver is None:
            return
        now = self._interrupts > 1
        said = "Stopping what runs." if now else "Draining: what runs may finish; Ctrl-C again stops it."
        self._engine.notify(driver, said)
        # On a full disk the little space kept back lets this pause be written.
        self._engine.store.keep_reserve_file(release=True)
        who = Who(surface=Surface.SIGNAL, user=name_of_user(os.getuid()), uid=os.getuid(), pid=os.getpid())
        driver.deliver(Pause(id=uuid.uuid4().hex, now=now, reason="Ctrl-C", who=who))
