"""Whose file it is: ours however old, an edit, torn by a power cut, gone, or nothing that can be read."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_orchestrator.core.printed import Identity
from agent_orchestrator.core.system import Document
from agent_orchestrator.projections.inspection import PrintoutState, inspect
from agent_orchestrator.projections.writer import encode_document, put_in_place, write_draft


def printed(home: Path, number: int = 1) -> Identity:
    document = Document(path="state.json", body={"number": number})
    draft = write_draft(home, document, encode_document(document), first=True)
    put_in_place(draft)
    return draft.printed.identity


def test_a_known_identity_is_ours_however_old(tmp_path: Path) -> None:
    known = [printed(tmp_path, number) for number in range(3)]
    assert inspect(tmp_path, tmp_path / "state.json", known).state is PrintoutState.OURS
    assert inspect(tmp_path, tmp_path / "state.json", known[2:]).state is PrintoutState.OURS
    assert inspect(tmp_path, tmp_path / "state.json", known[:2]).state is PrintoutState.EDITED


def test_an_old_print_out_that_somebody_copied_back_is_an_edit(tmp_path: Path) -> None:
    known = [printed(tmp_path)]
    shutil.copy2(tmp_path / "state.json", tmp_path / "checkpoint.json")
    known.append(printed(tmp_path, 2))
    shutil.copy2(tmp_path / "checkpoint.json", tmp_path / "state.json")
    found = inspect(tmp_path, tmp_path / "state.json", known)
    assert found.state is PrintoutState.EDITED
    assert found.document == {"number": 1}


def test_an_edit_in_place_is_recognised(tmp_path: Path) -> None:
    known = [printed(tmp_path)]
    with (tmp_path / "state.json").open("r+") as file:
        file.write('{"number":')
    os.utime(tmp_path / "state.json", ns=(1, 1))
    assert inspect(tmp_path, tmp_path / "state.json", known).state is not PrintoutState.OURS


def test_a_missing_file_and_a_missing_folder_are_missing(tmp_path: Path) -> None:
    assert inspect(tmp_path, tmp_path / "state.json", []).state is PrintoutState.MISSING
    assert inspect(tmp_path, tmp_path / "none" / "state.json", []).state is PrintoutState.MISSING


def test_a_shortage_says_nothing_about_a_file_and_is_no_edit(tmp_path: Path) -> None:
    known = [printed(tmp_path)]
    most, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limit))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            inspect(tmp_path, tmp_path / "state.json", known)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, limit))
    assert inspect(tmp_path, tmp_path / "state.json", known).state is PrintoutState.OURS


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b" \n\t", b"\0\n\0"])
def test_an_empty_or_blank_file_is_torn_not_edited(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_bytes(content)
    assert inspect(tmp_path, tmp_path / "state.json", []).state is PrintoutState.TORN


@pytest.mark.parametrize("content", [b'{"number": 1', b"[]", b"\xff\xfe", b'"text"', b"[" * 100_000])
def test_what_is_no_json_object_is_broken_and_said_why(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_bytes(content)
    found = inspect(tmp_path, tmp_path / "state.json", [])
    assert found.state is PrintoutState.BROKEN
    assert found.problem


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_regular_file_is_broken_and_never_waited_for(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "state.json")
    found = inspect(tmp_path, tmp_path / "state.json", [])
    assert found.state is PrintoutState.BROKEN
    assert "not a regular file" in found.problem
