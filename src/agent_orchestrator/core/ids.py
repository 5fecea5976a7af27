"""Names of runs, units and effects, checked before any of them becomes part of a path.

An effect id is `run/unit/i<iteration>.a<attempt>.l<launch>.<kind>`. The launch number counts up per unit and
is never reused, so an id names one thing for ever; it is stored in events and never computed again. A run that went
back counts its launches from that point again: `.l<launch>-<generation>.` keeps them apart from those it left behind.
"""

from __future__ import annotations

import re
from typing import NewType

from agent_orchestrator.errors import InvalidId, InvalidValue

RunId = NewType("RunId", str)
"""The id of a run that exists or is about to; what a person typed is a plain string until it is found or checked."""
UnitId = NewType("UnitId", str)
"""The name of a unit within its run: a step, task, group or bead."""
EffectId = NewType("EffectId", str)
"""The id of one effect, and of the launch that performs it."""

ID_LENGTH_MAX = 100

_GIVEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


def checked_id(value: object, what: str) -> str:
    """Returns the id unchanged, or raises InvalidId: nothing else may reach the disk as a name."""
    if not isinstance(value, str) or len(value) > ID_LENGTH_MAX or not _GIVEN.match(value):
        raise InvalidId(what=what, value=value)
    return value


def as_variable(unit: str) -> str:
    """Return a unit's name as a part of names of environment variables; several units may have the same."""
    return re.sub(r"[^A-Z0-9]", "_", unit.upper())


def checked_text(value: str, what: str) -> str:
    """Returns a text from the command line or the file system unchanged, or raises InvalidValue: bytes cannot be journaled."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidValue(what=what, value=value, expected="UTF-8, in which everything is journaled") from None
    return value


def effect_id(run: RunId, unit: UnitId, iteration: int, attempt: int, launch: int, kind: str, generation: int = 0) -> EffectId:
    """Return the id of one effect."""
    number = f"{launch}-{generation}" if generation else str(launch)
    return EffectId(f"{run}/{unit}/i{iteration}.a{attempt}.l{number}.{kind}")


def split_effect_id(effect: EffectId) -> tuple[RunId, UnitId, str]:
    """Split an effect id into its run, its unit and the name of its launch."""
    run, unit, launch = effect.split("/")
    return RunId(run), UnitId(unit), launch


def run_of(effect: EffectId) -> RunId:
    """Return the run that an effect belongs to."""
    return RunId(effect.split("/", 1)[0])


def unit_of(effect: EffectId) -> UnitId:
    """Return the unit that an effect belongs to."""
    return UnitId(effect.split("/", 2)[1])


def launch_of(effect: EffectId) -> str:
    """Return the name of an effect's launch within its unit, as in `i0.a1.l1.agent`."""
    return effect.rsplit("/", 1)[-1]


def made_anew(effect: EffectId, run: RunId, generation: int) -> EffectId:
    """Return an id of its own for what a run does about an effect that it took over by going back or being forked.

    The files beside the effect's own id belong to those who did it before.
    """
    owner, unit, launch = split_effect_id(effect)
    born = launch.partition(".l")[2].partition(".")[0].partition("-")[2]
    if owner == run and born == (str(generation) if generation else ""):
        return effect
    return EffectId(f"{run}/{unit}/{launch}.again-{generation}")


def launch_folder(effect: EffectId) -> str:
    """Return a launch's folder below that of all launches: one level deep in the run's, because each level costs a start."""
    run, unit, launch = split_effect_id(effect)
    return f"{run}/{unit}~{launch}"


def launched_in(run: RunId, folder: str) -> EffectId:
    """Return the effect whose launch has the folder of this name."""
    return EffectId(f"{run}/{folder.replace('~', '/')}")
