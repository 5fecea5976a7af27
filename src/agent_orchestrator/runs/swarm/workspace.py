"""The files of a swarm workspace that are no records: schemas, their description, and the seed's scripts.

What stands there already is left alone unless it is asked to be written again.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from agent_orchestrator.bounded import read_bounded
from agent_orchestrator.engine.files import write_whole
from agent_orchestrator.systems.swarm.schema import RESULT, RUN
from agent_orchestrator.systems.swarm.schema.page import PAGE

SCHEMAS = {"state/schemas/run.schema.json": RUN, "state/schemas/result.schema.json": RESULT}

_SCRIPT = """\
#!/bin/sh
# {about}
# A thin caller: flags and exit codes are those of `orc swarm {command}`.
workspace=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd) || exit
exec orc swarm {command} --workspace "$workspace" "$@"
"""

SCRIPTS = {
    "scripts/dispatch.sh": ("dispatch", "Dispatches a bead: dispatch.sh BEAD REPO AGENT[:MODEL] PROMPT [TEMPLATE]"),
    "scripts/validate-state.sh": ("validate", "Validates records: validate-state.sh --runs|--results|--all [PATH] [--fix]"),
    "scripts/analyze-runs.sh": ("analyze", "Reports on all runs: analyze-runs.sh [--json] [--since DATE]"),
}


def write_schemas(home: Path, *, again: bool = False) -> list[str]:
    """Writes SCHEMA.md and the schemas where they are missing; answers with the paths written."""
    return _write(home, _schemas(), again=again)


def _schemas() -> dict[str, bytes]:
    files = {path: msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n" for path, schema in SCHEMAS.items()}
    return {"state/SCHEMA.md": PAGE.encode(), **files}


def hidden_schemas(home: Path) -> list[str]:
    """Which of these files stand there as we write them: a person's own are not ours to hide."""
    return [path for path, content in _schemas().items() if _reads(home, home / path, content)]


def _reads(home: Path, file: Path, content: bytes) -> bool:
    try:
        return read_bounded(file, len(content), root=home) == content
    except OSError:
        return False


def write_scripts(home: Path, *, again: bool = False) -> list[str]:
    """Writes the scripts where they are missing; answers with the paths written."""
    files = {path: _SCRIPT.format(command=name, about=about).encode() for path, (name, about) in SCRIPTS.items()}
    written = _write(home, files, again=again)
    for path in written:
        (home / path).chmod(0o755)
    return written


def _write(home: Path, files: dict[str, bytes], *, again: bool) -> list[str]:
    written = []
    for path, content in files.items():
        target = home / path
        if again or not target.exists():
            write_whole(home, target, content)
            written.append(path)
    return written
