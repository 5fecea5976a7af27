"""Print-outs are written beside their place, known by identity, and put in place whole."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent_orchestrator.core.files import DRAFT
from agent_orchestrator.core.system import Document
from agent_orchestrator.errors import Unavailable
from agent_orchestrator.projections.inspection import find_known
from agent_orchestrator.projections.writer import (
    Draft,
    append_lines,
    discard_draft,
    encode_document,
    put_in_place,
    sweep_drafts,
    write_draft,
)

DOCUMENT = Document(path=".agents/runs/one/state.json", body={"b": 1, "a": {"ä": []}})


def draft(home: Path, document: Document = DOCUMENT, *, first: bool = True) -> Draft:
    return write_draft(home, document, encode_document(document), first=first)


def test_json_has_two_spaces_the_order_of_the_keys_and_a_final_newline() -> None:
    assert encode_document(DOCUMENT).decode() == '{\n  "b": 1,\n  "a": {\n    "ä": []\n  }\n}\n'
    assert encode_document(Document(path="notes.md", body="as it is")) == b"as it is"


def test_a_draft_is_beside_its_place_until_it_is_put_there(tmp_path: Path) -> None:
    made = draft(tmp_path)
    assert not made.target.exists()
    assert made.temporary.parent == made.target.parent
    assert put_in_place(made)
    assert made.target.read_bytes() == encode_document(DOCUMENT)
    assert not made.temporary.exists()


def test_the_identity_taken_from_the_draft_is_that_of_the_file_in_place(tmp_path: Path) -> None:
    made = draft(tmp_path)
    put_in_place(made)
    assert find_known(tmp_path, made.target, [made.printed.identity])
    made.target.write_bytes(made.target.read_bytes())
    assert not find_known(tmp_path, made.target, [made.printed.identity]), (
        "written again by somebody else, even with the same words"
    )


def test_the_first_print_out_and_files_that_are_never_rewritten_are_durable(tmp_path: Path) -> None:
    once = Document(path="record.json", body={}, once=True)
    kinds = [draft(tmp_path).durable, draft(tmp_path, first=False).durable, draft(tmp_path, once, first=False).durable]
    assert kinds == [True, False, True]


def test_a_folder_that_was_cleaned_away_is_made_again(tmp_path: Path) -> None:
    put_in_place(draft(tmp_path))
    shutil.rmtree(tmp_path / ".agents")
    again = draft(tmp_path, first=False)
    assert put_in_place(again)
    assert again.target.exists()


def test_a_draft_that_was_cleaned_away_is_not_in_place(tmp_path: Path) -> None:
    made = draft(tmp_path)
    made.temporary.unlink()
    assert not put_in_place(made)


def test_drafts_never_share_a_name_and_dead_ones_are_swept(tmp_path: Path) -> None:
    first, second = draft(tmp_path), draft(tmp_path)
    assert first.temporary != second.temporary
    assert first.temporary.name.endswith(DRAFT)
    put_in_place(first)
    sweep_drafts(tmp_path, [first.target])
    assert [file.name for file in first.target.parent.iterdir()] == ["state.json"]


def test_a_link_that_leads_out_of_the_repository_is_not_followed(tmp_path: Path) -> None:
    home, outside = tmp_path / "repo", tmp_path / "outside"
    home.mkdir()
    outside.mkdir()
    (home / ".agents").symlink_to(outside)
    with pytest.raises(Unavailable, match="through a link"):
        draft(home)


@pytest.mark.parametrize("level", [".agents", ".agents/runs", ".agents/runs/one"])
def test_a_link_planted_between_two_writes_is_not_followed(level: str, tmp_path: Path) -> None:
    home, outside = tmp_path / "repo", tmp_path / "outside"
    home.mkdir()
    made = draft(home)
    assert put_in_place(made)
    waiting = draft(home, first=False)
    (home / level).rename(outside)
    (home / level).symlink_to(outside)
    before = {path: path.stat().st_mtime_ns for path in outside.rglob("*")}
    for act in (lambda: draft(home, first=False), lambda: put_in_place(waiting), lambda: append_lines(home, DOCUMENT)):
        with pytest.raises(Unavailable, match="through a link"):
            act()
    discard_draft(waiting)
    sweep_drafts(home, [made.target])
    assert {path: path.stat().st_mtime_ns for path in outside.rglob("*")} == before


def test_a_link_in_the_place_of_a_file_is_replaced_and_what_it_names_left_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".agents" / "runs" / "one").mkdir(parents=True)
    (tmp_path / DOCUMENT.path).symlink_to(victim)
    assert put_in_place(draft(tmp_path))
    assert victim.read_text() == "precious"
    assert not (tmp_path / DOCUMENT.path).is_symlink()


def test_lines_are_added_where_they_are_missing_and_what_others_wrote_stays(tmp_path: Path) -> None:
    target = tmp_path / "log" / "lines.jsonl"
    document = Document(path="log/lines.jsonl", body=b"one\ntwo\ntwo\n", append=True)
    append_lines(tmp_path, document)
    append_lines(tmp_path, document)
    assert target.read_text() == "one\ntwo\ntwo\n"
    target.write_text("theirs\ntwo")
    append_lines(tmp_path, document)
    assert target.read_text() == "theirs\ntwo\none\ntwo\n"
