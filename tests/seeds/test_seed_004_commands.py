"""Seed 004: its scripts and command lines, verbatim, in a workspace that `orc swarm init` made."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.rig import Result
from tests.acceptance.swarm_rig import SwarmRig
from tests.seeds.test_seed_004_records import FULL_RESULT, MINIMAL_RESULT, MINIMAL_RUN


class Workspace(SwarmRig):
    """A workspace with the scripts."""

    def __init__(self, repo: Path) -> None:
        super().__init__(repo)
        assert self.orc("swarm", "init").code == 0

    def sh(self, line: str) -> Result:
        """One command line, as a person types it."""
        path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self.repo,
            env=self.environment(path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Result((line,), done.returncode, done.stdout, done.stderr)

    def put(self, path: str, document: Any) -> None:
        """A record of another tool."""
        file = self.repo / "state" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(document if isinstance(document, str) else json.dumps(document))


@pytest.fixture
def workspace(repo: Path) -> Workspace:
    return Workspace(repo)


def test_init_makes_the_directory_of_the_seed(workspace: Workspace) -> None:
    """004:9–18, 177–182, 207."""
    for path in ("state/SCHEMA.md", "state/schemas/run.schema.json", "state/schemas/result.schema.json"):
        assert (workspace.repo / path).is_file()
    for name in ("dispatch.sh", "validate-state.sh", "analyze-runs.sh"):
        assert os.access(workspace.repo / "scripts" / name, os.X_OK)
    assert workspace.orc("swarm", "init").out == "everything is there already; --force writes it again.\n"
    assert json.loads((workspace.repo / "state/schemas/run.schema.json").read_text())["title"] == "Run record"


def test_dispatch_sh_creates_the_run_record_and_then_the_result(workspace: Workspace) -> None:
    """004:155, 162, 164."""
    agent = shlex.quote(str(workspace.agent))
    done = workspace.sh(f"./scripts/dispatch.sh bd-abc . claude:sonnet 'Task description' bug-fix --agent-command {agent}")
    assert done.code == 0, done
    assert workspace.record("runs", "bd-abc")["template_name"] == "bug-fix"
    assert workspace.record("results", "bd-abc")["status"] == "done"


def test_dispatch_sh_works_from_anywhere_in_its_own_workspace(workspace: Workspace, tmp_path: Path) -> None:
    """004:155; the workspace is the scripts', the repository is named as seen from the caller (contract)."""
    (tmp_path / "project").mkdir()
    script, agent = workspace.repo / "scripts" / "dispatch.sh", shlex.quote(str(workspace.agent))
    done = workspace.sh(f"cd {tmp_path} && {script} bd-1 project codex 'x' --agent-command {agent}")
    assert done.code == 0, done
    assert workspace.record("runs", "bd-1")["repo"] == str(tmp_path / "project")


def test_the_agent_works_in_a_tmux_session(workspace: Workspace) -> None:
    """004:163: with --tmux (contract); the session is agent-<bead>."""
    sockets = Path("/tmp") / f"orc-{os.getpid()}-seed"
    sockets.mkdir(exist_ok=True)
    workspace.do('tmux display-message -p "#S" >"$here/session"')
    agent = shlex.quote(str(workspace.agent))
    try:
        line = f"TMUX_TMPDIR={sockets} ./scripts/dispatch.sh bd-a.1 . claude 'x' --tmux --agent-command {agent}"
        done = workspace.sh(line)
        assert done.code == 0, done
        assert (workspace.side / "session").read_text() == "agent-bd-a_1\n"
        assert workspace.record("runs", "bd-a.1")["session_name"] == "agent-bd-a.1"
        assert workspace.record("runs", "bd-a.1")["output_summary"] == "working on bd-a.1\n"
    finally:
        workspace.sh(f"TMUX_TMPDIR={sockets} tmux kill-server")
        shutil.rmtree(sockets)


def test_a_folder_is_validated_whole_and_one_without_records_is_none(workspace: Workspace) -> None:
    assert workspace.dispatch("bd-abc").code == 0
    for folder, records in (("state", 4), ("--runs state", 2), ("state/attempts", 2)):
        assert workspace.sh(f"./scripts/validate-state.sh {folder}").out == f"{records} records: {records} pass, 0 fail\n"
    for one in ("state/results", "--runs state/attempts", "--results state/attempts"):
        assert workspace.sh(f"./scripts/validate-state.sh {one}").out == "1 record: 1 pass, 0 fail\n"
    wrong = workspace.sh("./scripts/validate-state.sh scripts")
    assert (wrong.code, "There is no record in scripts" in wrong.err) == (2, True), "it must not pass for all valid"


def test_an_invalid_record_is_named_with_its_field_and_the_code_is_one(workspace: Workspace) -> None:
    """004:201, without ajv-cli (contract)."""
    workspace.put("runs/bd-1.json", {**MINIMAL_RUN, "attempt": 0, "schema_version": 1, "prompt_full": "x"})
    workspace.put("results/bd-1.json", FULL_RESULT)
    workspace.put("results/bd-2.json", "{")
    done = workspace.sh("./scripts/validate-state.sh --all")
    assert done.code == 1
    assert "runs/bd-1.json: attempt: 0 is less than the minimum of 1" in done.out
    assert "results/bd-2.json: it is not JSON" in done.out
    assert done.out.splitlines()[-1] == "3 records: 1 pass, 2 fail"
    assert workspace.sh("./scripts/validate-state.sh --results state/results/bd-1.json").code == 0


def test_fix_migrates_legacy_records_and_keeps_a_copy(workspace: Workspace) -> None:
    """004:86, 197–198, 203; contract: filled in honestly, a .bak, validated again."""
    workspace.put("runs/bd-1.json", {**MINIMAL_RUN, "bead": "bd-1", "started_at": "'$START'", "host": "build-7"})
    workspace.put("results/bd-1.json", {**MINIMAL_RESULT, "bead": "bd-1"})
    before = (workspace.repo / "state/runs/bd-1.json").read_text()
    assert workspace.sh("./scripts/validate-state.sh --all").code == 1
    fixed = workspace.sh("./scripts/validate-state.sh --fix --runs")
    assert fixed.code == 0, fixed
    assert "started_at: '$START' is a placeholder, no time" in fixed.out
    assert "host: the format has no such field" in fixed.out
    record = workspace.record("runs", "bd-1")
    assert (record["status"], record["finished_at"], record["host"]) == ("done", "2026-02-12T17:10:00Z", "build-7")
    assert [name for name, value in record.items() if value is None] == [
        *("duration_seconds", "max_retries", "session_name", "result_file", "exit_code"),
        *("output_summary", "failure_reason", "template_name"),
    ]
    assert (workspace.repo / "state/runs/bd-1.json.bak").read_text() == before
    assert workspace.sh("./scripts/validate-state.sh --fix --results").code == 0
    assert workspace.record("results", "bd-1")["agent"] == "claude"
    assert workspace.sh("./scripts/validate-state.sh --all").code == 0


def test_records_with_nulls_pass_and_fix_leaves_them(workspace: Workspace) -> None:
    """004:72–82, 197."""
    told = {"finished_at": None, "duration_seconds": None, "exit_code": None, "failure_reason": None, "status": "running"}
    full = {**MINIMAL_RUN, "bead": "bd-1", "schema_version": 1, "prompt_full": "x", "prompt_hash": "0", **told}
    workspace.put("runs/bd-1.json", full)
    assert workspace.sh("./scripts/validate-state.sh --runs").code == 0
    assert workspace.sh("./scripts/validate-state.sh --fix --runs").code == 0
    assert full.items() <= workspace.record("runs", "bd-1").items(), "what was there is there"
    again = workspace.sh("./scripts/validate-state.sh --fix --runs")
    assert (again.code, again.out) == (0, "1 record: 1 pass, 0 fail\n"), "a second time there is nothing to add"


def test_what_a_verification_left_beside_the_records_is_no_bead(workspace: Workspace) -> None:
    found = {"bead": "bd-1", "status": "pass", "checks": [{"name": "tests", "passed": True}]}
    workspace.put("runs/bd-1.json", {**MINIMAL_RUN, "bead": "bd-1"})
    workspace.put("results/bd-1.json", {**MINIMAL_RESULT, "bead": "bd-1", "verification": {"tests": "pass"}, "host": "ci"})
    workspace.put("results/bd-1-verify.json", found)
    workspace.put("results/bd-2-verify.json", {**FULL_RESULT, "bead": "bd-2-verify"})
    workspace.put("runs/bd-1-verify.json", "all good")
    assert workspace.sh("./scripts/validate-state.sh --fix --all").out.splitlines()[-1] == "3 records: 3 pass, 0 fail"
    told = workspace.sh("./scripts/analyze-runs.sh --json").json
    assert told["total_runs"] == 2, "a bead may be called so: its record says it"
    assert workspace.record("results", "bd-1")["verification"] == {"tests": "pass"}
    assert workspace.sh("./scripts/validate-state.sh state/results/bd-1-verify.json").code == 2
    taken = workspace.sh("orc import state --agent-command true")
    assert taken.code == 0, taken
    assert "bd-1.result.host: no field of the format; it stands in the original" in taken.out
    assert "bd-1-verify" not in taken.out
    assert workspace.record("results", "bd-1")["verification"] == {"tests": "pass"}
    assert workspace.record("results", "bd-1-verify") == found


def test_whoever_walks_through_the_runs_counts_each_bead_once(workspace: Workspace) -> None:
    assert workspace.dispatch("bd-abc").code == 0
    assert workspace.sh("find state/runs state/results -name '*.json'").out.split() == [
        *("state/runs/bd-abc.json", "state/results/bd-abc.json"),
    ]


def test_what_cannot_be_filled_in_stays_failing_and_says_why(workspace: Workspace) -> None:
    """Contract: nothing is faked."""
    workspace.put("runs/bd-1.json", {"bead": "bd-1", "attempt": 1})
    done = workspace.orc("swarm", "validate", "--fix", "--runs", "--json")
    (file,) = done.json["files"]
    assert (done.code, file["valid"]) == (1, False)
    assert '"agent" is a required property' in file["problems"]


@pytest.mark.parametrize("line", ["./scripts/analyze-runs.sh", "./scripts/analyze-runs.sh --since 2026-02-11"])
def test_the_reports_command_lines_work_verbatim(workspace: Workspace, line: str) -> None:
    """004:210–211, 216–217."""
    workspace.put("runs/bd-1.json", MINIMAL_RUN)
    workspace.put("results/bd-1.json", MINIMAL_RESULT)
    done = workspace.sh(line)
    assert done.code == 0, done
    assert "success rate   100% (21%-100%)" in done.out
    assert "The swarm is healthy" in done.out


def test_the_json_report_has_every_figure_of_the_seed(workspace: Workspace) -> None:
    """004:165, 203, 213–214, 220–225: both formats, merged by bead."""
    for number in range(4):
        workspace.put(f"runs/bd-{number}.json", {**MINIMAL_RUN, "bead": f"bd-{number}", "attempt": 1 + number % 2})
        status = {**MINIMAL_RESULT, "bead": f"bd-{number}", "attempt": 1 + number % 2, "status": "failed" if number else "done"}
        workspace.put(f"results/bd-{number}.json", status)
    workspace.put("runs/bd-9.json", {**MINIMAL_RUN, "bead": "bd-9", "agent": "codex", "status": "running"})
    workspace.put("runs/broken.json", "{")
    done = workspace.sh("./scripts/analyze-runs.sh --json")
    report = done.json
    assert (report["total_runs"], report["success"], report["failed"], report["running"]) == (5, 1, 3, 1)
    assert (report["success_rate"], report["retry_rate"]) == (0.25, 0.4)
    assert report["by_agent"]["claude"]["average_duration_seconds"] == 120
    assert report["by_agent"]["codex"]["average_duration_seconds"] is None
    assert report["failure_reasons"] == {"failed": 3}
    assert [text.split()[0] for text in report["recommendations"]] == ["Only", "40%", "Agent", "Template"]
    assert report["healthy"] is False
    assert [Path(path).name for path in report["unreadable"]] == ["broken.json"]
    assert "broken.json was left out" in done.err


def test_since_leaves_out_what_is_older(workspace: Workspace) -> None:
    """004:216–217."""
    workspace.put("runs/bd-1.json", {**MINIMAL_RUN, "started_at": "2026-02-10T23:59:59Z"})
    workspace.put("runs/bd-2.json", {**MINIMAL_RUN, "bead": "bd-2", "started_at": "2026-02-11T00:00:00Z"})
    assert workspace.sh("./scripts/analyze-runs.sh --json --since 2026-02-11").json["total_runs"] == 1
    refused = workspace.sh("./scripts/analyze-runs.sh --since yesterday")
    assert (refused.code, "--since is 'yesterday'" in refused.err) == (2, True)


def test_the_store_tells_the_same_as_the_files(workspace: Workspace) -> None:
    """Issue: analysis is read from the store, too."""
    workspace.do("exit 1", "bd-2")
    workspace.dispatch("bd-1", "docs")
    workspace.dispatch("bd-2", agent="codex")
    workspace.beads({"id": "a", "prompt": "x"}, {"id": "bd-2", "prompt": "again"})
    (workspace.side / "do.bd-2").unlink()
    workspace.swarm("--max-agents", "1", "--force")
    files, store = (workspace.orc("swarm", "analyze", "--json", *more).json for more in ((), ("--from-store",)))
    assert files == store
    assert (files["total_runs"], files["success"], files["retry_rate"]) == (3, 3, 0.3333)
