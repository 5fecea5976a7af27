"""A row of the table of runs as the run that it stands for."""

from __future__ import annotations

import apsw

from agent_orchestrator import typed
from agent_orchestrator.core.summary import Summary
from agent_orchestrator.core.system import Context
from agent_orchestrator.store.port import StoredRun

_summary = typed.decoder(Summary)
_context = typed.decoder(Context)


def read_run(row: tuple[apsw.SQLiteValue, ...]) -> StoredRun:
    """Return the run of a row."""
    run, system, name, context, summary, updated_us = row
    return StoredRun(
        id=run,  # type: ignore[arg-type]
        system=system,  # type: ignore[arg-type]
        name=name,  # type: ignore[arg-type]
        context=_context(context),  # type: ignore[arg-type]
        summary=_summary(summary),  # type: ignore[arg-type]
        updated_us=updated_us,  # type: ignore[arg-type]
    )
