"""New files that are synced together: every one of them, whatever goes wrong, and nothing is left open."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from agent_orchestrator.core.system import Document
from agent_orchestrator.projections.syncs import OPEN_MAX, Syncs
from agent_orchestrator.projections.writer import encode_document, put_in_place, write_draft


def open_descriptors() -> set[str]:
    return {path.name for path in Path("/dev/fd/").iterdir() if path.exists()}


def sync_together(*descriptors: int, error: Exception | None = None) -> None:
    with Syncs() as syncs:
        for descriptor in descriptors:
            syncs.add(descriptor)
        if error is not None:
            raise error


def test_many_drafts_are_written_and_nothing_stays_open(tmp_path: Path) -> None:
    before = open_descriptors()
    documents = [Document(path=f"records/{number}.json", body={"number": number}) for number in range(3 * OPEN_MAX + 1)]
    with Syncs() as syncs:
        drafts = [write_draft(tmp_path, one, encode_document(one), first=True, syncs=syncs) for one in documents]
        assert len(open_descriptors() - before) <= OPEN_MAX
    assert open_descriptors() == before
    assert all(put_in_place(draft) for draft in drafts)
    assert len(list((tmp_path / "records").iterdir())) == len(documents)


def test_a_file_that_cannot_be_synced_is_an_error_of_the_whole(tmp_path: Path) -> None:
    before = open_descriptors()
    reader, writer = os.pipe()  # nothing that a disk could hold
    with (tmp_path / "fine").open("wb") as fine, pytest.raises(OSError, match="Invalid argument"):
        sync_together(fine.fileno(), writer)
    os.close(reader)
    os.close(writer)
    assert open_descriptors() == before


def test_an_error_inside_is_the_one_that_is_told() -> None:
    before = open_descriptors()
    reader, writer = os.pipe()
    with pytest.raises(RuntimeError, match="first"):
        sync_together(writer, error=RuntimeError("first"))
    os.close(reader)
    os.close(writer)
    assert open_descriptors() == before


def test_without_a_free_descriptor_a_file_is_synced_at_once() -> None:
    reader, writer = os.pipe()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Syncs() as syncs:
        resource.setrlimit(resource.RLIMIT_NOFILE, (writer + 1, hard))
        try:
            with pytest.raises(OSError, match="Invalid argument"):
                syncs.add(writer)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    os.close(reader)
    os.close(writer)
