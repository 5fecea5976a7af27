"""One way to finish in every mode: look at the work, merge it, discard it and bring it back, or open it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_orchestrator.core.ids import RunId
from agent_orchestrator.engine.engine import Silent
from agent_orchestrator.engine.ownership import Ownership
from agent_orchestrator.runs.merge import MergeOptions, merge_works
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from tests.acceptance import finish_rig
from tests.acceptance.finish_rig import MODES, Finished, git

SHADOWS = ("for-each-ref", "--format=%(refname)", "refs/orc/")


@pytest.fixture(params=sorted(MODES))
def done(request: pytest.FixtureRequest, repo: Path) -> Finished:
    """A completed run of each mode."""
    return MODES[request.param](repo)


def _branches(one: Finished) -> list[str]:
    return one.git("for-each-ref", "--format=%(refname:short)", "refs/heads/").split()


def test_a_run_is_looked_at_and_merged_with_nothing_left_behind(done: Finished) -> None:
    names = done.orc("diff", done.run, "--name-only").out.split()
    assert done.file in names
    told = done.orc("diff", done.run, "--json").json["works"]
    assert done.file in [file["path"] for work in told for file in work["files"]]
    before = done.orc("diff", done.run).out
    assert f"+++ b/{done.file}" in before or "new file mode" in before
    assert "\x1b" not in before
    report = done.orc("report", done.run)
    assert (report.code, done.run in report.out) == (0, True), report
    merged = done.orc("merge", done.run)
    assert merged.code == 0, merged
    assert f"{done.branch} into main" in merged.out
    assert (done.rig.repo / done.file).exists()
    assert _branches(done) == ["main"]
    assert len(done.git("worktree", "list").splitlines()) == 1
    assert done.git("branch", "--show-current") == "main"
    assert done.git("status", "--porcelain", "--", done.file) == ""
    assert f"Orc-Run: {done.run}" in done.git("log", "-1", "--format=%B", "main")
    again = done.orc("merge", done.run)
    assert (again.code, "already merged" in again.out) == (0, True), again
    assert done.file in done.orc("diff", done.run, "--name-only").out.split(), "also when the branch is gone"
    history = done.orc("history", done.run).out
    assert "to be merged into main" in history
    assert "merged as " in history


class Looking(Orchestrator):
    """Sees a process that has ended a run and still holds it, which lets go of it then."""

    leaving: Ownership

    def owner(self, run: StoredRun) -> str | None:
        said = super().owner(run)
        if self.leaving.held:
            self.leaving.release()
        return said


def test_a_merge_waits_for_the_process_that_ends_the_run(repo: Path) -> None:
    done = finish_rig.workflow(repo)
    with Looking(repo) as looking:
        looking.leaving = Ownership(repo / ".git" / "orc", RunId(done.run))
        report = merge_works(looking, looking.find(done.run), MergeOptions(), Silent())
    assert [one.verdict for one in report.works] == ["landed"]
    assert (repo / done.file).exists()


def test_a_run_is_discarded_and_brought_back(done: Finished) -> None:
    if done.branch.startswith("phases/"):
        git(done.rig.repo, "switch", "--quiet", "main")
    dropped = done.orc("discard", done.run)
    assert dropped.code == 0, dropped
    assert _branches(done) == ["main"]
    assert len(done.git("worktree", "list").splitlines()) == 1
    assert not (done.rig.repo / done.file).exists()
    assert done.file in done.orc("diff", done.run, "--name-only").out.split()
    refused = done.orc("merge", done.run)
    assert (refused.code, "was discarded; bring it back first: git branch" in refused.err) == (2, True), refused
    assert "nothing to discard" in done.orc("discard", done.run).err
    ways = re.findall(r"^bring it back: git (.*)$", dropped.out, re.M)
    assert ways
    for way in ways:
        done.git(*way.split())
    merged = done.orc("merge", done.run)
    assert merged.code == 0, merged
    assert (done.rig.repo / done.file).exists()


def test_the_end_of_a_run_says_what_can_be_done_with_it(repo: Path) -> None:
    one = finish_rig.workflow(repo)
    said = one.orc("run", "--workflow", "workflow.yaml", "--run-id", "wf2", "--agent-command", "sh -c 'echo x >made.txt'")
    assert f"work: in {repo}: 1 file changed, +1 -0\nnext: orc diff wf2   orc discard wf2\n" in said.out, said


def test_work_in_the_users_own_checkout_is_taken_back_only_while_nothing_else_changed(repo: Path) -> None:
    one = finish_rig.in_place(repo)
    assert one.orc("diff", "wf", "--name-only").out.split() == ["made.txt"]
    refused = one.orc("merge", "wf")
    assert (refused.code, "There is nothing to merge" in refused.err) == (2, True)
    (repo / "own.txt").write_text("changed by me\n")
    refused = one.orc("discard", "wf")
    assert (refused.code, "own.txt changed in" in refused.err) == (2, True), refused
    assert (repo / "made.txt").exists()
    (repo / "own.txt").write_text("mine\n")
    dropped = one.orc("discard", "wf")
    assert dropped.code == 0, dropped
    assert not (repo / "made.txt").exists()
    assert (repo / "own.txt").read_text() == "mine\n"
    assert one.orc("diff", "wf", "--name-only").out.split() == ["made.txt"]
    (way,) = re.findall(r"^bring it back: git (.*)$", dropped.out, re.M)
    one.git(*way.split())
    assert (repo / "made.txt").read_text() == "made\n"


def test_commits_that_an_agent_made_in_the_users_checkout_are_taken_back_with_its_files(repo: Path) -> None:
    one = finish_rig.in_place(repo)
    one.git("add", "made.txt")
    one.git("commit", "--quiet", "-m", "made")
    head = one.git("rev-parse", "HEAD")
    writer = "sh -c 'echo more >more.txt; git add -A; git -c user.name=a -c user.email=a@b commit -q -m more; echo z >>own.txt'"
    assert one.orc("run", "--workflow", "workflow.yaml", "--run-id", "two", "--agent-command", writer).code == 0
    assert one.orc("diff", "two", "--name-only").out.split() == ["more.txt", "own.txt"]
    assert one.orc("discard", "two").code == 0
    assert one.git("rev-parse", "HEAD") == head
    assert one.git("status", "--porcelain") == ""
    refused = one.orc("discard", "wf")
    assert (refused.code, "has other commits than when run wf ended" in refused.err) == (2, True), refused


def test_a_team_has_merged_its_groups_itself_and_cleans_up(repo: Path) -> None:
    one = finish_rig.team(repo)
    assert _branches(one) == ["main"]
    assert len(one.git("worktree", "list").splitlines()) == 1
    assert one.orc("diff", one.run, "--name-only").out.split() == ["a.py"]
    assert one.orc("diff", one.run, "A", "--stat").out.split("\n")[0].split()[0] == "a.py"
    merged = one.orc("merge", one.run)
    assert (merged.code, "already merged A: feature/a into main" in merged.out) == (0, True), merged
    refused = one.orc("discard", one.run)
    assert (refused.code, "nothing to discard" in refused.err) == (2, True), refused


def test_an_iteration_of_a_loop_is_shown_and_merged_by_its_number(repo: Path) -> None:
    one = finish_rig.loop(repo)
    assert one.orc("diff", one.run, "1", "--name-only").out.split() == ["half.txt"]
    assert set(one.orc("diff", one.run, "best", "--name-only").out.split()) == {"half.txt", "done"}
    assert "known: 1, 2, best" in one.orc("diff", one.run, "7").err or "best" in one.orc("diff", one.run, "7").err
    merged = one.orc("merge", one.run, "1", "--no-check")
    assert merged.code == 0, merged
    assert (repo / "half.txt").exists()
    assert not (repo / "done").exists()
    assert f"orc/{one.run}" in _branches(one), "the loop's own work is still there"


def test_beads_are_merged_one_by_one_or_all_in_order(repo: Path) -> None:
    one = finish_rig.swarm(repo)
    assert one.orc("merge", one.run, "b").code == 0
    assert (repo / "b.txt").exists()
    assert not (repo / "a.txt").exists()
    rest = one.orc("merge", one.run)
    assert rest.code == 0, rest
    assert "2 of 2 merged into main" in rest.out
    assert (repo / "a.txt").exists()


@pytest.mark.parametrize("mode", [*sorted(MODES), "team"])
def test_a_conflict_names_the_paths_changes_nothing_and_is_resolved_where_the_work_is(mode: str, repo: Path) -> None:
    one = finish_rig.given_up(repo) if mode == "team" else MODES[mode](repo)
    file, unit = "half.txt" if mode == "loop" else one.file, [one.unit] if one.unit else []
    was, name = one.git("branch", "--show-current"), " ".join([one.run, *unit])
    one.git("switch", "--quiet", "main")
    (repo / file).write_text("by hand\n")
    one.git("add", file)
    one.git("commit", "--quiet", "-m", "by hand")
    one.git("switch", "--quiet", was)
    head, branches = one.git("rev-parse", "main"), _branches(one)
    refused = one.orc("merge", one.run, *unit)
    assert refused.code == 1, refused
    assert f"conflict: {one.branch} and main both changed {file}" in refused.out
    assert f"orc open {name}, there `git merge main` and commit; then: orc merge {name}" in refused.out
    assert (one.git("rev-parse", "main"), one.git("status", "--porcelain")) == (head, ""), "nothing half"
    assert (one.git("branch", "--show-current"), _branches(one)) == (was, branches)
    told = one.orc("merge", one.run, *unit, "--json").json
    assert (told["merged"], told["works"][0]["conflicts"]) == (0, [file])
    resolve = "git -c user.name=a -c user.email=a@b merge -q -X ours -m both main"
    assert one.orc("open", one.run, *unit, "--command", resolve).code == 0
    assert one.orc("merge", one.run, *unit).code == 0
    assert "by hand" not in (repo / file).read_text()


def test_changes_of_the_user_that_a_merge_would_overwrite_are_named_and_kept(repo: Path) -> None:
    one = finish_rig.workflow(repo)
    (repo / "made.txt").write_text("not committed\n")
    refused = one.orc("merge", "wf")
    assert refused.code == 1
    assert "made.txt" in refused.out
    assert (repo / "made.txt").read_text() == "not committed\n"
    (repo / "made.txt").unlink()
    (repo / "own.txt").write_text("something else\n")
    assert one.orc("merge", "wf").code == 0
    assert (repo / "own.txt").read_text() == "something else\n"


def test_a_check_that_fails_on_the_merged_tree_stops_the_merge_and_shows_its_output(repo: Path) -> None:
    one = finish_rig.workflow(repo)
    head = one.git("rev-parse", "HEAD")
    refused = one.orc("merge", "wf", "--check", "echo it is wrong; test ! -e made.txt")
    assert refused.code == 1
    assert "not merged red: the check exited with 1 on the merged tree" in refused.out
    assert "  | it is wrong" in refused.out
    assert one.git("rev-parse", "HEAD") == head
    facts = one.orc("merge", "wf", "--check", "test -e own.txt && test -e made.txt", "--json").json
    assert (facts["merged"], facts["works"][0]["verdict"]) == (1, "landed")


def test_open_gives_a_shell_a_command_an_editor_or_the_folder(repo: Path) -> None:
    one = finish_rig.workflow(repo)
    folder = one.orc("open", "wf", "--path").out.strip()
    assert Path(folder, "made.txt").exists()
    assert one.orc("open", "wf", "--command", "cat made.txt; exit 7").code == 7
    shell = one.rig.orc("open", "wf", env={"SHELL": "/bin/pwd"})
    assert (shell.code, shell.out.strip()) == (0, folder)
    edited = one.rig.orc("open", "wf", "--editor", env={"VISUAL": "ls -a"})
    assert "made.txt" in edited.out
    assert "exclude each other" in one.orc("open", "wf", "--editor", "--path").err
    git(repo, "worktree", "remove", folder)
    assert one.orc("open", "wf", "--path").out.strip() == folder
    assert Path(folder, "made.txt").exists(), "a worktree that is gone is made again"


def test_wrong_words_get_one_sentence(repo: Path) -> None:
    one = finish_rig.workflow(repo)
    for arguments, said in (
        (("merge", "nope"), "There is no run 'nope'"),
        (("merge", "wf", "--into", "nope"), "There is no branch nope"),
        (("merge", "wf", "x"), "has one piece of work: leave out x"),
        (("merge", "wf", "--check", "true", "--no-check"), "--check and --no-check exclude each other"),
        (("merge", "wf", "--into", "orc/wf"), "the branch with the work"),
        (("diff", "wf", "--stat", "--name-only"), "exclude each other"),
    ):
        refused = one.orc(*arguments)
        assert (refused.code, said in refused.err) == (2, True), refused
        assert len(refused.err.splitlines()) == 1


def test_a_run_that_is_not_over_is_shown_but_neither_merged_nor_discarded(repo: Path) -> None:
    one = finish_rig.workflow(repo)
    (repo / "code.sh").write_text("echo x >half.txt\n")
    asks = "{id: approval, agent: asker, prompt: prompt.md, needs: [code], human_in_the_loop: true}"
    one.rig.workflow(f"name: two\nsteps: [{{id: code, agent: shell, prompt: code.sh}}, {asks}]\n")
    one.git("add", "--all")
    one.git("commit", "--quiet", "-m", "human")
    waits = one.rig.run("--no-wait", "--git-worktree", "--run-id", "w2")
    assert waits.code == 4, waits
    assert "next: orc diff w2   orc open w2" in waits.out
    assert one.orc("diff", "w2", "--name-only").out.split() == ["half.txt"]
    for verb in ("merge", "discard"):
        refused = one.orc(verb, "w2")
        assert (refused.code, "has not ended" in refused.err) == (2, True), refused


def test_shadow_refs_are_out_of_branches_decorations_and_a_log_that_excludes_them(repo: Path) -> None:
    one = finish_rig.workflow(repo)
    assert one.git(*SHADOWS)
    assert "refs/orc" not in one.git("branch", "--all") + one.git("log", "--all", "--decorate=full")
    shown = one.git("log", "--exclude=refs/orc/*", "--all", "--format=%s").splitlines()
    assert "one: completed" in shown
    assert not [subject for subject in shown if "the tree that it" in subject]
    assert len(one.git("log", "--all", "--format=%s").splitlines()) > len(shown), "git's own --all walks every ref"
    assert one.orc("prune", "--older-than", "0", "--yes").code == 0
