"""Which accounts may not ask their model now: one view for all runs of a process, kept in the store for all processes.

A window is closed by whoever is refused, durably, with the outcome that said so; it opens by itself.
"""

from __future__ import annotations

import zlib
from typing import Any

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.core.hold import UNKNOWN_WINDOW
from agent_orchestrator.core.ids import EffectId
from agent_orchestrator.core.limits import RATE_BACKOFF_BASE_S, RATE_BACKOFF_CAP_S, RATE_JITTER_S, RATE_WINDOW_MAX_S
from agent_orchestrator.core.retry import DOUBLINGS_MAX
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.clock import Clock
from agent_orchestrator.errors import STORE_PASSES
from agent_orchestrator.store.port import RateWindow, Store

PROGRAMS = ("command", "wrapper")
"""Adapters of programs that are nobody's in particular: the agent's own name is its account."""


def account_of(choice: AgentChoice) -> str:
    """Return the account of an agent for people: as configured, else its adapter, with the variable that holds its key."""
    options: dict[str, Any] = choice.options
    if account := options.get("account"):
        return str(account)
    name = choice.name if choice.performer in PROGRAMS else choice.performer
    key = next((one for one in options.get("pass_env") or () if "KEY" in one or "TOKEN" in one), "")
    return f"{name}:{key}" if key else name


def limited_account(choice: AgentChoice, key: str) -> str:
    """Return whose rate limits an agent is under: there may be different keys under one name, here later or on other hosts."""
    account = account_of(choice)
    return account if choice.options.get("account") or not key else f"{account}#{key}"


def jitter_us(effect: EffectId, window: RateWindow) -> int:
    """A part of RATE_JITTER_S, or of a tenth of a short wait, by the id: the same whenever it is asked."""
    most_us = min(RATE_JITTER_S * US, (window.resets_us - window.seen_us) / 10)
    return int(most_us * (zlib.crc32(effect.encode()) % 1000) / 1000)


class Rates:
    """The rate limits as this process knows them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._windows: dict[tuple[str, str], RateWindow] = {}
        self._latest_us = 0
        self._stale = True

    def look_again(self) -> None:
        """Another process may have hit a limit: read the store before the next answer."""
        self._stale = True

    @property
    def any_closed(self) -> bool:
        """Say whether any account may have to wait, or nobody knows; cheap, because it is asked before every start."""
        if self._stale:
            try:
                self._load()
            except STORE_PASSES:
                return True
        return self._latest_us != 0 and self._clock.now_us() < self._latest_us

    def closed(self, account: str, effect: EffectId) -> tuple[RateWindow, int] | None:
        """The window of the account that opens last, and when this effect may start, if that is not now.

        Raises what keeps the store from being read: who does not know starts nobody.
        """
        if self._stale:
            self._load()
        if not self.any_closed:
            return None
        mine = [window for window in self._windows.values() if window.account == account]
        last = max(mine, key=lambda window: window.resets_us, default=None)
        if last is None:
            return None
        until_us = last.resets_us + jitter_us(effect, last)
        return (last, until_us) if self._clock.now_us() < until_us else None

    def refused(self, account: str, failure: Failure) -> RateWindow:
        """Return what a refusal closes, and for how long; without a time that it says, longer each time in a row."""
        now_us = self._clock.now_us()
        name = failure.window or UNKNOWN_WINDOW
        known = self._windows.get((account, name))
        said_us = failure.retry_at_us
        strikes = 1
        if said_us is None or said_us <= now_us:
            recent = known is not None and now_us - known.resets_us < 2 * RATE_BACKOFF_CAP_S * US
            strikes = known.strikes + 1 if known is not None and recent else 1
            pause_s = min(RATE_BACKOFF_CAP_S, RATE_BACKOFF_BASE_S * 2.0 ** min(strikes - 1, DOUBLINGS_MAX))
            said_us = now_us + int(pause_s * US)
        resets_us = min(said_us, now_us + int(RATE_WINDOW_MAX_S * US))
        if known is not None and known.resets_us == resets_us:
            return known  # Several agents are told the same thing.
        window = RateWindow(account=account, name=name, resets_us=resets_us, seen_us=now_us, strikes=strikes)
        self._add(window)
        return window

    def _load(self) -> None:
        windows = self._store.windows()
        self._stale = False
        for window in windows:
            known = self._windows.get((window.account, window.name))
            if known is None or known.seen_us <= window.seen_us:
                self._add(window)

    def _add(self, window: RateWindow) -> None:
        self._windows[window.account, window.name] = window
        self._latest_us = max(self._latest_us, window.resets_us + int(RATE_JITTER_S * US))
