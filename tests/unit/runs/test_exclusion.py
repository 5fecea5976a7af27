"""Lines that hide files of a run from git: those of files that stay are kept, and finding them costs what there is, once."""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.runs.exclusion import find_standing
from tests.counting import count_calls


def lines_of(bead: int) -> list[str]:
    return [f"state/runs/bd-{bead}.json", f"state/attempts/bd-{bead}.[0-9]*.run.json"]


def test_a_line_stands_while_something_that_it_names_is_there(tmp_path: Path) -> None:
    (tmp_path / "state" / "runs" / "bd-2.json").mkdir(parents=True)
    (tmp_path / "state" / "attempts").mkdir()
    (tmp_path / "state" / "attempts" / "bd-1.12.run.json").touch()
    (tmp_path / "state" / "attempts" / "bd-2.x.run.json").touch()
    (tmp_path / "mine").mkdir()
    (tmp_path / "file").touch()
    patterns = [*lines_of(1), *lines_of(2), "mine/", "file/", "gone/deep/", "file/below", "*.md"]
    assert find_standing(tmp_path, patterns) == {"state/attempts/bd-1.[0-9]*.run.json", "state/runs/bd-2.json", "mine/"}


def test_each_folder_is_looked_into_once_and_each_file_compared_with_its_own_lines(tmp_path: Path) -> None:
    (tmp_path / "state" / "runs").mkdir(parents=True)
    (tmp_path / "state" / "attempts").mkdir()

    def calls(beads: int) -> int:
        for bead in range(beads):
            (tmp_path / "state" / "attempts" / f"bd-{bead:03}.1.run.json").touch()
        patterns = [line.replace(f"bd-{bead}", f"bd-{bead:03}") for bead in range(beads) for line in lines_of(bead)]
        assert len(find_standing(tmp_path, patterns)) == beads
        counted = count_calls(lambda: find_standing(tmp_path, patterns))
        assert counted["scandir"] == 2
        return counted.total()

    calls(10)  # What is compiled at the first time is kept.
    few, many = calls(10), calls(200)
    assert many < 21 * few
