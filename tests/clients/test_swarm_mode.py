"""A swarm with real clients: five beads that depend on one another, one retried, the orchestrator killed, all merged."""

from __future__ import annotations

import json

import pytest

from agent_orchestrator.testing.model_cast import Part
from agent_orchestrator.testing.model_server import Held, Reply, Write
from tests.clients.modes import CLIENTS, ModeRig

NEEDS = {"model": (), "store": ("model",), "views": ("model",), "tests": ("store", "views"), "docs": ()}
BEADS = [
    {
        "id": f"bd-{name}",
        "prompt": f"write the {name}",
        "depends_on": [f"bd-{one}" for one in needs],
        "verify": f"test -s {name}.txt",
    }
    for name, needs in NEEDS.items()
]
DONE = Reply({"status": "DONE", "summary": "It is written"})


def parts() -> list[Part]:
    """The second attempt of the store is only for a prompt that says how the first one failed."""
    files = {name: "stoer.txt" if name == "store" else f"{name}.txt" for name in NEEDS}
    again = ("It is bead bd-store, attempt 2", "`test -s store.txt` exited with code 1")
    return [
        *(Part(name, f"It is bead bd-{name}, attempt 1", script=[Write(file, "right"), DONE]) for name, file in files.items()),
        Part("store again", *again, script=[Write("store.txt", "right"), Held(DONE)]),
    ]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_swarm_from_start_to_merged(client: str, mode: ModeRig) -> None:
    cast = mode.begin(client, *parts(), files={"beads.jsonl": "".join(json.dumps(bead) + "\n" for bead in BEADS)})
    options = ("--agent", client, "--max-agents", "2", "--branch", "swarm")
    run = mode.kill_in(cast, ["store again"], "swarm", "run", "beads.jsonl", *options).split()[1]
    said = mode.orc("resume")
    assert f"run {run} completed: 5/5 beads" in said
    assert "work: 5 branches not merged yet" in said
    assert f"orc merge {run}   " in said
    assert "5 of 5 merged into main" in mode.orc("swarm", "merge", run, "--check", "! test -e broken.txt")
    mode.check_books(cast, run)
    began = {name: cast.played.index(name) for name in cast.played}
    assert began["model"] < began["store"] < began["store again"] < began["tests"] > began["views"] > began["model"]
    results = {name: mode.document(f"state/results/bd-{name}.json") for name in NEEDS}
    assert {name: (found["status"], found["attempt"]) for name, found in results.items()} == {
        name: ("done", 2 if name == "store" else 1) for name in NEEDS
    }
    assert {found["output_summary"] for found in results.values()} == {"It is written"}
    first = mode.document("state/attempts/bd-store.1.run.json")
    assert (first["status"], first["failure_reason"]) == ("failed", "verification-failed")
    merged = mode.git("ls-tree", "--name-only", "HEAD").split()
    assert {f"{name}.txt" for name in NEEDS} < set(merged)
    merges = mode.git("log", "--merges", "--format=%s").splitlines()
    begun = ["Merge swarm/bd-views: swarm/bd-tests begins with it"]  # it has the store already
    assert sorted(merges) == sorted([*begun, *(f"Merge swarm/bd-{name}: It is written" for name in NEEDS)])
    assert mode.git("status", "--short") == ""
