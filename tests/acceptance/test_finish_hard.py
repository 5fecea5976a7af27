"""Finishing in a repository as people have them, from inside a launch, and twice at once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.acceptance import finish_rig
from tests.acceptance.finish_rig import git
from tests.acceptance.rig import Rig, wait_until
from tests.stores import TOLD

WORK = r"""
git -c protocol.file.allow=always submodule --quiet update --init
git mv plain.txt moved.txt
printf '\0\1\2changed' >picture.bin
printf 'x' >"$(printf 'caf\351.txt')"
echo more >>large.dat
cd sub && echo inner >>inside.txt && git -c user.name=a -c user.email=a@b commit -q -a -m inner
"""


def _repository(repo: Path, folder: Path) -> None:
    """Binary files, names that are no UTF-8, attributes, a file to be renamed, and a submodule."""
    other = folder / "other"
    other.mkdir()
    git(other, "init", "--quiet", "--initial-branch", "main")
    (other / "inside.txt").write_text("one\n")
    git(other, "add", "--all")
    git(other, "commit", "--quiet", "-m", "inside")
    (repo / "plain.txt").write_text("line\n" * 20)
    (repo / "picture.bin").write_bytes(bytes(range(256)))
    (repo / "large.dat").write_text("stored elsewhere\n")
    (repo / ".gitattributes").write_text("*.dat -text merge=union\n*.bin binary\n")
    (repo / os.fsdecode(b"na\xefve.txt")).write_text("old\n")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")


def test_binary_renamed_and_oddly_named_files_and_submodules_are_shown_merged_and_discarded(repo: Path, tmp_path: Path) -> None:
    rig = Rig(repo)
    _repository(repo, tmp_path)
    (repo / "work.sh").write_text(WORK)
    rig.workflow("name: hard\nsteps: [{id: code, agent: shell, prompt: work.sh}]\n")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "-m", "begin")
    for run in ("one", "two"):
        done = rig.orc("run", "--workflow", "workflow.yaml", "--run-id", run, "--git-worktree")
        assert done.code == 0, done
    files = {one["path"]: one for one in rig.orc("diff", "one", "--json").json["works"][0]["files"]}
    assert (files["moved.txt"]["status"], files["moved.txt"]["was"]) == ("R", "plain.txt")
    assert files["picture.bin"].get("added") is None
    assert "caf\\xe9.txt" in files
    assert files["sub"]["status"] == "M"
    raw = subprocess.run([*rig.command, "diff", "one"], cwd=repo, env=rig.environment(), capture_output=True, check=True).stdout
    assert b"Binary files a/picture.bin and b/picture.bin differ" in raw
    assert b"rename from plain.txt" in raw
    merged = rig.orc("merge", "one")
    assert merged.code == 0, merged
    assert (repo / os.fsdecode(b"caf\xe9.txt")).read_text() == "x"
    assert not (repo / "plain.txt").exists()
    assert git(repo, "show", "HEAD:large.dat") == "stored elsewhere\nmore"
    kept = "has submodules, whose new commits may be nowhere else"
    assert kept in merged.out
    inner = git(repo, "rev-parse", "HEAD:sub")
    assert git(repo / ".agents" / "worktrees" / "one" / "sub", "cat-file", "-t", inner) == "commit", "nothing of them is lost"
    dropped = rig.orc("discard", "two")
    assert (dropped.code, kept in dropped.out) == (0, True), dropped
    assert "caf\\xe9.txt" in [one["path"] for one in rig.orc("diff", "two", "--json").json["works"][0]["files"]]


def test_an_agent_can_neither_merge_nor_publish_nor_discard(repo: Path) -> None:
    one = finish_rig.workflow(repo)
    side = one.rig.side / "said"
    orc = " ".join(one.rig.command)
    verbs = "; ".join(f"{orc} {verb} wf >>{side} 2>&1; echo $? >>{side}" for verb in ("merge", "discard", "pr"))
    (repo / "evil.sh").write_text(f"cd {repo}\n{verbs}\n{orc} diff wf --stat >>{side}\n")
    one.rig.workflow("name: evil\nsteps: [{id: code, agent: shell, prompt: evil.sh}]\n")
    one.orc("run", "--workflow", "workflow.yaml", "--run-id", "evil", *TOLD)
    said = side.read_text()
    assert said.count("comes from inside the launch evil/code/") == 3, said
    assert said.splitlines()[1::2][:3] == ["2", "2", "2"], said
    assert "made.txt" in said, "looking is nobody's decision"
    assert "orc/wf" in one.git("branch")
    assert "merge" in one.orc("history", "wf").out


def test_the_second_of_two_merges_at_once_is_refused_and_a_kill_in_the_check_is_made_up_for(repo: Path) -> None:
    one = finish_rig.workflow(repo)
    began, go = one.rig.side / "began", one.rig.side / "go"
    check = f"echo x >>{began}; while [ ! -e {go} ]; do sleep 0.02; done"
    first = one.rig.start("merge", "wf", "--check", check)
    wait_until(began.exists)
    refused = one.orc("merge", "wf")
    assert (refused.code, "its work is being merged already" in refused.err) == (2, True), refused
    first.process.kill()
    first.process.wait()
    go.touch()
    again = one.orc("merge", "wf")
    assert again.code == 0, again
    assert (repo / "made.txt").exists()
    assert began.read_text() == "x\n", "the check that outlived its merge was adopted, not run twice"
