"""Reads the records of a workspace, from its files or from the store, one bead at a time; validates and mends the files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.analysis.records import CUSTOM, Outcome, Record, decode_record, merge_records
from agent_orchestrator.beneath import open_folder
from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.core.limits import REPORT_LIMIT_BYTES
from agent_orchestrator.core.units import US
from agent_orchestrator.engine.files import move_aside, write_whole
from agent_orchestrator.errors import UsageError
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.swarm.companions import find_owner, is_companion
from agent_orchestrator.runs.swarm.repair import list_placeholders, list_unknown_fields, repair_record
from agent_orchestrator.systems.swarm.faults import faults_of, kind_of
from agent_orchestrator.systems.swarm.records import ATTEMPTS, RESULTS, RUNS
from agent_orchestrator.systems.swarm.spec import NO_MODEL
from agent_orchestrator.systems.swarm.state import BeadStanding, SwarmState
from agent_orchestrator.systems.swarm.system import SWARM

USUAL_BYTES = 64 * 1024
"""A larger record is read with a second call; asking for the limit at once would make room for it every time."""
FOLDERS = {"run": RUNS, "result": RESULTS}
_STATUS = {
    BeadStanding.DONE: "done",
    BeadStanding.TIMEOUT: "timeout",
    BeadStanding.FAILED: "failed",
    BeadStanding.STOPPED: "failed",
}


class Unreadable(msgspec.Struct, frozen=True):
    """A file that is no record."""

    path: str
    why: str


def outcomes_of_files(home: Path, costs: dict[str, float], faults: list[Unreadable]) -> Iterator[Outcome]:
    """One outcome per bead that has a record; what cannot be read is added to the faults."""
    with _folder(home, home / RUNS, faults) as runs, _folder(home, home / RESULTS, faults) as results:
        left = set(results.names)
        for name in runs.names:
            run = _record(runs, name, faults)
            result = None
            if name in left:
                left.discard(name)
                result = _record(results, name, faults)
            outcome = merge_records(run, result, costs.get(name[:-5])) if run is not None or result is not None else None
            if outcome is not None:
                yield outcome
        for name in sorted(left):
            outcome = merge_records(None, _record(results, name, faults), costs.get(name[:-5]))
            if outcome is not None:
                yield outcome


class _Folder(NamedTuple):
    """A folder of records that is held open, and their names."""

    path: str
    descriptor: int = -1
    names: tuple[str, ...] = ()


@contextmanager
def _folder(home: Path, folder: Path, faults: list[Unreadable]) -> Iterator[_Folder]:
    """Hold a folder of records open, reached through no link."""
    with ExitStack() as opened:
        held = _Folder(str(folder))
        try:
            descriptor = opened.enter_context(open_folder(home, folder))
            with os.scandir(descriptor) as entries:
                named = [one.name for one in entries if one.name.endswith(".json") and not one.name.startswith(".")]
            held = _Folder(str(folder), descriptor, tuple(sorted(named)))
        except FileNotFoundError:
            pass
        except OSError as error:
            faults.append(Unreadable(str(folder), str(error)))
        yield held


def _record(folder: _Folder, name: str, faults: list[Unreadable]) -> Record | None:
    path = f"{folder.path}/{name}"
    try:
        # Plain calls: over 100,000 files what pathlib adds would be half of the time.
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.descriptor)
        try:
            content = os.read(descriptor, USUAL_BYTES)
            if len(content) == USUAL_BYTES:
                content += os.read(descriptor, REPORT_LIMIT_BYTES)
        finally:
            os.close(descriptor)
        record = decode_record(content)
        return None if is_companion(path, record.bead) else record
    except FileNotFoundError:
        return None  # Its next attempt began while we were looking.
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if not is_companion(path, None):
            faults.append(Unreadable(path, str(error)))
        return None


def outcomes_of_store(orchestrator: Orchestrator) -> Iterator[Outcome]:
    """The same from the journals; a page of runs at a time, so that memory stays flat however many there are."""
    home = str(orchestrator.settings.home)
    for run in orchestrator.scan(SWARM.name):
        if run.context.home != home or run.id != run.context.run:
            continue
        told = run.summary.facts.get("outcome")
        if told is not None:
            yield typed.convert(told, Outcome)
        elif not run.summary.facts.get("dispatch"):
            yield from outcomes_of_state(orchestrator.fold(run).state)


def outcomes_of_state(state: SwarmState) -> Iterator[Outcome]:
    """The beads of one run that were dispatched and are still its own."""
    for bead, held in state.beads.items():
        if held.run is None or held.released:
            continue
        spec, result = state.specs[bead], held.result
        yield Outcome(
            bead=bead,
            status=_STATUS.get(state.standing(bead), "failed" if result is not None else "running"),
            attempt=held.attempt,
            agent=spec.agent.name,
            model=spec.agent.model or NO_MODEL,
            template=spec.template or CUSTOM,
            started_s=held.started_us // US,
            duration_s=result.duration_seconds if result is not None else None,
            failure_reason=held.run.failure_reason,
            cost_usd=held.cost_usd,
        )


def costs_of(orchestrator: Orchestrator) -> dict[str, float]:
    """Return what beads cost, as far as the store knows."""
    return {one.bead: one.cost_usd for one in outcomes_of_store(orchestrator) if one.cost_usd is not None}


class Checked(msgspec.Struct, kw_only=True):
    """The findings of validation about one file."""

    path: str
    kind: str
    faults: list[str]
    warnings: list[str]
    changes: list[str] = []
    kept: str | None = None
    """The copy of what it was, when it was mended."""


def find_records(home: Path, kinds: tuple[str, ...], given: Path | None) -> list[tuple[str, Path]]:
    """The files that are meant, with their kinds: ended attempts too. A folder may be `state/` or one of those in it."""
    if given is not None and given.is_file():
        if (owner := find_owner(given)) is not None:
            raise UsageError(detail=f"{given} is no record: it says how bead {owner} was verified.")
        return [(kinds[0] if len(kinds) == 1 else kind_of(str(given.absolute())), given)]
    names = {kind: Path(folder).name for kind, folder in FOLDERS.items()}
    whole = given is None or any((given / name).is_dir() for name in names.values())
    state = given if given is not None else home / Path(RUNS).parent
    found: list[tuple[str, Path]] = []
    for kind in kinds:
        folder = state / names[kind] if whole else state
        ended = state / Path(ATTEMPTS).name if whole else state
        kept = sorted(ended.glob(f"*.{kind}.json")) if ended.name == Path(ATTEMPTS).name else []
        named = (
            [file for file in sorted(folder.glob("*.json")) if find_owner(file) is None] if folder != ended or not kept else []
        )
        named += sorted(folder.glob("attempts/*.json"))  # Version 0.1.0 kept the ended ones there.
        found += [(kind if whole or len(kinds) == 1 else kind_of(str(file.absolute())), file) for file in named]
        found += [(kind, file) for file in kept]
    if given is not None and not found:
        raise UsageError(detail=f"There is no record in {given}: give a record, or state/, or one of the folders in it.")
    return list(dict.fromkeys(found))


def check_record(kind: str, path: Path, *, fix: bool) -> Checked:
    """Validates one file; with `fix` it is brought up to the full format first, the original kept beside it."""
    checked = Checked(path=str(path), kind=kind, faults=[], warnings=[])
    document = _document(path, checked)
    if document is None:
        return checked
    checked.faults = faults_of(kind, document)
    if fix:
        mended = repair_record(kind, document, _other(kind, path))
        if mended.changes:
            checked.kept = str(_keep(path))
            write_whole(path.parent, path, msgspec.json.format(msgspec.json.encode(mended.document), indent=2) + b"\n")
            checked.changes, document = mended.changes, mended.document
            checked.faults = faults_of(kind, document)
    checked.warnings = [f"{name}: {document[name]} is a placeholder, no time" for name in list_placeholders(document)]
    checked.warnings += [f"{name}: the format has no such field" for name in list_unknown_fields(kind, document)]
    return checked


def _document(path: Path, checked: Checked) -> dict[str, Any] | None:
    try:
        document = msgspec.json.decode(read_bounded(path, REPORT_LIMIT_BYTES, root=path.parent))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        checked.faults.append(f"it is not JSON: {error}" if not isinstance(error, OSError) else f"it cannot be read: {error}")
        return None
    if not isinstance(document, dict):
        checked.faults.append("it is not a JSON object")
        return None
    return document


def _other(kind: str, path: Path) -> dict[str, Any] | None:
    """The record on the other side: `results/x.json` of `runs/x.json`."""
    silent = Checked(path="", kind=kind, faults=[], warnings=[])
    names = ("runs", "results") if kind == "run" else ("results", "runs")
    if path.absolute().parent.name == Path(ATTEMPTS).name and path.name.endswith(f".{kind}.json"):
        other = "result" if kind == "run" else "run"
        return _document(path.with_name(f"{path.name.removesuffix(f'{kind}.json')}{other}.json"), silent)
    parts = list(path.absolute().parts)
    if names[0] not in parts:
        return None
    at = len(parts) - 1 - parts[::-1].index(names[0])
    parts[at] = names[1]
    return _document(Path(*parts), silent)


def _keep(path: Path) -> Path:
    """Keeps the original as `<file>.bak`, numbered where there is one."""
    aside = move_aside(path, "bak")
    write_whole(path.parent, path, read_bounded(aside, REPORT_LIMIT_BYTES, root=aside.parent))
    return aside
