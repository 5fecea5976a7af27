"""The measurements: parts run at a tiny size without peers, and the page is made of their figures. Nothing is timed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from benchmarks import page, results
from benchmarks.bench import Bench
from benchmarks.entrants import FLOOR, Entrant
from benchmarks.measure import Bar, Curve, Plot, Row, not_measured, of_rounds
from benchmarks.plan import PARTS
from benchmarks.plot import draw
from benchmarks.subject import ROOT

TINY = 0.001
QUICK = ("steps", "many", "resume", "handover", "live", "bytes", "systems", "web")
"""`growth` and `fsyncs` are made of the same pieces; `commands`, `starts` and `report` start or write too much for a test."""


@pytest.mark.parametrize("name", QUICK)
def test_a_part_runs_at_a_tiny_size(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORC_STORE", raising=False)
    bench = Bench(tmp_path, peers=False, scale=TINY, budget_s=1, missing={})
    figures = list(PARTS[name].measure(bench))
    rows = [figure for figure in figures if isinstance(figure, Row)]
    assert rows
    assert [row for row in rows if row.value is None] == []
    for figure in figures:
        if isinstance(figure, Plot):
            ElementTree.fromstring(draw(figure))


def test_a_peer_that_does_not_start_is_left_out_and_the_reason_is_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path, peers=True, scale=TINY, budget_s=1, missing={})
    absent = Entrant(name="absent", title="Absent", module="benchmarks.floor", environment="nobody-installed-this")
    with bench.opened([FLOOR, absent]) as subjects:
        assert list(subjects) == ["floor"]
        assert len(subjects["floor"].ask("steps", count=3)) == 3
    assert bench.failures == {"absent": "it could not be started: No such file or directory"}


def test_the_parts_of_a_day_are_kept_together_and_one_that_fails_takes_nothing_along(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    told = results.PartResult(at="2026-01-01T00:00:00+00:00", took_s=1.0, load=(0.0, 0.0), rows=[Row(what="kept", value=1.0)])
    machine, versions = results.machine(), results.versions()
    results.keep(
        kept,
        results.Results(date="2026-01-01", machine=machine, versions=versions, command="x", peers=False, parts={"many": told}),
    )
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "--peers",
        "none",
        "--scale",
        str(TINY),
        "--results",
        str(kept),
        "--only",
        "steps",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    known = json.loads(kept.read_text())
    assert list(known["parts"]) == ["steps", "many"]
    assert known["parts"]["many"]["rows"] == [{"what": "kept", "value": 1.0}]
    assert "orc: a durable step in a chain" in done.stdout


def test_an_unknown_part_is_refused_by_name() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--only", "stepps"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "there is no part stepps; there are steps, growth" in done.stderr


def test_the_page_says_what_was_met_missed_and_not_measured() -> None:
    rows = [
        of_rounds("ours", [1.1, 1.2, 1.4], target=1.5, why="not said when met"),
        of_rounds("slow", [9.0], target=2.5, at_least=False, why="it is slow"),
        of_rounds("fast", [9.0], target=2.5, at_least=True),
        Row(what="cut short", value=1.0, target=1.3, broken=True, why="it did not end"),
        not_measured("a peer", "could not be installed: no | network"),
    ]
    part = results.PartResult(at="2026-01-01T00:00:00+00:00", took_s=61.0, load=(0.5, 2.25), rows=rows, failed="OSError: gone")
    known = results.Results(
        date="2026-01-01",
        machine={"processors": "2"},
        versions={"orc": "1"},
        command="make bench",
        peers=True,
        parts={"steps": part},
    )
    text = page.make_text(known, ROOT / "benchmarks" / "results" / "2026-01-01.json")
    assert "Of 4 targets 2 were met and **2 missed**." in text
    assert "| ours | 1.20 × | 1.10–1.40 (3) | ≤ 1.5 × | met |" in text
    assert "| slow | 9.00 × | 1 round | ≤ 2.5 × | **missed**: it is slow |" in text
    assert "| fast | 9.00 × | 1 round | ≥ 2.5 × | met |" in text
    assert "| cut short | 1.00 × | 1 round | ≤ 1.3 × | **missed**: it did not end |" in text
    assert "| a peer | – |  |  | not measured: could not be installed: no \\| network |" in text
    assert "**This part ended early**: OSError: gone" in text
    assert "61 s; load average 0.5 before, 2.25 after" in text
    assert "busy" not in text
    crowded = msgspec.structs.replace(known, parts={"steps": msgspec.structs.replace(part, load=(7.0, 7.0))})
    assert "**The machine was busy with other work** during `steps`" in page.make_text(crowded, ROOT / "results.json")


def test_figures_of_different_machines_are_never_mixed_and_stand_side_by_side(tmp_path: Path) -> None:
    def measured(machine: dict[str, str], value: float, what: str = "a step") -> results.Results:
        rows = [of_rounds(what, [value], target=1.5), of_rounds("met everywhere", [1.0], target=1.5)]
        part = results.PartResult(at="2026-01-01T00:00:00+00:00", took_s=1.0, load=(0.0, 0.0), rows=rows)
        return results.Results(
            date="2026-01-01", machine=machine, versions={"orc": "1"}, command="make bench", peers=True, parts={"steps": part}
        )

    here, there = results.machine(), {"processors": "4 × quick"}
    results.keep(tmp_path / "2026-01-01.json", measured(there, 1.4))
    assert results.place("2026-01-01", peers=True, folder=tmp_path).name == "2026-01-01-2.json"
    results.keep(tmp_path / "2026-01-01-2.json", measured(here, 1.9))
    results.keep(tmp_path / "2026-01-01-alone.json", measured({"processors": "1 × alone"}, 9.0))
    assert results.place("2026-01-01", peers=True, folder=tmp_path).name == "2026-01-01-2.json"
    newest = results.newest(tmp_path)
    assert newest is not None
    assert newest.name == "2026-01-01-2.json"
    known = results.read(newest)
    assert known is not None
    others = results.elsewhere(known, tmp_path)
    assert [other.machine for other in others] == [there]
    text = page.make_text(known, newest, others)
    assert f"| measured | target | {here['processors']}, 2026-01-01 | 4 × quick, 2026-01-01 |" in text
    assert "| a step | ≤ 1.5 × | 1.90 × **missed** | 1.40 × |" in text
    assert "| met everywhere | ≤ 1.5 × |" not in text
    assert page.make_text(known, newest, [measured(there, 1.4, "another name")]).endswith("| 1.90 × **missed** |  |\n")


def test_a_plot_is_a_document_with_every_name_in_it() -> None:
    bars = [Bar(name="a < b", value=2.0, low=1.0, high=3.0, ours=True), Bar(name="c", value=4.0, low=4.0, high=4.0)]
    curves = [Curve(name="x & y", points=[(1, 0.5), (1000, 20.0)]), Curve(name="flat", points=[(1, 1.0)])]
    drawn = (
        draw(Plot(name="p", title="Bars", y="times", bars=bars, target=2.5)),
        draw(Plot(name="q", title="Lines", y="ms", curves=curves)),
    )
    texts = [
        ["".join(node.itertext()) for node in ElementTree.fromstring(one).iter("{http://www.w3.org/2000/svg}text")]
        for one in drawn
    ]
    assert {"Bars", "a < b", "c"} <= set(texts[0])
    assert {"Lines", "x & y", "flat", "1,000"} <= set(texts[1])
