"""The page of a clone over a shared store: a queued run is looked at and merged from it as any other."""

from __future__ import annotations

import pytest

from tests.cluster.rig import Clone, Farm
from tests.web.page import PageSession
from tests.web.server import Server
from tests.web.shop import wait_for_job


def test_a_queued_run_is_looked_at_and_merged_from_the_page(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = Clone(farm, "clone")
    farm.host("ada")
    run = farm.submit()
    farm.wait_for_status(run, "completed")
    monkeypatch.setenv("ORC_STORE", farm.url)
    server = Server(farm.folder, clone.repo)
    try:
        page = PageSession(server.url)
        (change,) = page.read(f"/api/runs/clone:{run}/diff")["changes"]
        assert (change["branch"], [one["path"] for one in change["files"]]) == (f"orc/{run}", ["work.txt"])
        merged = wait_for_job(page, f"clone:{run}", page.direct(f"clone:{run}", "merge", no_check=True))
        assert merged["message"] == f"merged orc/{run} into main", merged
    finally:
        server.stop()
    assert (clone.repo / "work.txt").read_text() == "first by ada\nsecond by ada\n"
