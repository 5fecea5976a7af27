"""Units and launches as commands show them, whatever the system: a table of units, the programs that ran, what checks showed.

A state that can be shown has `steps` (unit → UnitView, or a struct of its own with these fields) and `specs` (unit → what
it needs). Nothing here is ever stored.
"""

from __future__ import annotations

import msgspec


class UnitView(msgspec.Struct, frozen=True):
    """One unit: a task, a group, a bead, a loop."""

    status: str
    attempts: int
    iteration_count: int
    started_at: str | None
    ended_at: str | None
    last_error: str | None


class UnitNeeds(msgspec.Struct, frozen=True):
    """What a unit waits for."""

    needs: tuple[str, ...] = ()


class Launch(msgspec.Struct, omit_defaults=True, gc=False):
    """One program that ran for a unit."""

    effect: str
    started_us: int
    ended_us: int | None = None
    exit_code: int | None = None
    failure: str | None = None
    session: str | None = None


class Evidence(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one check showed."""

    effect: str
    command: str
    exit_code: int | None
    failure: str | None
    started_us: int
    duration_s: float
    tail: str
    tree: str | None
    void: bool
