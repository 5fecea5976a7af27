"""Agents and checks as the engine performs them: prompts, reports, redaction, shortages, evidence."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_orchestrator.core.effects import AgentChoice, Checkpoint, KeptTree, Merge, RunCheck, Tree
from agent_orchestrator.core.events import EvidenceWeighed, TreeKept
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.core.ids import RunId
from agent_orchestrator.core.inputs import CheckpointEnded, Commit, FileChange, MergeEnded, MergeVerdict
from agent_orchestrator.core.report import ReportRule
from agent_orchestrator.engine.clock import SystemClock, boot_id
from agent_orchestrator.engine.engine import Engine, World
from agent_orchestrator.engine.launches import Order
from agent_orchestrator.engine.perform.merge import NoMerges
from agent_orchestrator.engine.process import ProcessLaunches
from agent_orchestrator.engine.redact import Redactor
from agent_orchestrator.errors import GitFailed
from agent_orchestrator.git.worktree import folder_of
from agent_orchestrator.testing.world import LaunchCourse, SimulatedLaunches
from tests.unit.engine.rig import WORDS, Rig, agent, jump, named
from tests.unit.engine.toy import Did

SECRET = "hunter2-hunter2-hunter2"
COPY = ".agents/reports/one__a.json"


def outcome(rig: Rig, run: Any) -> Any:
    (done,) = rig.of_kind(run, Did)
    return done.outcome


def test_the_prompt_is_filled_in_and_feedback_written_when_the_launch_starts(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    said = ({"gate": "found P0 issues"},)
    run = rig.toys(agent("a", prompt_text="Do {what}.\n", variables={"what": "it"}, feedback=said))
    rig.drive(run)
    folder = rig.machine.directory(named("a"))
    prompt = (folder / "prompt.md").read_text()
    assert prompt.startswith("Do it.\n")
    assert f"write one JSON object to this file:\n\n    {folder / 'report.json'}\n" in prompt
    assert json.loads((folder / "feedback.json").read_text())["entries"] == list(said)


@pytest.mark.parametrize(
    ("file", "said"),
    [("none.md", "No such file"), ("", "not a regular file"), ("pipe", "not a regular file"), ("binary.md", "utf-8")],
)
def test_a_prompt_that_cannot_be_had_fails_the_launch_with_a_sentence(file: str, said: str, tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    (rig.home / "binary.md").write_bytes(b"\xff\xfe")
    os.mkfifo(rig.home / "pipe")
    run = rig.toys(agent("a", prompt_text=None, prompt_file=str(rig.home / file)))
    rig.drive(run)
    failure = outcome(rig, run).failure
    assert failure.kind is FailureKind.LAUNCH
    assert said in failure.message
    assert rig.machine.starts == []


def test_a_copy_of_the_newest_report_is_kept_for_people(tmp_path: Path) -> None:
    report: dict[str, object] = {"status": "COMPLETED", "summary": "built", "extra": [1]}
    rig = Rig(tmp_path, lambda effect: LaunchCourse(1.0, 0, report))
    (rig.home / ".agents" / "reports").mkdir(parents=True)
    (rig.home / COPY).write_text("an older one")
    rig.drive(rig.toys(agent("a", report_copy=COPY)))
    assert json.loads((rig.home / COPY).read_text()) == report


def test_a_played_agents_report_is_kept_too(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    script = tmp_path / "script.yaml"
    script.write_text("- step: a\n")
    choice = AgentChoice(name="scripted", options={"script": str(script)})
    rig.drive(rig.toys(agent("a", agent=choice, report_copy=COPY)))
    assert json.loads((rig.home / COPY).read_text())["status"] == "COMPLETED"


def test_a_report_of_another_launch_is_never_read(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    stale = rig.machine.directory(named("a", launch=1))
    stale.mkdir(parents=True)
    (stale / "report.json").write_text('{"status": "COMPLETED"}')
    run = rig.toys(agent("a", launch=2, report=ReportRule(words=WORDS, required=True)))
    rig.drive(run)
    assert outcome(rig, run).failure.kind is FailureKind.REPORT_MISSING


def test_an_agent_that_a_stored_run_names_and_that_is_not_here_fails_the_launch(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run = rig.toys(agent("a", agent=AgentChoice(name="aider")))
    rig.drive(run)
    assert outcome(rig, run).failure.kind is FailureKind.LAUNCH
    assert "There is no agent 'aider'" in outcome(rig, run).failure.message


def test_output_that_its_agent_made_unreadable_fails_the_attempt(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    (rig.machine.directory(named("a")) / "err").mkdir(parents=True)
    run = rig.toys(agent("a"))
    rig.drive(run)
    assert outcome(rig, run).failure.kind is FailureKind.REPORT_INVALID
    assert "err: it is not a regular file" in outcome(rig, run).failure.message
    assert rig.notes.notices == []


def test_the_time_limit_of_a_step_is_the_launchs(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(500.0))
    run = rig.toys(agent("a", timeout_s=30.0))
    rig.drive(run)
    assert outcome(rig, run).failure.kind is FailureKind.TIMEOUT
    assert rig.clock.monotonic_s() < 40


def test_a_check_identifies_the_tree_before_and_after(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    trees = iter(["before", "after"])
    rig.tree_of = lambda workdir, scratch: next(trees)
    run = rig.toys(RunCheck(id=named("a", "check"), unit="a", command="make test"))
    rig.drive(run)
    assert (outcome(rig, run).tree_before, outcome(rig, run).tree_after) == ("before", "after")


def _is_gone(workdir: Path) -> str | None:
    return None


def _fails(workdir: Path) -> str | None:
    raise GitFailed(command="write-tree", where=workdir, detail="the index is gone")


@pytest.mark.parametrize(("look", "why"), [(_is_gone, "in no git repository any more"), (_fails, "the index is gone")])
def test_a_check_whose_tree_cannot_be_identified_afterwards_has_not_passed(
    look: Callable[[Path], str | None], why: str, tmp_path: Path
) -> None:
    rig = Rig(tmp_path)
    looks = iter([lambda workdir: "before", look])
    rig.tree_of = lambda workdir, scratch: next(looks)(workdir)
    run = rig.toys(RunCheck(id=named("a", "check"), unit="a", command="true"))
    rig.drive(run)
    assert (outcome(rig, run).exit_code, outcome(rig, run).failure.kind) == (0, FailureKind.LAUNCH)
    assert why in outcome(rig, run).failure.message


def test_a_check_that_ran_fewer_tests_or_whose_tests_were_touched_is_doubted_in_its_evidence(tmp_path: Path) -> None:
    says = {named("a", "check"): (1.0, "12 passed in 1s"), named("b", "check"): (5.0, "11 passed in 1s")}
    rig = Rig(tmp_path, lambda effect: LaunchCourse(says[effect][0], says=((0.5, says[effect][1]),)))
    asked: list[tuple[str | None, str]] = []

    def changed(folder: Path, old: str | None, new: str) -> tuple[FileChange, ...]:
        asked.append((old, new))
        return (FileChange("M", "tests/test_a.py"), FileChange("A", "tests/test_b.py"))

    rig.more = {"list_changes": changed, "keep_tree": lambda folder, scratch, run, tree: None}
    run = rig.toys(*(RunCheck(id=named(unit, "check"), unit=unit, command="pytest") for unit in ("a", "b")))
    rig.journal(run, TreeKept(kept=KeptTree(commit="found")), TreeKept(kept=KeptTree(commit="left"), unit="an agent"))
    rig.drive(run)
    one, other = sorted((done.outcome for done in rig.of_kind(run, Did)), key=lambda outcome: str(outcome.effect))
    touch = "test files were changed: tests/test_a.py"
    assert (one.counted, one.doubts, one.exit_code) == ((12, 12), (touch,), 0)
    assert (other.counted, other.doubts) == ((11, 11), ("11 tests ran where 12 ran before", touch))
    assert other.tail.endswith(f"\norc: the check passed, but 11 tests ran where 12 ran before; {touch}.")
    assert [event.tests for event in rig.of_kind(run, EvidenceWeighed)] == [12, 11]
    assert asked == [("found", "left")] * 2


def test_the_tree_before_a_check_is_remembered_through_a_crash(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda effect: LaunchCourse(60.0))
    trees = iter(["before", "after"])
    rig.tree_of = lambda workdir, scratch: next(trees)
    run = rig.toys(RunCheck(id=named("a", "check"), unit="a", command="make test"))

    async def leave(engine: Engine) -> None:
        await jump(engine, 1)
        engine.leave()

    rig.drive(run, leave)
    rig.drive(run)
    assert (outcome(rig, run).tree_before, outcome(rig, run).tree_after) == ("before", "after")


LEAK = """
token=$(cat "$1")
echo "token $token"; echo "token $token" >&2
printf '{"status": "FAILED", "summary": "token %s"}' "$token" >"$REPORT_PATH"
exit 3
"""


def test_a_secret_in_what_an_agent_says_reaches_no_file_and_no_event(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    (tmp_path / "token").write_text(SECRET)
    choice = AgentChoice(name="command", options={"argv": ["sh", "-c", LEAK, "agent", str(tmp_path / "token")]})
    run = rig.toys(agent("a", agent=choice, report_copy=COPY))
    root = tmp_path / "real"

    async def main() -> None:
        launches = ProcessLaunches(root, SystemClock(), boot_id())
        world = World(
            store=rig.store, launches=launches, clock=SystemClock(), boot=boot_id(), redactor=Redactor([SECRET]),
            child_env=lambda names: {"PATH": "/usr/bin:/bin"}, tree_of=lambda workdir, scratch: None,
        )  # fmt: skip
        await Engine(world, rig.notes).drive(run, rig.system, lambda driver: True)
        launches.close()

    asyncio.run(main())
    assert outcome(rig, run).exit_code == 3
    assert "[redacted]" in outcome(rig, run).tail
    stored = [body for _, _, body in rig.store.rows(RunId("one"))]
    written = [file.read_bytes() for place in (root, rig.home) for file in place.rglob("*") if file.is_file()]
    assert len(written) > 3
    assert not [text for text in (*stored, *written) if SECRET.encode() in text]


class Colliding(NoMerges):
    """Every merge is a conflict in a file that holds a secret."""

    def plan(self, repo: Path, effect: Merge) -> MergeEnded:
        return MergeEnded(effect=effect.id, verdict=MergeVerdict.CONFLICT, conflict_text=f"<<<<<<<\ntoken {SECRET}\n=======")


def test_a_secret_in_a_diff_a_conflict_a_name_or_a_subject_reaches_no_event_and_no_commit(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.redactor = Redactor([SECRET])
    messages: list[str | None] = []

    def save_tree(workdir: Path, scratch: Path, effect: Checkpoint) -> CheckpointEnded:
        messages.extend((effect.message, effect.branch_message))
        changed, commits = (FileChange("A", f"{SECRET}.txt"),), (Commit("c", f"use {SECRET}"),)
        return CheckpointEnded(effect=effect.id, diff=f"+ token {SECRET}", changed=changed, commits=commits)

    class Merging(Colliding):
        def plan(self, repo: Path, effect: Merge) -> MergeEnded:
            messages.append(effect.message)
            return super().plan(repo, effect)

    rig.more = {"save_tree": save_tree, "merges": Merging()}
    told = f"say {SECRET}"
    checkpoint = Checkpoint(id=named("a", "save"), unit="a", ref="refs/orc/a", message=told, branch_message=told, at_us=1)
    run = rig.toys(checkpoint, Merge(id=named("b", "merge"), unit="b", branch="b", into="main", message=told, at_us=1))
    rig.drive(run)
    saved, merged = sorted((done.outcome for done in rig.of_kind(run, Did)), key=lambda one: one.effect)
    assert saved.diff == "+ token [redacted]"
    assert (saved.changed[0].path, saved.commits[0].subject) == ("[redacted].txt", "use [redacted]")
    assert "token [redacted]" in merged.conflict_text
    assert messages == ["say [redacted]"] * 3


def in_trees(rig: Rig, opened: list[str]) -> None:
    """Worlds of the rig make worktrees as empty folders, and refuse the branch `taken`."""

    def open_tree(home: Path, run: str, tree: Tree) -> None:
        if tree.branch == "taken":
            raise GitFailed(command="worktree", where=home, detail="it is checked out elsewhere")
        opened.append(tree.branch)
        folder_of(home, run, tree).mkdir(parents=True, exist_ok=True)

    world = rig.world
    rig.world = lambda: msgspec.structs.replace(world(), open_tree=open_tree)  # type: ignore[method-assign]


@pytest.mark.parametrize("name", ["command", "scripted"])
def test_an_effect_is_performed_in_the_tree_it_asks_for(name: str, tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    opened: list[str] = []
    in_trees(rig, opened)
    script = tmp_path / "script.yaml"
    script.write_text("- step: a\n  write: {made.txt: made}\n")
    choice = AgentChoice(name=name, options={"script": str(script)} if name == "scripted" else {"argv": ["agent"]})
    orders: list[Order] = []
    launches = rig.launches()

    def noting(order: Order) -> None:
        orders.append(order)
        SimulatedLaunches.start(launches, order)

    launches.start = noting  # type: ignore[method-assign]
    rig.launches = lambda: launches
    tree = Tree(branch="group/a")
    check = RunCheck(id=named("b", "check"), unit="b", command="true", tree=tree)
    rig.drive(rig.toys(agent("a", agent=choice, tree=tree), check))
    folder = folder_of(rig.home, "one", tree)
    assert opened == ["group/a", "group/a"]
    assert {order.cwd for order in orders} == {folder}
    assert {order.env["REPO_DIR"] for order in orders} == {str(folder)}
    assert (folder / "made.txt").exists() is (name == "scripted")


@pytest.mark.parametrize("name", ["command", "scripted"])
def test_a_tree_that_cannot_be_had_fails_the_launch_with_a_sentence(name: str, tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    in_trees(rig, [])
    script = tmp_path / "script.yaml"
    script.write_text("- step: a\n")
    choice = AgentChoice(name=name, options={"script": str(script)} if name == "scripted" else {"argv": ["agent"]})
    run = rig.toys(agent("a", agent=choice, tree=Tree(branch="taken")))
    rig.drive(run)
    assert outcome(rig, run).failure.kind is FailureKind.LAUNCH
    assert "checked out elsewhere" in outcome(rig, run).failure.message
    assert rig.machine.starts == []


@pytest.mark.parametrize("has_tree", [True, False])
def test_a_tree_is_kept_after_each_agent_only_where_there_is_one(has_tree: bool, tmp_path: Path) -> None:
    """To look for a repository takes no thread; to keep a tree does."""
    kept: list[Path] = []
    rig = Rig(tmp_path)
    rig.more = {"keep_tree": lambda folder, scratch, run, tree: kept.append(folder), "has_tree": lambda folder: has_tree}
    rig.drive(rig.toys(agent("a"), agent("b")))
    assert kept == [rig.home] * (3 if has_tree else 1), "as it was found, and then after each agent"
