"""Folders below a root that no link leads to."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_orchestrator.agents.output import read_tail
from agent_orchestrator.agents.stream import read_lines
from agent_orchestrator.agents.verdict import read_report_file
from agent_orchestrator.beneath import LinkInTheWay, open_folder, write_new, write_plainly
from agent_orchestrator.bounded import open_launched, read_bounded, store_of
from agent_orchestrator.core.failure import Failure
from agent_orchestrator.engine.files import write_whole
from agent_orchestrator.engine.redact import Redactor


def test_folders_are_made_on_the_way_and_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to("real")
    write_plainly(tmp_path / "root", tmp_path / "root" / "a" / "b" / "file", b"x")
    assert (tmp_path / "real" / "a" / "b" / "file").read_bytes() == b"x"
    with pytest.raises(FileNotFoundError, match="a/c"), open_folder(tmp_path, tmp_path / "real" / "a" / "c"):
        pass


@pytest.mark.parametrize("level", ["a", "a/b"])
def test_a_link_is_refused_at_every_level_below_the_root_wherever_it_leads(level: str, tmp_path: Path) -> None:
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "root" / level).rename(tmp_path / "root" / "elsewhere")
    (tmp_path / "root" / level).symlink_to(tmp_path / "root" / "elsewhere")
    for write in (write_plainly, write_whole):
        with pytest.raises(LinkInTheWay, match="through a link"):
            write(tmp_path / "root", tmp_path / "root" / "a" / "b" / "file", b"x")
    assert not list(tmp_path.rglob("file"))


def test_a_path_that_climbs_and_a_file_in_the_way_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotADirectoryError), open_folder(tmp_path, tmp_path / "file" / "x", make=True):
        pass
    with pytest.raises(LinkInTheWay), open_folder(tmp_path, tmp_path / "a" / ".." / "b", make=True):
        pass


def test_a_small_file_is_written_by_four_calls_of_the_system(tmp_path: Path) -> None:
    """Remove what was there, make, write and close: a launch writes its prompt so."""
    calls: list[str] = []

    def note(frame: object, event: str, called: object) -> None:
        if event == "c_call" and getattr(called, "__module__", None) in ("posix", "_io", "io"):
            calls.append(getattr(called, "__name__", ""))

    with open_folder(tmp_path, tmp_path) as folder:
        sys.setprofile(note)
        try:
            write_new(folder, "file", b"x")
        finally:
            sys.setprofile(None)
    assert calls == ["unlink", "open", "write", "close"]


@pytest.mark.parametrize("content", [b"", b"x" * 3_000_000, (b"one", b"", b"two"), ()])
@pytest.mark.parametrize("sync", [False, True])
def test_a_file_has_all_that_was_given_in_one_part_or_many(
    content: bytes | tuple[bytes, ...], sync: bool, tmp_path: Path
) -> None:
    with open_folder(tmp_path, tmp_path) as folder:
        write_new(folder, "file", content, sync=sync)
    assert (tmp_path / "file").read_bytes() == b"".join((content,) if isinstance(content, bytes) else content)


def test_a_link_or_a_pipe_in_the_place_of_a_file_is_replaced(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "link").symlink_to(victim)
    os.mkfifo(tmp_path / "pipe")
    with open_folder(tmp_path, tmp_path) as folder:
        write_new(folder, "link", b"x")
        write_new(folder, "pipe", b"x")
    assert (victim.read_text(), (tmp_path / "link").read_bytes(), (tmp_path / "pipe").read_bytes()) == ("precious", b"x", b"x")


@pytest.mark.parametrize("level", [".", "run", "run/launch", "run/launch/out"])
def test_nothing_of_a_launch_is_read_or_rewritten_through_a_link_at_any_level(level: str, tmp_path: Path) -> None:
    file = tmp_path / "launches" / "run" / "launch" / "out"
    file.parent.mkdir(parents=True)
    file.write_text("hunter22")
    (tmp_path / "launches" / level).rename(tmp_path / "elsewhere")
    (tmp_path / "launches" / level).symlink_to(tmp_path / "elsewhere")
    readers: list[Callable[[Path], object]] = [
        *(open_launched, read_tail, lambda path: list(read_lines(path))),
        lambda path: read_bounded(path, 100, root=store_of(path.parent)),
    ]
    for read in readers:
        with pytest.raises(LinkInTheWay, match="through a link"):
            read(file)
    assert isinstance(read_report_file(file), Failure)
    assert not Redactor(["hunter22"]).redact_file(file)
    assert file.read_text() == "hunter22"
