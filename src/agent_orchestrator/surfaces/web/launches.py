"""One launch as plain data: its facts, its prompt as it was sent, its feedback and its report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.bounded import open_launched
from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.ids import EffectId, checked_id, launch_folder, split_effect_id
from agent_orchestrator.engine.redact import Redactor
from agent_orchestrator.errors import InvalidId
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredUsage
from agent_orchestrator.surfaces.cli.streams import LAUNCH
from agent_orchestrator.surfaces.web.answers import PageFault
from agent_orchestrator.surfaces.web.watched import Moment

TEXT_BYTES_MAX = 1024 * 1024
STREAMS = ("out", "err")

_SAID_AGAIN = re.compile(r"\.again-\d+\Z")


def describe_launch(
    orchestrator: Orchestrator, moment: Moment, launch: dict[str, Any], usage: StoredUsage | None
) -> dict[str, Any]:
    """Return a launch of a unit's record with what it consumed and the sizes of what it wrote."""
    effect = EffectId(launch["effect"])
    unit = split_effect_id(effect)[1]
    folder = orchestrator.settings.folder / "launches" / launch_folder(effect)
    used = usage.usage if usage is not None else None
    wanted = moment.folded.state.doing.of(unit)
    choice = wanted.agent if isinstance(wanted, RunAgent) and wanted.id == effect else None
    return {
        "effect": effect,
        "unit": unit,
        **read_numbers(effect),
        "started_us": launch["started_us"],
        "ended_us": launch.get("ended_us"),
        "exit_code": launch.get("exit_code"),
        "failure": launch.get("failure"),
        "session": launch.get("session"),
        "running": wanted is not None and wanted.id == effect,
        "agent": usage.agent if usage is not None else choice.name if choice is not None else None,
        "model": used.model if used is not None else choice.model if choice is not None else None,
        "cost_usd": used.cost_usd if used is not None else None,
        "tokens": used.tokens if used is not None else None,
        **{f"{stream}_bytes": _size(folder / stream) for stream in STREAMS},
    }


def read_numbers(effect: EffectId) -> dict[str, Any]:
    """Return the kind of a launch, and its iteration, attempt and number where its name has them."""
    name = split_effect_id(effect)[2]
    match = LAUNCH.search(_SAID_AGAIN.sub("", name))
    if match is None:
        return {"kind": name}
    return {"kind": match[4], "iteration": int(match[1]), "attempt": int(match[2]), "launch": int(match[3])}


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def find_effect(moment: Moment, given: str) -> EffectId:
    """Return the launch of a run that an address names; raise a PageFault for anything else: it becomes a part of a path."""
    try:
        run, unit, name = split_effect_id(EffectId(given))
        checked_id(run, "The run id"), checked_id(unit, "The unit"), checked_id(name, "The launch")
    except (ValueError, InvalidId):
        raise PageFault(404, "unknown", f"There is no launch {given[:200]!r}.") from None
    if run != moment.run.context.run and given not in _inherited(moment, unit):
        raise PageFault(404, "unknown", f"Run {moment.run.id} has no launch {given!r}.")
    return EffectId(given)


def _inherited(moment: Moment, unit: str) -> list[str]:
    """Return the launches that a fork has of the run that it came from."""
    steps = moment.folded.system.details(moment.folded.state)["steps"]
    return [one["effect"] for one in steps.get(unit, {}).get("launches", ())]


def show_launch(orchestrator: Orchestrator, moment: Moment, given: str) -> dict[str, Any]:
    """Return one launch with the texts that belong to it."""
    effect = find_effect(moment, given)
    folder = orchestrator.settings.folder / "launches" / launch_folder(effect)
    if not folder.is_dir():
        raise PageFault(404, "unknown", f"Nothing is left of launch {effect}.")
    unit = split_effect_id(effect)[1]
    steps = moment.folded.system.details(moment.folded.state)["steps"]
    known = {one["effect"]: one for one in steps.get(unit, {}).get("launches", ())}
    usage = next((line for line in orchestrator.store.usage(moment.run.id) if line.effect == effect), None)
    redactor = Redactor(orchestrator.settings.secrets())
    report = _read_text(folder / "report.json", redactor)
    return {
        **describe_launch(orchestrator, moment, known.get(effect, {"effect": effect, "started_us": None}), usage),
        "folder": str(folder),
        "prompt": _read_text(folder / "prompt.md", redactor),
        "feedback": _read_text(folder / "feedback.json", redactor),
        "report": _decoded(report),
    }


def _read_text(path: Path, redactor: Redactor) -> str | None:
    """Return the beginning of a file that an agent may have written; None where there is none."""
    try:
        with open_launched(path) as file:
            return redactor.redact_bytes(file.read(TEXT_BYTES_MAX)).decode("utf-8", "replace")
    except OSError:
        return None


def _decoded(text: str | None) -> Any:
    """Return a report as data, and as text where it is none."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def find_attach(state: Any, unit: str) -> str | None:
    """Return the command that joins the terminal of the agent at work; None where it has none."""
    effect = state.doing.of(unit)
    session = effect.terminal if isinstance(effect, RunAgent) else None
    return f"tmux attach-session -t '={session}'" if session else None
