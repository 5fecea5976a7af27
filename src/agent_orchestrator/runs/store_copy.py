"""Copies the runs of one store to another: from the repository's own file to a server, or back.

A run that has not ended goes on in one place only: once its copy is checked, the source keeps its journal under another id,
which can be read and never resumed. Whoever repeats a copy that was cut off finds what is there already and goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from agent_orchestrator.config.store_address import STORE_VARIABLE, check_store_url
from agent_orchestrator.core.ids import RunId, unit_of
from agent_orchestrator.core.printed import Printed
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Context
from agent_orchestrator.engine.journal import fold
from agent_orchestrator.errors import Refused, RunBusy
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.stores import keep_name
from agent_orchestrator.store.port import Append, NewRun, StoredRun, StoredUsage, UsageRow
from agent_orchestrator.systems import find_system

PRUNED_SYSTEM = "pruned"


class CopiedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that stands in both stores now."""

    run: RunId
    rows: int
    was_there: bool
    kept_as: str | None = None
    """The id under which the source keeps the journal of a run that goes on in the target."""


def open_target(source: Orchestrator, url: str) -> Orchestrator:
    """Return the runs of the same repository in another store; raise Refused if it is the same one."""
    check_store_url(url, "URL")
    settings = msgspec.structs.replace(source.settings, environ={**source.settings.environ, STORE_VARIABLE: url})
    target = Orchestrator(settings=settings, say=source.say)
    if target.address == source.address:
        raise Refused(why=f"The runs are in {_say(source)} already; name another store, or the source with --store.")
    return target


def copy_store(source: Orchestrator, target: Orchestrator) -> Iterator[CopiedRun]:
    """Copy what the runs have spent and the runs themselves, oldest first, each checked before the next one is begun."""
    runs = sorted(source.runs(), key=lambda run: (run.id == run.context.run, run.context.created_us))
    for run in runs:
        _refuse_active(source, run)
    _copy_pruned(source, target)
    keep_name(target.settings, target.address)
    for run in runs:
        yield _copy_run(source, target, run)
    if runs and (windows := tuple(source.store.windows())):
        _append(target, runs[-1].id, [Append(run=runs[-1].id, expected_seq=0, at_us=source.clock.now_us(), windows=windows)])


def _refuse_active(source: Orchestrator, run: StoredRun) -> None:
    if (owner := source.owner(run)) is not None:
        raise RunBusy(run=run.id, owner=owner)
    if run.id == run.context.run and (living := source.launches().living(run.id)):
        names = ", ".join(unit_of(effect) for effect in living)
        raise Refused(why=f"Agents of run {run.id} are at work ({names}); stop them with `orc pause --now {run.id}` first.")


def _copy_run(source: Orchestrator, target: Orchestrator, run: StoredRun) -> CopiedRun:
    owned = source.own(run.id)
    try:
        was_there = _find_copy(source, target, run)
        if not was_there:
            _write(source, target, run)
        if target.owner(run) is None:  # else the copy goes on already, and was whole
            _write_rest(source, target, run)
        rows = _check(source, target, run)
        kept_as = None if run.summary.ended else _keep_aside(source, target, run)
    finally:
        owned.release()
    return CopiedRun(run=run.id, rows=rows, was_there=was_there, kept_as=kept_as)


def _find_copy(source: Orchestrator, target: Orchestrator, run: StoredRun) -> bool:
    """Tell whether the run is in the target; raise Refused for another run of its id."""
    if target.store.run(run.id) is None:
        return False
    rows = source.store.rows(run.id)
    if target.store.rows(run.id)[: len(rows)] != rows:
        raise Refused(why=f"There is another run {run.id} in {_say(target)}; nothing was copied over it.")
    return True


def _write(source: Orchestrator, target: Orchestrator, run: StoredRun) -> None:
    store = source.store
    *copied, (seq, at_us, body) = store.rows(run.id)
    new = NewRun(system=run.system, name=run.name, context=run.context, spec=store.spec(run.id), summary=run.summary)
    first = Append(run=run.id, expected_seq=seq - 1, at_us=at_us, body=body, summary=run.summary)
    target.store.create(new, first, copied)


def _write_rest(source: Orchestrator, target: Orchestrator, run: StoredRun) -> None:
    """Write what stands beside the journal; what is there already counts once."""
    store = source.store
    seq, at_us, _ = store.rows(run.id)[-1]
    known = target.store.printed(run.id)
    several = ((path, one) for path, some in store.printed(run.id).items() if path not in known for one in some)
    printed = tuple(Printed(path=path, identity=one) for path, one in several)
    parts = [Append(run=run.id, expected_seq=seq, at_us=at_us, printed=printed)] if printed else []
    _append(target, run.id, [*parts, *_usage_parts(run.id, store.usage(run.id))])
    for directive, said in store.inbox(run.id):
        _post(target, run.id, directive, said, at_us)


def _post(target: Orchestrator, run: RunId, directive: str, said: bytes, at_us: int) -> None:
    """Put what somebody said into the inbox, once; its id may be taken by a journal that was kept aside on the way here."""
    name, number = directive, 0
    while not target.store.post(run, name, said, at_us) and target.store.posted(run, name) is None:
        number += 1
        name = f"{directive}~{number}"


def _append(target: Orchestrator, run: RunId, parts: Sequence[Append]) -> None:
    """Append what is no event: nobody else may drive the run meanwhile."""
    if not parts:
        return
    owned = target.own(run)
    try:
        for answer in target.store.append(parts):
            if answer is not None:
                raise answer
    finally:
        owned.release()


def _usage_parts(run: RunId, lines: Sequence[StoredUsage]) -> Iterator[Append]:
    """Yield the lines of the ledger, each with its own time."""
    counts: dict[str, int] = {}
    for at_us, some in groupby(sorted(lines, key=lambda line: line.at_us), key=lambda line: line.at_us):
        rows = []
        for line in some:
            offset = counts.get(line.effect, 0)
            counts[line.effect] = offset + 1
            rows.append(UsageRow(effect=line.effect, unit=line.unit, agent=line.agent, usage=line.usage, offset=offset))
        yield Append(run=run, expected_seq=0, at_us=at_us, usage=tuple(rows))


def _copy_pruned(source: Orchestrator, target: Orchestrator) -> None:
    """Copy what runs have spent that are gone: a run is made for the lines, and deleted."""
    known = {(line.run, line.effect, line.at_us) for line in target.store.usage() if line.pruned}
    gone = [line for line in source.store.usage() if line.pruned and (line.run, line.effect, line.at_us) not in known]
    for run, some in groupby(sorted(gone, key=lambda line: line.run), key=lambda line: line.run):
        lines = list(some)
        if target.store.run(run) is not None:
            raise Refused(why=f"What a pruned run {run} has spent cannot be copied: {_say(target)} has a run of that id.")
        home, at_us = str(source.settings.home), lines[0].at_us
        summary = Summary(status="completed")
        context = Context(run=run, home=home, workdir=home, created_us=at_us)
        new = NewRun(system=PRUNED_SYSTEM, name=PRUNED_SYSTEM, context=context, spec=b"{}", summary=summary)
        target.store.create(new, Append(run=run, expected_seq=0, at_us=at_us, body=b"[]", summary=summary))
        _append(target, run, list(_usage_parts(run, lines)))
        target.store.delete(run)


def _check(source: Orchestrator, target: Orchestrator, run: StoredRun) -> int:
    """Fold both journals and compare; return the number of rows. A copy that has gone on since has more of them."""
    system, copy = find_system(run.system), target.find(run.id)
    upto = source.fold(run).seq
    states = [fold(store, system, one, upto).state for store, one in ((source.store, run), (target.store, copy))]
    pictures = [msgspec.json.encode((system.summary(state), system.details(state), list(state.doing))) for state in states]
    spent = [sum(one.store.costs(run.id).values()) for one in (source, target)]
    if pictures[0] != pictures[1] or spent[0] > spent[1] + 1e-9 or source.store.spec(run.id) != target.store.spec(run.id):
        raise Refused(why=f"The copy of run {run.id} in {_say(target)} is not the same; delete it there and copy it again.")
    return upto


def _keep_aside(source: Orchestrator, target: Orchestrator, run: StoredRun) -> str:
    """Keep the source's journal of a run that goes on elsewhere under an id that nobody can resume."""
    number = 1
    while source.known(f"{run.id}~{number}") is not None:
        number += 1
    kept = RunId(f"{run.id}~{number}")
    source.store.rename(run.id, kept)
    summary = msgspec.structs.replace(run.summary, status="replaced", detail=f"continues in {_say(target)}", doing=(), asks=())
    source.store.append([Append(run=kept, expected_seq=0, at_us=source.clock.now_us(), summary=summary)])
    return kept


def _say(orchestrator: Orchestrator) -> str:
    return str(orchestrator.address or orchestrator.settings.folder)
