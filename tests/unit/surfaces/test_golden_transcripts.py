"""The output of real clients, as `orc logs` shows it at 80 columns: golden files in `transcripts/`.

`ORC_REWRITE=1 pytest tests/unit/surfaces/test_golden_transcripts.py` writes them anew; the diff is what to review.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agent_orchestrator.agents.transcript import Item, TranscriptReader
from agent_orchestrator.surfaces.transcript import TranscriptText, cells_of

HERE = Path(__file__).parent
CAPTURES = HERE.parent / "agents" / "data"
GOLDEN = HERE / "transcripts"

SHOWN = {
    "claude": (
        *("write-streamjson", "budget", "denied", "outside", "e429x2-recover", "e429", "e403", "limit-5h", "mcp", "schema"),
        *("SIGINT", "SIGTERM-tool", "streamin", "resume", "hangmid-default"),
    ),
    "codex": ("write-json", "applypatch", "readonly", "e429", "quota", "toolong", "SIGTERM-tool", "resume", "broken-sandbox"),
    "gemini": ("write", "loop", "maxturns", "e429-max2", "e401", "truncated"),
    "opencode": ("write", "noauto", "e429", "e401", "malformed", "resume"),
}
CASES = [(client, name) for client, names in SHOWN.items() for name in names]


def items_of(client: str, name: str) -> list[Item]:
    capture = json.loads((CAPTURES / f"{client}.json").read_text("utf-8"))[name]
    reader = TranscriptReader()
    items = [item for line in capture["out"] for item in reader.read(line.encode())]
    items += [item for line in capture["err"].splitlines() for item in reader.read_log(line.encode())]
    return [*items, *reader.close(ended=True)]


def show(items: list[Item], width: int) -> str:
    text = TranscriptText(width, wrap=True)
    return "".join("".join(span.text for span in line) + "\n" for item in items for line in text.lines(item))


@pytest.mark.parametrize(("client", "name"), CASES)
def test_a_recorded_run_is_shown_as_its_golden_file_says(client: str, name: str) -> None:
    shown, file = show(items_of(client, name), 80), GOLDEN / f"{client}-{name}.txt"
    if os.environ.get("ORC_REWRITE"):
        file.write_text(shown, "utf-8")
    assert shown == file.read_text("utf-8")


def test_every_golden_file_is_shown() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == {f"{client}-{name}" for client, name in CASES}


@pytest.mark.parametrize("width", [40, 80, 140])
@pytest.mark.parametrize("client", SHOWN)
def test_every_recorded_run_fits_the_terminal(client: str, width: int) -> None:
    for name in json.loads((CAPTURES / f"{client}.json").read_text("utf-8")):
        lines = show(items_of(client, name), width).splitlines()
        wide = [line for line in lines if cells_of(line) > width and " " in line.strip()]
        assert wide == [], name
