"""The page's data and its directives, asked for as the page does, over runs whose agents are plain programs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.units import iso
from agent_orchestrator.engine.journal import fold
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.systems import find_system
from tests.acceptance.rig import is_alive, wait_until
from tests.web.page import Frame, PageSession
from tests.web.server import Server
from tests.web.shop import SECRET, Shop, wait_for_job, wait_for_question, wait_for_status


class Stand:
    """Two repositories on one page: one with a run that was rejected once and approved, one for each test to use."""

    def __init__(self, folder: Path) -> None:
        self.shop, self.api = Shop(folder), Shop(folder, "api")
        self.server = Server(folder, self.shop.repo, self.api.repo)
        self.page = PageSession(self.server.url)
        self.shop.begin("done")
        asked = wait_for_question(self.page, "shop:done")
        comment = {"file": "result.txt", "line": 1, "text": "name the iteration in full", "code": "iteration 0"}
        said = {"unit": "approval", "comments": "almost", "lines": [comment], "expect": {"effect": asked["effect"]}}
        self.rejected = self.page.direct("shop:done", "reject", **said)
        wait_until(lambda: self.question() not in (None, asked["effect"]))
        self.approved = self.page.direct("shop:done", "approve", unit="approval", expect={"effect": self.question()})
        wait_for_status(self.page, "shop:done", "completed")

    def question(self) -> str | None:
        asked = self.page.read("/api/runs/shop:done")["questions"]
        return asked[0]["effect"] if asked else None


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    made = Stand(tmp_path_factory.mktemp("stand"))
    yield made
    made.server.stop()


def test_runs_of_several_repositories_are_on_one_page(stand: Stand) -> None:
    session = stand.page.read("/api/session")
    assert [one["repo"] for one in session["repos"]] == ["shop", "api"]
    found = stand.page.read("/api/runs")
    assert [run["key"] for run in found["runs"] if run["run_id"] == "done"] == ["shop:done"]
    wait_until(lambda: stand.shop.orc("list", "--json").json["runs"][0]["driven_by"] is None)  # Its process is about to end.
    (row,) = stand.shop.orc("list", "--json").json["runs"]
    shown = next(run for run in found["runs"] if run["key"] == "shop:done")
    assert {name: shown[name] for name in row} == row, "the names and values of `orc list --json`"
    assert stand.page.get("/api/runs/done").status == 404, "which repository is meant is not known"


def test_a_rejection_with_comments_on_lines_reaches_the_agents_prompt(stand: Stand) -> None:
    assert stand.rejected.status == stand.approved.status == 202
    assert "result.txt:1:" in stand.shop.prompts()
    assert "name the iteration in full" in stand.shop.prompts()
    unit = stand.page.read("/api/runs/shop:done/units/coding")
    first, second = [one["effect"] for one in unit["launches"] if one["kind"] == "agent"]
    prompts = [stand.page.read(f"/api/runs/shop:done/launches/{one.replace('/', '%2F')}")["prompt"] for one in (first, second)]
    assert "name the iteration in full" not in prompts[0]
    assert "name the iteration in full" in prompts[1]
    words = stand.page.read("/api/runs/shop:done/messages")["messages"]
    assert [(one["kind"], "(page)" in one["from"]) for one in words] == [("human_judged", True)] * 2


def test_evidence_and_changes_are_shown(stand: Stand) -> None:
    unit = stand.page.read("/api/runs/shop:done/units/coding")
    assert [(one["command"], one["passed"]) for one in unit["evidence"]] == [("test -s result.txt", True)] * 2
    (change,) = stand.page.read("/api/runs/shop:done/diff")["changes"]
    assert [file["path"] for file in change["files"]] == ["result.txt"]
    assert "+iteration 0" in change["text"].splitlines()
    assert stand.page.read("/api/runs/shop:done/report")["finished"]["total"] == 1


def test_a_question_says_how_large_the_change_is_once_it_is_measured(stand: Stand) -> None:
    page = stand.page
    stand.api.begin("sized")
    wait_for_question(page, "api:sized")

    def needs() -> list[dict[str, Any]]:
        return [one for one in page.read("/api/needs")["needs"] if one["key"] == "api:sized"]

    frames = page.frames(f"/api/events?topics=run:api:sized&at={page.read('/api/runs')['at']}")
    _until(frames, lambda frame: frame[1] == "run")
    assert needs()[0]["change"] is None, "no answer waits for git"
    _until(frames, lambda frame: frame[1] == "needs")  # Pages are told that there is more to know.
    assert needs()[0]["change"] == {"files": 1, "added": 1, "removed": 0}
    assert page.direct("api:sized", "abort").status == 202
    wait_for_status(page, "api:sized", "aborted")
    assert needs() == []


def test_every_row_of_the_past_is_what_the_journal_folds_to(stand: Stand) -> None:
    history = stand.page.read("/api/runs/shop:done/history")
    shown: dict[str, str] = {}
    moves = list(history["moves"])
    with Orchestrator(stand.shop.repo) as orchestrator:
        run = orchestrator.find("done")
        for row, at_us, _ in history["rows"]:
            while moves and moves[0][0] == row:
                _, unit, status = moves.pop(0)
                shown[history["units"][unit]] = history["statuses"][status]
            folded = fold(orchestrator.store, find_system(run.system), run, row)
            assert shown == {unit: str(step.status) for unit, step in folded.state.steps.items()}
            assert folded.at_us == at_us
            graph = stand.page.read(f"/api/runs/shop:done/graph?row={row}")
            assert {one[0]: one[1] for one in graph["rows"]} == shown
    assert moves == []
    past = stand.page.read("/api/runs/shop:done?row=3")
    assert (past["row"], past["actions"]) == (3, ["fork", "rewind"])


def test_figures_have_their_confidence(stand: Stand) -> None:
    rows = stand.page.read("/api/analytics?since=1d")["repos"][0]["rows"]
    coding = next(row for row in rows if row["step"] == "coding")
    assert (coding["launches"], coding["succeeded"], coding["rate"]) == (2, 2, 1.0)
    assert coding["low"] == pytest.approx(0.3424, abs=1e-3), "two of two prove little"
    assert stand.page.get("/api/analytics?since=yesterdayish").status == 400
    assert stand.page.get("/api/analytics?system=nope").status == 400


def test_records_of_beads_are_counted_as_orc_swarm_analyze_counts_them(stand: Stand) -> None:
    for bead, agent, status in (("b1", "claude", "done"), ("b2", "claude", "failed"), ("b3", "codex", "done")):
        for kind in ("runs", "results"):
            folder = stand.shop.repo / "state" / kind
            folder.mkdir(parents=True, exist_ok=True)
            record = {"bead": bead, "agent": agent, "model": "m", "status": status, "attempt": 1, "template_name": "fix"}
            (folder / f"{bead}.json").write_text(json.dumps({**record, "started_at": iso(time.time_ns() // 1000)}))
    shop, api = stand.page.read("/api/outcomes?since=1d")["repos"]
    assert (shop["repo"], api["systems"]) == ("shop", [])
    (figures,) = shop["systems"]
    rows = {(row["agent"], row["model"], row["template"]): row for row in figures["by_agent_model_template"]}
    assert {key: (row["success"], row["total"]) for key, row in rows.items()} == {
        ("claude", "m", "fix"): (1, 2),
        ("codex", "m", "fix"): (1, 1),
    }
    told = stand.shop.orc("swarm", "analyze", "--json").json
    assert told["by_agent_model_template"] == figures["by_agent_model_template"]
    assert stand.page.get("/api/outcomes?since=yesterdayish").status == 400


def _until(frames: Iterator[Frame], wanted: Any) -> list[Frame]:
    """Return frames up to the first that is wanted."""
    seen = []
    for frame in frames:
        seen.append(frame)
        if wanted(frame):
            return seen
    raise AssertionError("the stream ended")


def _completes(run: str) -> Any:
    return lambda frame: frame[1] == "run" and frame[2]["key"] == run and frame[2]["run"]["status"] == "completed"


def test_a_stream_tells_what_happens_and_goes_on_where_it_was(stand: Stand) -> None:
    page = stand.page
    stand.api.begin("told")
    asked = wait_for_question(page, "api:told")
    at = page.read("/api/runs")["at"]
    history = page.read("/api/runs/api:told/history")
    frames = page.frames(f"/api/events?topics=runs,run:api:told&at={at}")
    _until(frames, lambda frame: frame[1] == "run")  # It is told how the run is; from now on what changes.
    page.direct("api:told", "approve", unit="approval", expect={"effect": asked["effect"]})
    seen = _until(frames, _completes("api:told"))
    last = seen[-1][2]
    assert last["seq"] == history["rows"][-1][0] + len(last["history"]["rows"])
    assert [row[1][1] for row in last["units"]] == ["COMPLETED"]
    assert "approved" in " ".join(entry["text"] for frame in seen if frame[1] == "run" for entry in frame[2]["journal"])
    assert any(frame[1] == "runs" and frame[2]["runs"][0]["key"] == "api:told" for frame in seen)
    missed = _until(page.frames("/api/events?topics=runs", last=at), lambda frame: frame[1] == "runs")
    assert [run["key"] for run in missed[-1][2]["runs"]] == ["api:told"], "a reader that was away is told what it missed"
    elsewhere = next(page.frames("/api/events?topics=runs", last="0123abcd.7,0123abcd.7"))
    assert elsewhere[1] == "reset", "a place of another store is none"


def test_a_directive_that_is_sent_twice_counts_once(stand: Stand) -> None:
    page = stand.page
    stand.api.hold("coding")
    stand.api.begin("twice")
    body = {"id": uuid.uuid4().hex, "directive": "steer", "text": "look at the tests first"}
    replies = [page.post("/api/runs/api:twice/directives", body) for _ in range(2)]
    assert [reply.status for reply in replies] == [202, 202]
    steered = [one for one in page.read("/api/runs/api:twice/messages")["messages"] if one["kind"] == "unit_steered"]
    assert [one["text"] for one in steered] == ["look at the tests first"]
    stand.api.let_go("coding")
    wait_for_question(page, "api:twice")
    assert "look at the tests first" in stand.api.prompts()
    assert page.direct("api:twice", "abort").status == 202
    wait_for_status(page, "api:twice", "aborted")


def test_a_launch_is_read_while_it_writes_and_without_its_secrets(stand: Stand) -> None:
    page = stand.page
    stand.api.hold("coding")
    stand.api.begin("writes")
    wait_until(lambda: page.read("/api/runs/api:writes/units/coding")["launches"] != [])
    (launch,) = page.read("/api/runs/api:writes/units/coding")["launches"]
    assert (launch["running"], launch["agent"]) == (True, "command")
    address = f"/api/runs/api:writes/launches/{launch['effect'].replace('/', '%2F')}"
    frames = page.frames(f"{address}/output")
    place, _, first = _until(frames, lambda frame: frame[1] == "lines" and frame[2]["lines"])[-1]
    text = "".join(part for line in first["lines"] for part, _ in line)
    assert text == "coding has found [redacted]"
    assert (
        SECRET
        in (stand.api.repo / ".git/orc/launches" / launch["effect"].replace("/", "~").replace("~", "/", 1) / "out").read_text()
    )
    assert page.read(f"{address}/raw?stream=out")["text"] == "coding has found [redacted]\n"
    stand.api.let_go("coding")
    end = _until(frames, lambda frame: frame[1] == "end")[-1]
    assert end[2]["exit_code"] == 0
    assert page.direct("api:writes", "abort").status == 202
    again = [frame[1] for frame in page.frames(f"{address}/output")]
    assert again == ["lines", "end"], "of one that is over all is shown"
    assert place.count(".") == 3


def test_a_run_is_paused_resumed_forked_rewound_and_merged(stand: Stand) -> None:
    page = stand.page
    stand.api.begin("moves")
    asked = wait_for_question(page, "api:moves")
    assert page.direct("api:moves", "pause", now=True).status == 202
    wait_for_status(page, "api:moves", "paused")
    wait_until(lambda: page.read("/api/runs/api:moves")["run"]["driven_by"] is None)
    forked = wait_for_job(page, "api:moves", page.direct("api:moves", "fork", at="coding", run_id="other"))
    assert (forked["status"], forked["result"]["run_id"]) == ("done", "other")
    back = wait_for_job(page, "api:moves", page.direct("api:moves", "rewind", to="start"))
    assert back["message"] == "run moves is back at start, row 1 of its journal"
    assert page.read("/api/runs/api:moves/history")["dead"] != []
    _check_resumed_while_its_process_leaves(stand.api, page)
    second = wait_for_question(page, "api:moves")
    assert second["effect"] != asked["effect"]
    assert page.direct("api:moves", "approve", unit="approval", expect={"effect": asked["effect"]}).status == 409
    assert page.direct("api:moves", "approve", unit="approval", expect={"effect": second["effect"]}).status == 202
    wait_for_status(page, "api:moves", "completed")
    body = {"id": uuid.uuid4().hex, "directive": "merge"}
    merged = wait_for_job(page, "api:moves", page.post("/api/runs/api:moves/directives", body))
    assert merged["message"].startswith("merged orc/moves into main"), merged
    assert (stand.api.repo / "result.txt").read_text() == "iteration 0\n"
    again = page.post("/api/runs/api:moves/directives", body)
    assert (again.status, again.json["job"]["status"]) == (202, "done"), "asked for twice, it is done once"
    refused = wait_for_job(page, "api:moves", page.direct("api:moves", "rewind", to="nowhere"))
    assert (refused["status"], "there is no point 'nowhere'" in refused["message"]) == ("failed", True)


def _check_resumed_while_its_process_leaves(shop: Shop, page: PageSession) -> None:
    """A process that has paused a run and is about to end reads its inbox no more: the run goes on in another one."""
    body = {"id": uuid.uuid4().hex, "directive": "resume"}
    with Orchestrator(shop.repo) as orchestrator, ThreadPoolExecutor(1) as pool:
        leaving = orchestrator.own("moves")
        try:
            reply = pool.submit(page.post, "/api/runs/api:moves/directives", body)
            wait_until(lambda: orchestrator.store.posted(RunId("moves"), body["id"]) is False)
        finally:
            leaving.release()
        resumed = wait_for_job(page, "api:moves", reply.result())
    assert resumed["status"] == "done", resumed


def test_an_orchestrator_that_is_killed_is_seen_and_its_run_goes_on(stand: Stand) -> None:
    page = stand.page
    stand.api.hold("approval")
    stand.api.begin("killed")
    wait_until(lambda: page.read("/api/runs/api:killed/units/approval")["launches"] != [])
    at = page.read("/api/runs")["at"]
    frames = page.frames(f"/api/events?topics=runs&at={at}")
    tells_owners = lambda frame: frame[1] == "owners" and frame[2]["repo"] == "api"  # noqa: E731
    owners = _until(frames, tells_owners)[-1][2]["driven"]
    assert owners["api:killed"] == page.read("/api/runs/api:killed")["run"]["driven_by"]
    driver = int(owners["api:killed"].split()[1])
    os.kill(driver, signal.SIGKILL)
    wait_until(lambda: not is_alive(driver))
    told = _until(frames, lambda frame: frame[1] == "runs" and frame[2]["runs"][0]["driven_by"] is None)
    moved = {one["key"] for frame in told if frame[2].get("repo") == "api" for one in frame[2].get("runs", ())}
    assert moved <= owners.keys(), "of runs that nobody drove there is nothing to tell"
    late = _until(page.frames(f"/api/events?topics=runs&at={at}"), tells_owners)
    assert "api:killed" not in late[-1][2]["driven"], "a list that is older than the kill is put right"
    stand.api.let_go("approval")
    assert wait_for_job(page, "api:killed", page.direct("api:killed", "resume"))["status"] == "done"
    asked = wait_for_question(page, "api:killed")
    assert page.direct("api:killed", "approve", unit="approval", expect={"effect": asked["effect"]}).status == 202
    wait_for_status(page, "api:killed", "completed")


def test_a_server_that_is_killed_and_started_again_knows_its_pages(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    server = Server(tmp_path, shop.repo)
    try:
        page = PageSession(server.url)
        shop.begin("stays")
        asked = wait_for_question(page, "stays")
        at = page.read("/api/runs")["at"]
        server.stop(signal.SIGKILL)
        server.start()
        assert page.direct("stays", "approve", unit="approval", expect={"effect": asked["effect"]}).status == 202
        missed = _until(page.frames("/api/events?topics=runs,run:stays", last=at), _completes("stays"))
        assert all(frame[1] != "reset" for frame in missed)
        _check_deleted(shop, page)
    finally:
        server.stop()


def _check_deleted(shop: Shop, page: PageSession) -> None:
    """A run that is pruned, and a store that another one takes the place of, are told."""
    at = page.read("/api/runs")["at"]
    frames = page.frames(f"/api/events?topics=runs,run:stays&at={at}")
    _until(frames, lambda frame: frame[1] == "run")
    wait_until(lambda: page.read("/api/runs/stays")["run"]["driven_by"] is None)  # The list does not look, of one that ended.
    assert shop.orc("discard", "stays").code == 0
    assert shop.orc("prune", "--older-than", "0", "--yes").code == 0
    gone = _until(frames, lambda frame: frame[1] == "run" and frame[2].get("gone"))
    assert any(frame[1] == "runs" and frame[2]["gone"] == ["stays"] for frame in gone)
    assert page.get("/api/runs/stays").status == 404
    if "ORC_STORE" in os.environ:
        return  # A database is no folder that somebody could delete.
    shutil.rmtree(shop.repo / ".git" / "orc")
    _until(frames, lambda frame: frame[1] == "reset")
    assert page.read("/api/runs")["runs"] == []
