"""The state files of loops that have no journal here: found, read, shown as they are, and taken over when somebody asks.

Finding and reading change nothing. Taking one over keeps the original byte for byte: as `<file>.imported` where the loop's
own print-outs take its place, else as a copy in the loop's folder.
"""

from __future__ import annotations

import contextlib
import filecmp
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from agent_orchestrator.beneath import LinkInTheWay
from agent_orchestrator.bounded import TooLarge, read_bounded
from agent_orchestrator.core.foreign.values import snake
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.system import Context
from agent_orchestrator.engine.files import move_aside, write_whole
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.errors import InvalidDocument, LoopExists, UsageError
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.projections.inspection import EDIT_LIMIT_BYTES
from agent_orchestrator.runs.imports import TakenOver
from agent_orchestrator.runs.loop.options import command_of
from agent_orchestrator.runs.orchestrator import Beginning, Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.loop.effects import loop_directory
from agent_orchestrator.systems.loop.imports import ImportedLoop, import_state, is_idle
from agent_orchestrator.systems.loop.registry import LEGACY, REGISTRY, is_registry, loop_named_in
from agent_orchestrator.systems.loop.spec import LoopSpec
from agent_orchestrator.systems.loop.spellings import NAMES
from agent_orchestrator.systems.loop.system import LOOP
from agent_orchestrator.systems.loop.transitions import ENDED

WHAT = "loop state"
STATE = "state.json"
KEPT = "imported"


class LoopFile(msgspec.Struct, frozen=True, kw_only=True):
    """A loop that is only in a file."""

    path: Path
    taken: ImportedLoop

    @property
    def ended(self) -> bool:
        """Tell whether the loop is over, by its file."""
        return self.taken.status in ENDED


class FoundFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The loops in a folder's files, each once, and the files that cannot be read."""

    loops: tuple[LoopFile, ...]
    faults: tuple[InvalidDocument, ...]


def read_state(path: Path) -> dict[str, Any]:
    """Read a state file; raise InvalidDocument that says what is wrong with it."""
    try:
        content = read_bounded(path, EDIT_LIMIT_BYTES, root=path.parent).removeprefix(b"\xef\xbb\xbf")
        if not content.strip():
            raise InvalidDocument(path=path, what=WHAT, detail="it is empty")
        document = msgspec.json.decode(content)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidDocument(path=path, what=WHAT, detail=str(error)) from None
    if not isinstance(document, dict):
        raise InvalidDocument(path=path, what=WHAT, detail="it is not a JSON object")
    return document


def find_files(folder: Path) -> FoundFiles:
    """Find every loop in the files below `.aiwg/ralph`, known here or not; a file that says there is no loop is none."""
    found: dict[str, LoopFile] = {}
    faults: list[InvalidDocument] = []
    for path, document in _documents(folder, faults):
        if is_idle(document):
            continue
        try:
            one = LoopFile(path=path, taken=import_state(document, str(path)))
        except InvalidDocument as error:
            faults.append(error)
        else:
            found.setdefault(one.taken.name, one)
    return FoundFiles(loops=tuple(found.values()), faults=tuple(faults))


def _documents(folder: Path, faults: list[InvalidDocument]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Give the state of every loop: from its own file first, then from the registry, then the legacy file."""
    states = [*sorted(folder.glob(f"loops/*/{STATE}")), *sorted(folder.glob(f"archive/*/{STATE}"))]
    registry, legacy = folder / Path(REGISTRY).name, folder / Path(LEGACY).name
    for path in (*states, registry, legacy):
        if path.is_file():
            try:
                document = read_state(path)
            except InvalidDocument as error:
                faults.append(error)
                continue
            if path is registry:
                yield from ((path, entry) for entry in _entries(document))
            else:
                yield path, document if path is legacy else _named(document, path.parent.name)


def _named(document: dict[str, Any], folder: str) -> dict[str, Any]:
    """Return a state with an id: its own, else the name of its folder."""
    named = any(value for key, value in document.items() if snake(key) in NAMES["loop_id"])
    return document if named else {**document, "loop_id": folder}


def _entries(registry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the entries of a registry: of each list or map of loops in it."""
    for value in registry.values():
        if isinstance(value, list):
            yield from (entry for entry in value if isinstance(entry, dict))
        elif isinstance(value, dict):
            yield from (_named(entry, key) for key, entry in value.items() if isinstance(entry, dict))


def fold_file(orchestrator: Orchestrator, one: LoopFile) -> Folded:
    """Return the loop as it would be when it is taken over."""
    now_us = orchestrator.clock.now_us()
    spec, context = _spec(orchestrator, one), _context(orchestrator, one.taken.name)
    folded = Folded(LOOP, LOOP.fresh(spec, context), 0, now_us)
    folded.apply([*LOOP.begin(spec, context), *_facts(one)], now_us)
    return folded


def list_file(orchestrator: Orchestrator, one: LoopFile) -> StoredRun:
    """Return the loop as the store would list it; it is not in there."""
    state = fold_file(orchestrator, one).state
    updated_us = state.over_us if state.over_us is not None else state.started_us + max(0, state.elapsed_us(state.updated_us))
    return StoredRun(
        id=state.context.run,
        system=LOOP.name,
        name=name_of(state.spec),
        context=state.context,
        summary=LOOP.summary(state),
        updated_us=updated_us,
    )


def say_file(orchestrator: Orchestrator, one: LoopFile) -> str:
    """Return the path of a loop's file as people would write it."""
    home = orchestrator.settings.home
    return str(one.path.relative_to(home)) if one.path.is_relative_to(home) else str(one.path)


def import_file(orchestrator: Orchestrator, one: LoopFile) -> StoredRun:
    """Make a run of a loop that is only in a file; raise LoopExists."""
    home, name = orchestrator.settings.home, one.taken.name
    if (known := orchestrator.store.run(name)) is not None:
        raise LoopExists(run=known.id, status=known.summary.status)
    owner = orchestrator.own(name)
    try:
        spec = _spec(orchestrator, one)
        keep_originals(home, name)
        with _kept(home, one):
            run = orchestrator.create(LOOP, spec, name_of(spec), _context(orchestrator, name), Beginning(facts=_facts(one)))
        orchestrator.settle(run)
    finally:
        owner.release()
    orchestrator.overviews().write(LOOP, home)
    return orchestrator.find(name)


def import_path(orchestrator: Orchestrator, path: Path) -> TakenOver:
    """Make runs of a state file, or of every loop in a folder; none is dropped without a word."""
    if not path.is_dir() and path.name != Path(REGISTRY).name:
        one = LoopFile(path=path.absolute(), taken=import_state(read_state(path), str(path)))
        return _report(orchestrator, [(one, import_file(orchestrator, one))], [])
    found = find_files(path if path.is_dir() else path.parent)
    notes = [str(fault) for fault in found.faults]
    made: list[tuple[LoopFile, StoredRun]] = []
    for one in found.loops:
        try:
            made.append((one, import_file(orchestrator, one)))
        except LoopExists as error:
            notes.append(str(error))
    if not made:
        raise UsageError(detail=" ".join(notes) or f"There is no loop in {path}.")
    return _report(orchestrator, made, notes)


def _report(orchestrator: Orchestrator, made: list[tuple[LoopFile, StoredRun]], notes: list[str]) -> TakenOver:
    taken, left = [], []
    for one, run in made:
        head = f"{run.id}: " if len(made) > 1 else ""
        taken += [f"{head}{line}" for line in one.taken.taken]
        notes += [f"{head}{line}" for line in (*one.taken.notes, _judged(orchestrator, one), *_checkpoints(one))]
        left += [f"{head}{line}" for line in one.taken.left]
    return TakenOver(runs=tuple(run for _, run in made), taken=tuple(taken), notes=tuple(notes), left=tuple(left))


def _judged(orchestrator: Orchestrator, one: LoopFile) -> str:
    command = _spec(orchestrator, one).command
    return (
        f"completion_criteria: run as `{command}`" if command else "completion_criteria: words, judged by an agent and a person"
    )


def _checkpoints(one: LoopFile) -> list[str]:
    files = sorted(file.name for file in (one.path.parent / "checkpoints").glob("*") if one.path.name == STATE)
    return [f"checkpoints: {', '.join(files)} stay where they are"] if files else []


def names_loop(home: Path, name: str) -> bool:
    """Tell whether a home's current-loop.json is about this loop; one that cannot be read is about none."""
    try:
        return loop_named_in(read_bounded(home / LEGACY, EDIT_LIMIT_BYTES, root=home)) == name
    except OSError:
        return False


def keep_originals(home: Path, name: str) -> None:
    """Keep a registry.json of another tool, and a current-loop.json about this loop, before ours take their places."""
    registry, legacy = home / REGISTRY, home / LEGACY
    if names_loop(home, name):
        _keep_copy(home, legacy, legacy)
    if registry.is_file():
        try:
            if is_registry(msgspec.json.decode(read_bounded(registry, EDIT_LIMIT_BYTES, root=home))):
                return
        except TooLarge:
            move_aside(registry, KEPT, home)  # A copy of a sparse file might fill the disk.
            return
        except LinkInTheWay:
            return  # It is neither read nor written.
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        _keep_copy(home, registry, registry)


@contextlib.contextmanager
def _kept(home: Path, one: LoopFile) -> Iterator[None]:
    """Keep the original for good; put it back where it was if no run comes of it."""
    folder = home / loop_directory(one.taken.name)
    if one.path == folder / STATE:
        aside = move_aside(one.path, KEPT, home)
        try:
            yield
        except BaseException:
            aside.rename(one.path)
            raise
        return
    if one.path not in (home / LEGACY, home / REGISTRY):
        _keep_copy(home, one.path, folder / one.path.name)
    yield


def _keep_copy(home: Path, source: Path, place: Path) -> None:
    """Copy a file to `<place>.imported` below the home, numbered; once, however often it is asked for."""
    kept = sorted(place.parent.glob(f"{place.name}.{KEPT}*"))
    if any(filecmp.cmp(source, one, shallow=False) for one in kept):
        return
    target = place.with_name(f"{place.name}.{KEPT}" + (f"-{len(kept) + 1}" if kept else ""))
    write_whole(home, target, read_bounded(source, EDIT_LIMIT_BYTES, root=source.parent))


def name_of(spec: LoopSpec) -> str:
    """Return the name of a loop's run: the first line of its task."""
    return spec.task.strip().splitlines()[0][:80]


def _facts(one: LoopFile) -> tuple[Any, ...]:
    first, *rest = one.taken.facts
    return (msgspec.structs.replace(first, file=str(one.path)), *rest)


def _spec(orchestrator: Orchestrator, one: LoopFile) -> LoopSpec:
    home = orchestrator.settings.home
    command = command_of(one.taken.criteria, home)
    return msgspec.structs.replace(one.taken.spec, git=top_level(home) is not None, command=command)


def _context(orchestrator: Orchestrator, name: str) -> Context:
    home = orchestrator.settings.home
    return Context(run=RunId(name), home=str(home), workdir=str(home), created_us=orchestrator.clock.now_us())
