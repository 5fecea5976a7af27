"""An agent that plants programs for our git, or another `.git`: none of it runs, and what cannot be done is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.loop_rig import LoopRig, loop_of
from tests.acceptance.rig import Rig
from tests.acceptance.swarm_rig import SwarmRig

PLANTED = """
common=$(git rev-parse --path-format=absolute --git-common-dir)
evil="$here/evil"
printf '#!/bin/sh\\ntouch "%s/marker"\\ncat\\n' "$here" >"$evil"
chmod +x "$evil"
"""

QUIET = """
for key in core.fsmonitor core.sshCommand core.editor core.pager core.askPass diff.external diff.evil.command \\
    diff.evil.textconv merge.evil.driver gpg.program gpg.ssh.program credential.helper alias.status alias.write-tree \\
    uploadpack.packObjectsHook core.alternateRefsCommand core.gitProxy sequence.editor interactive.diffFilter; do
  git config --local "$key" "$evil"
done
git config --local log.showSignature true
git config --local core.hooksPath "$here/hooks"
mkdir -p "$here/hooks" "$common/hooks"
for hook in post-checkout reference-transaction post-index-change post-commit pre-commit pre-push post-merge \\
    fsmonitor-watchman pre-auto-gc; do
  cp "$evil" "$here/hooks/$hook"
  cp "$evil" "$common/hooks/$hook"
done
echo '* diff=evil merge=evil' >"$common/info/attributes"
echo '* diff=evil merge=evil' >.gitattributes
rm -f "$here/marker"
"""
"""The programs that git would run without a filter."""

FILTERS = {
    "in the repository's configuration": """
        git config --local filter.evil.clean "$evil"; git config --local filter.evil.smudge "$evil"
        echo '* filter=evil' >.gitattributes""",
    "in the worktree's configuration": """
        git config --local extensions.worktreeConfig true; git config --worktree filter.evil.clean "$evil"
        echo '* filter=evil' >.gitattributes""",
    "in a file that is included": """
        printf '[filter "evil"]\\nclean = %s\\nprocess = %s\\n' "$evil" "$evil" >"$here/more"
        git config --local include.path "$here/more"; echo '* filter=evil' >"$common/info/attributes" """,
}

REPLACED = {
    "by a repository": """rm .git; git init -q .; git config core.fsmonitor "$evil"; git config core.hooksPath "$here/hooks" """,
    "by a pointer elsewhere": """
        git init -q "$here/other"; git -C "$here/other" config core.fsmonitor "$evil"
        echo "gitdir: $here/other/.git" >.git""",
    "by a link": """mv .git "$here/dot"; ln -s "$here/dot" .git""",
    "by nothing": """rm .git""",
}


def check_nothing_ran(rig: Rig) -> None:
    assert (rig.side / "evil").exists(), "it was planted"
    assert not (rig.side / "marker").exists()


@pytest.mark.parametrize("tree", [(), ("--git-worktree",)])
def test_a_program_that_an_agent_names_in_the_configuration_is_never_run(repo: Path, tree: tuple[str, ...]) -> None:
    rig = LoopRig(repo)
    rig.do(f"{PLANTED}{QUIET}\necho work >done")
    done = rig.loop(*tree)
    assert done.code == 0, done
    rig.ask("show", loop_of(done))
    check_nothing_ran(rig)


@pytest.mark.parametrize("trick", FILTERS)
def test_a_filter_that_an_agent_defines_is_not_run_and_nothing_is_kept_unfiltered(repo: Path, trick: str) -> None:
    rig = LoopRig(repo)
    rig.do(f"{PLANTED}{FILTERS[trick]}\nrm -f $here/marker\necho work >done")
    done = rig.loop("--git-worktree", "--no-wait")
    assert done.code != 0, done
    assert "the filter evil is defined in this repository's own configuration" in done.out + done.err, done
    check_nothing_ran(rig)


@pytest.mark.parametrize("trick", REPLACED)
def test_a_worktree_whose_git_an_agent_replaced_is_not_followed(repo: Path, trick: str) -> None:
    rig = LoopRig(repo)
    rig.do(f"{PLANTED}{REPLACED[trick]}\nrm -f $here/marker\necho work >done")
    done = rig.loop("--git-worktree", "--no-wait")
    assert done.code != 0, done
    assert ".git" in done.out + done.err, done
    check_nothing_ran(rig)


def test_a_merge_runs_nothing_that_a_bead_planted(repo: Path) -> None:
    rig = SwarmRig(repo)
    rig.do(f"{PLANTED}{QUIET}\nrm .gitattributes\necho one >one.txt", "bd-1")
    rig.do("echo two >two.txt", "bd-2")
    for bead in ("bd-1", "bd-2"):
        assert rig.dispatch(bead, "--branch", f"work/{bead}").code == 0
        merged = rig.orc("swarm", "merge", bead)
        assert f"merged {bead}: work/{bead} into main" in merged.out, merged
    assert (repo / "one.txt").exists()
    assert (repo / "two.txt").exists()
    check_nothing_ran(rig)
