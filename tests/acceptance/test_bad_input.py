"""The mistakes of people and agents: one sentence that names the thing, the right exit code, nothing lost."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import subprocess
from pathlib import Path

import apsw
import pytest

from agent_orchestrator.config import load_settings
from agent_orchestrator.errors import InvalidValue
from tests.acceptance.rig import HUMAN, ORC, Result, Rig, is_alive, wait_until
from tests.stores import IS_SHARED, OWN_STORE

STEP = "  - {id: %s, agent: coder, prompt: prompt.md%s}\n"


def check_refused(result: Result, code: int, *names: str) -> None:
    """The exit code, the things that must be named, one sentence, and no traceback."""
    assert result.code == code, result
    assert result.err.startswith("orc: "), result
    assert all(line.startswith("orc: ") for line in result.err.splitlines()), result
    assert all(name in result.err for name in names), result
    assert "Traceback" not in result.err + result.out, result


# Files and flags of `orc run`


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--repo", "/nowhere/at-all"], ["/nowhere/at-all", "does not exist"]),
        (["--repo", "workflow.yaml"], ["workflow.yaml", "not a directory"]),
        (["--repo", "9" * 400], ["a path is too long: 999"]),
        (["--workflow", "missing.yaml"], ["missing.yaml", "does not exist"]),
        (["--workflow", "."], ["cannot be read"]),
        (["--wrapper", "missing.py"], ["missing.py"]),
        (["--max-attempts", "0"], ["--max-attempts", "'0'"]),
        (["--max-attempts", "nan"], ["--max-attempts", "'nan'"]),
        (["--max-attempts", "-1"], ["--max-attempts", "'-1'"]),
        (["--max-iterations", "0"], ["--max-iterations", "'0'"]),
        (["--max-parallel", "1.5"], ["--max-parallel", "'1.5'"]),
        (["--timeout", "nan"], ["--timeout", "'nan'"]),
        (["--idle-timeout", "-3"], ["--idle-timeout", "'-3'"]),
        (["--run-id", "a/b"], ["--run-id", "'a/b'"]),
        (["--run-id", ".."], ["--run-id", "'..'"]),
        (["--run-id", "a\x07b"], ["--run-id", "a\\x07b"]),
        (["--run-id", ""], ["--run-id", "''"]),
        (["--var", "novalue"], ["--var", "novalue"]),
        (["--env", "=x"], ["--env", "=x"]),
        (["--env", "K=\udcff"], ["K=\\udcff", "UTF-8"]),
        (["--env", "REPORT_PATH=/x"], ["--env", "REPORT_PATH", "set by orc itself"]),
        (["--pass-env", "API_KEY=abc"], ["--pass-env", "the NAME of a variable"]),
        (["--agent", "claude"], ["--wrapper", "--agent"]),
        (["--unknown"], ["--unknown", "orc run --help"]),
        (["--start-at-step", "coding"], ["line", "no earlier run"]),
        (["--start-at-step", "../x", "--run-id", "zz"], ["zz"]),
        (["extra"], ["extra"]),
    ],
)
def test_a_wrong_flag_or_file_is_refused_before_anything_is_created(rig: Rig, arguments: list[str], names: list[str]) -> None:
    check_refused(rig.ask_run(*arguments), 2, *names)
    assert rig.launches() == []
    assert not list((rig.repo / ".agents").glob("runs/*"))


def test_a_repository_whose_name_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "r\udcffpo"
    folder.mkdir()
    with pytest.raises(InvalidValue, match="it must be UTF-8"):
        load_settings(str(folder))


def test_a_repository_of_another_user_is_named_with_what_to_do(rig: Rig) -> None:
    programs = rig.side / "bin"
    programs.mkdir()
    # Git's own way to have one without root.
    (programs / "git").write_text(f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {shutil.which("git")} "$@"\n')
    (programs / "git").chmod(0o755)
    stranger = {"PATH": f"{programs}:{os.environ['PATH']}"}
    told = f"the folder belongs to another user; if you trust it: `git config --global --add safe.directory {rig.repo}`."
    check_refused(rig.orc("run", "fix it", "--agent-command", "true", "--check", "true", env=stranger), 3, told)
    looked = rig.orc("doctor", env=stranger)
    assert (looked.code, told in looked.out) == (3, True), looked


def test_a_role_that_no_step_has_is_warned_of(rig: Rig) -> None:
    planned = rig.run("--role", "codder=shell", "--plan")
    assert (planned.code, "--role codder=shell: no step has this role" in planned.err) == (0, True), planned


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("steps: [\n  {id: a\n", ["workflow.yaml:3:1", "not YAML"]),
        ("steps:\n" + STEP % ("a", ", nedes: []"), ["workflow.yaml:2:", "'nedes'"]),
        ("stpes: []\n", ["workflow.yaml:1:", "'stpes'"]),
        ("steps:\n" + STEP % ("a", "") + STEP % ("a", ""), ["workflow.yaml:3:", "'a'", "line 2"]),
        ("steps:\n" + STEP % ("a", ", needs: [b]") + STEP % ("b", ", needs: [a]"), ["circle", "a → b"]),
        ("steps:\n" + STEP % ("a", "") + STEP % ("b", ", loop_back_to: a"), ["workflow.yaml:3:", "loop_back_to", "'a'"]),
        ("steps:\n" + STEP % ("'a/b'", ""), ["workflow.yaml:2:", "'a/b'"]),
        ("steps:\n" + STEP % ("'..'", ""), ["workflow.yaml:2:", "'..'"]),
        ("steps:\n" + STEP % ('"a\\u0007"', ""), ["workflow.yaml:2:", "\\x07"]),
        ("steps:\n" + STEP % ("a", ", max_attempts: 0"), ["workflow.yaml:2:", "max_attempts"]),
        ("steps:\n" + STEP % ("a", ", timeout: .nan"), ["workflow.yaml:2:", "timeout"]),
        ("steps:\n  - {id: a, agent: coder, prompt: missing.md}\n", ["step a", "missing.md"]),
        ("", ["workflow.yaml", "empty"]),
    ],
)
def test_a_wrong_workflow_is_refused_with_its_place(rig: Rig, text: str, names: list[str]) -> None:
    rig.workflow(text)
    check_refused(rig.ask_run(), 2, *names)
    assert not (rig.repo / ".agents").exists()


def test_every_fault_of_a_workflow_is_told_at_once(rig: Rig) -> None:
    rig.workflow("steps:\n" + STEP % ("a", ", x: 1") + STEP % ("b", ", y: 1"))
    refused = rig.ask_run("--json")
    assert [problem["line"] for problem in refused.json["error"]["problems"]] == [2, 3], refused
    assert len(refused.err.splitlines()) == 2


def test_a_wrapper_that_is_not_executable_is_refused(rig: Rig) -> None:
    (rig.side / "wrapper").write_text("#!/bin/sh\n")
    check_refused(rig.run("--wrapper", str(rig.side / "wrapper")), 3, "wrapper", "executable")


def test_an_existing_run_id_is_refused_unless_its_directory_was_deleted(rig: Rig) -> None:
    assert rig.run("--run-id", "mine").code == 0
    check_refused(rig.ask_run("--run-id", "mine"), 2, "mine", "orc resume mine")
    shutil.rmtree(rig.repo / ".agents" / "runs" / "mine")
    assert rig.run("--run-id", "mine").code == 0
    assert {run["run_id"] for run in rig.ask("list", "--json").json["runs"]} == {"mine", "mine~1"}


# What agents leave


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ({"report": {"run_id": "another"}}, ["run_id", "another"]),
        ({"report": {"status": "SPLENDID"}}, ["SPLENDID"]),
        ({"raw": "not json at all"}, ["not JSON", "not json at all"]),
        ({"report": None}, ["report"]),
    ],
)
def test_a_report_that_cannot_be_used_fails_the_attempt_and_is_quoted(
    rig: Rig, part: dict[str, object], names: list[str]
) -> None:
    rig.play({"planning": part})
    failed = rig.run("--max-attempts", "1")
    assert failed.code == 1, failed
    error = rig.state(failed.run)["steps"]["planning"]["last_error"]
    assert all(name in error for name in names), error


@pytest.mark.parametrize("command", ["./missing.sh", "tools/missing --fast"])
def test_an_agent_that_is_not_in_the_working_tree_is_refused_before_a_run_exists(rig: Rig, command: str) -> None:
    refused = rig.orc("run", "--workflow", "workflow.yaml", "--agent-command", command)
    assert (refused.code, rig.ask("list", "--json").json["runs"]) == (3, [])
    assert f"The agent {command.split()[0]} cannot be started: there is no such file in {rig.repo}." in refused.err
    looping = rig.orc("loop", "run", "task", "--until", "true", "--agent-command", command)
    assert (looping.code, rig.ask("list", "--json").json["runs"]) == (3, [])


def test_an_agent_in_the_working_tree_that_is_not_executable_is_refused(rig: Rig) -> None:
    (rig.repo / "agent.sh").write_text("true\n")
    refused = rig.orc("run", "--workflow", "workflow.yaml", "--agent-command", "./agent.sh")
    assert refused.code == 3, refused
    assert "chmod +x" in refused.err


def test_a_report_of_200_megabytes_is_refused_unread(rig: Rig) -> None:
    agent = rig.side / "big.sh"
    agent.write_text('#!/bin/sh\ntruncate -s 200M "$REPORT_PATH"\n')
    agent.chmod(0o755)
    failed = rig.orc("run", "--workflow", "workflow.yaml", "--agent-command", str(agent), "--max-attempts", "1")
    assert failed.code == 1, failed
    assert "209,715,200 bytes" in rig.state(failed.run)["steps"]["planning"]["last_error"]


def test_an_agent_that_ignores_term_and_leaves_grandchildren_is_stopped(rig: Rig) -> None:
    agent = rig.side / "stubborn.sh"
    agent.write_text(
        f"#!/bin/sh\ntrap '' TERM\nsetsid sh -c 'trap \"\" TERM; echo $$ > {rig.side}/child; while :; do sleep 0.1; done' &\n"
        f"echo $$ > {rig.side}/parent\nwhile :; do sleep 0.1; done\n"
    )
    agent.chmod(0o755)
    running = rig.start("run", "--workflow", "workflow.yaml", "--agent-command", str(agent))
    wait_until(lambda: (rig.side / "child").exists() and (rig.side / "child").read_text().strip())
    wait_until(lambda: (rig.side / "parent").exists() and (rig.side / "parent").read_text().strip())
    assert rig.orc("abort").code == 0
    assert running.end().code == 1
    assert not any(is_alive(int((rig.side / name).read_text())) for name in ("parent", "child"))


# State files


def test_a_state_file_without_a_journal_is_refused_when_it_is_nonsense(rig: Rig) -> None:
    folder = rig.repo / ".agents" / "runs" / "old"
    folder.mkdir(parents=True)
    (folder / "run_state.json").write_text('{"run_id": "old", "steps": ')
    check_refused(rig.ask_run("--start-at-step", "coding", "--run-id", "old"), 2, "run_state.json", "state file")
    (folder / "run_state.json").write_text('{"run_id": "old", "steps": {"coding": {"status": "DONE"}}}')
    check_refused(rig.ask_run("--start-at-step", "coding", "--run-id", "old"), 2, "run_state.json", "workflow_name: is missing")


def test_a_half_written_state_file_is_never_read_as_truth(rig: Rig) -> None:
    rig.play({"coding": {"exit": 1, "report": None}})
    run = rig.run("--max-attempts", "1").run
    file = rig.repo / ".agents" / "runs" / run / "run_state.json"
    file.write_text(file.read_text()[:80])
    check_refused(rig.orc("resume", run), 2, "run_state.json", "not JSON", "put aside")
    rig.play({})
    assert rig.orc("resume", run).code == 0
    assert rig.state(run)["steps"]["coding"]["status"] == "COMPLETED"


# The store


def _store(rig: Rig) -> Path:
    return rig.repo / ".git" / "orc" / "orc.db"


@OWN_STORE
def test_a_corrupt_database_is_named_and_left_as_it_is(rig: Rig) -> None:
    assert rig.run().code == 0
    _store(rig).write_bytes(b"this is not a database" * 1000)
    for command in (["status"], ["list"], ["show", "x"]):
        check_refused(rig.orc(*command), 3, str(_store(rig)), "damaged")
    doctor = rig.orc("doctor")
    assert (doctor.code, "a check of its pages found" in doctor.out) == (3, True), doctor
    assert _store(rig).read_bytes().startswith(b"this is not a database")


@OWN_STORE
def test_a_locked_database_is_waited_for_and_then_named(rig: Rig) -> None:
    rig.workflow(HUMAN)
    run = rig.run("--no-wait").run
    holder = apsw.Connection(str(_store(rig)))
    holder.execute("BEGIN IMMEDIATE")
    try:
        assert rig.orc("status").code == 0, "reading goes on"
        check_refused(rig.orc("approve", run), 3, str(_store(rig)), "locked")
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert rig.orc("approve", run).code == 0


@OWN_STORE
def test_a_newer_database_is_not_touched(rig: Rig) -> None:
    assert rig.run().code == 0
    newer = apsw.Connection(str(_store(rig)))
    newer.pragma("user_version", 99)
    newer.close()
    check_refused(rig.orc("status"), 3, "99", "upgrade")


def _obey_permissions() -> None:
    """root reads and writes everything; without this capability it is a user like any other."""
    if os.getuid() == 0:
        pr_capbset_drop, cap_dac_override = 24, 1
        ctypes.CDLL(None).prctl(pr_capbset_drop, cap_dac_override)


def test_a_read_only_database_is_named(rig: Rig) -> None:
    assert rig.run().code == 0
    folder = _store(rig).parent
    for path in folder.iterdir():
        path.chmod(0o555 if path.is_dir() else 0o444)
    folder.chmod(0o555)
    try:
        refused = rig.run(preexec_fn=_obey_permissions)
    finally:
        folder.chmod(0o755)
        for path in folder.iterdir():
            path.chmod(0o755 if path.is_dir() else 0o644)
    check_refused(refused, 3, str(_store(rig)), "cannot be written")
    assert rig.ask("list", "--json").json["total"] == 1


def test_a_store_that_cannot_be_a_folder_is_named(rig: Rig) -> None:
    _store(rig).parent.write_text("in the way")
    check_refused(rig.ask_run(), 3, str(_store(rig).parent), f"cannot be {'read' if IS_SHARED else 'written'}")


def _full_disk() -> None:
    """No file may grow: the nearest that an unprivileged process comes to a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@OWN_STORE
def test_a_full_disk_loses_nothing(rig: Rig) -> None:
    small = rig.side / "small"
    small.mkdir()
    subprocess.run(["cp", "-r", f"{rig.repo}/.", str(small / "repo")], check=True)
    mounted = subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode == 0
    command = ["run", "--repo", f"{small}/repo", "--workflow", "workflow.yaml", "--wrapper", str(rig.side / "wrapper.py")]
    if mounted:
        script = (
            f"mount -t tmpfs -o size=400k none {small} && cp -r . {small}/repo && cd {small}/repo && "
            f'dd if=/dev/zero of={small}/filler bs=1k 2>/dev/null; "$@"; code=$?; rm {small}/filler; '
            f"{' '.join(ORC)} list --json --repo {small}/repo >&1; exit $code"
        )
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", script, "sh", *ORC, *command],
            cwd=rig.repo,
            env=rig.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        result = Result(tuple(command), done.returncode, done.stdout, done.stderr)
        assert json.loads(done.stdout)["total"] == 0, result
    else:
        result = rig.orc(*command, preexec_fn=_full_disk)
    check_refused(result, 3, f"{small}/repo/.git/orc")
    assert rig.launches() == []


# Two at once, unknown and finished runs


def test_a_second_orchestrator_is_refused_and_told_who_drives(rig: Rig) -> None:
    rig.play({"planning": {"until": "go"}})
    running = rig.start_run()
    run = running.wait_for("planning  started").split()[1]
    check_refused(rig.orc("resume", run), 3, run, f"process {running.process.pid}")
    check_refused(rig.run("--start-at-step", "planning"), 3, run, f"process {running.process.pid}")
    rig.open("go")
    assert running.end().code == 0


@pytest.mark.parametrize(
    ("command", "run"),
    [
        *((command, "nope") for command in ("status", "show", "logs", "watch", "history", "pause", "resume", "abort", "approve")),
        *(("show", run) for run in ("../../etc", "a/b", "a\x07", "")),
    ],
)
def test_a_directive_or_a_look_at_an_unknown_run_is_refused(shared: Rig, command: str, run: str) -> None:
    check_refused(shared.ask(command, run), 2, repr(run))


@pytest.mark.parametrize(
    "command",
    [["pause", "over"], ["abort", "over"], ["resume", "over"], ["approve", "over"], ["reject", "over", "--comments", "x"]],
)
def test_a_directive_for_a_finished_run_is_refused(shared: Rig, command: list[str]) -> None:
    check_refused(shared.ask(*command), 2, "over")


@pytest.mark.parametrize("command", ["diff", "show", "pause", "resume", "approve"])
def test_where_no_run_was_ever_started_that_is_said(rig: Rig, command: str) -> None:
    check_refused(rig.ask(command), 2, f"There are no runs in {rig.repo} yet; start one with `orc run`.")
    assert not (rig.repo / ".git" / "orc").exists()


def test_an_unknown_step_is_named_with_those_there_are(shared: Rig) -> None:
    for command in (["show", "over", "../x"], ["logs", "over", "../x"]):
        check_refused(shared.ask(*command), 2, "'../x'", "planning")


# The edge of the process


def test_with_json_an_error_is_an_object_too(shared: Rig) -> None:
    refused = shared.ask("show", "nope", "--json")
    assert refused.json["error"]["kind"] == "UnknownRun"
    assert refused.json["error"]["exit_code"] == refused.code == 2
    usage = shared.ask("steer", "--json")
    assert (usage.code, usage.json["error"]["kind"]) == (2, "UsageError")


def test_a_bug_is_one_sentence_unless_the_traceback_is_asked_for(shared: Rig) -> None:
    broken = shared.side / "broken"
    broken.mkdir()
    (broken / "apsw.py").write_text("raise RuntimeError('boom')\n")
    path = {"PYTHONPATH": f"{broken}:{shared.environment()['PYTHONPATH']}"}
    check_refused(shared.orc("list", env=path), 1, "internal error", "boom", "ORC_DEBUG=1")
    assert "Traceback" in shared.orc("list", env=path | {"ORC_DEBUG": "1"}).err


def test_a_reader_that_has_seen_enough_is_no_error(shared: Rig) -> None:
    command = f"{' '.join(ORC)} history over | head -n 1"
    done = subprocess.run(
        ["sh", "-c", command], cwd=shared.repo, env=shared.environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 1)
