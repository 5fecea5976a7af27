"""Command lines and reports of older runners of workflows, as the page for those who come from them says."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.rig import HUMAN, ROOT, Rig

PAGE = ROOT / "docs" / "coming-from-workflow-runners.md"
ADA = ("-c", "user.name=ada", "-c", "user.email=ada@localhost")
TEMPLATE_AGENT = """
import json, os, sys
told = {name: value for name, value in os.environ.items() if name.startswith("ISSUE") or name in ("A", "B")}
json.dump({"words": sys.argv[1:], "env": told}, open(os.path.join(os.path.dirname(__file__), "told.json"), "w"))
json.dump({"status": "COMPLETED"}, open(sys.argv[1], "w"))
"""


def git(rig: Rig, *arguments: str) -> str:
    done = subprocess.run(["git", *ADA, *arguments], cwd=rig.repo, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def one(rig: Rig) -> Rig:
    """A workflow of one step."""
    rig.workflow("name: one\nsteps:\n  - {id: coding, agent: coder, prompt: prompt.md}\n")
    return rig


def test_a_command_template_is_filled_in_word_by_word(one: Rig) -> None:
    program = one.side / "an agent.py"
    program.write_text(TEMPLATE_AGENT)
    words = "{report} --prompt={prompt} {run_id}/{step_id}/{attempt} {agent} {repo} [{manual_input}] {{not}}"
    line = f"{shlex.quote(sys.executable)} {shlex.quote(str(program))} {words}"
    done = one.orc(
        *("run", "--workflow", "workflow.yaml", "--command-template", line, "--wrapper-arg", "--last one"),
        *("--env", "A=1", "--env", "B=2", "--issue-number", "42", "--run-id", "filled"),
    )
    assert done.code == 0, done
    told = json.loads((one.side / "told.json").read_text())
    report, prompt, names, agent, repo, answer, braces, last = told["words"]
    assert (names, agent, repo, answer, braces, last) == ("filled/coding/1", "coder", str(one.repo), "[]", "{not}", "--last one")
    assert Path(report).name == "report.json"
    assert Path(prompt.removeprefix("--prompt=")).read_text() == "Do filled.\n"
    artifacts = one.repo / ".agents" / "runs" / "filled" / "artifacts"
    assert told["env"] == {
        "A": "1",
        "B": "2",
        "ISSUE_NUMBER": "42",
        "ISSUE_MARKDOWN_FILENAME": "gh_issue_42.md",
        "ISSUE_MARKDOWN_DIR": str(artifacts),
        "ISSUE_MARKDOWN_PATH": str(artifacts / "gh_issue_42.md"),
    }


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (
            ("--command-template", "true {reprot}"),
            2,
            "--command-template is '{reprot}': it must be a command with no other names",
        ),
        (("--command-template", "true {report"), 2, "--command-template is '{report': it must be names in braces"),
        (("--command-template", "true {report!r}"), 2, "no other names in braces than {run_id}, {step_id}"),
        (("--command-template", ""), 2, "--command-template is '': it must be a program and its arguments"),
        (("--command-template", "no-such-program {report}"), 3, "The agent no-such-program cannot be started"),
        (
            ("--command-template", "true", "--agent-command", "true"),
            2,
            "--command-template and --agent-command exclude each other",
        ),
        (("--wrapper-arg", "x", "--agent-command", "true"), 2, "--wrapper-arg needs --wrapper or --command-template."),
        (("--agent-command", "true", "--issue-number", "#42"), 2, "--issue-number is '#42': it must be a number, as in 42"),
        (
            ("--agent-command", "true", "--git-worktree-ref", "main", "--no-git-worktree"),
            2,
            "--git-worktree-ref and --no-git-worktree exclude each other",
        ),
        (("--agent-command", "true", "--git-worktree", "--git-worktree-branch", "a b"), 2, "this cannot be the name of a branch"),
        (("--agent-command", "true", "--git-worktree", "--git-worktree-ref", "none"), 2, "has no such commit, branch or tag"),
        (("--agent-command", "true", "--daily-cost-limit", "much"), 2, "--day-budget-usd is 'much'"),
        (("--agent-command", "true", "--daily-cost-limit", "5"), 2, "--allow-unmetered"),
    ],
)
def test_a_mistake_in_an_older_option_is_said(one: Rig, options: tuple[str, ...], code: int, said: str) -> None:
    git(one, "commit", "--allow-empty", "--quiet", "-m", "begin")
    refused = one.ask("run", "--workflow", "workflow.yaml", *options)
    assert (refused.code, refused.err.count("\n")) == (code, 1), refused
    assert said in refused.err
    assert one.ask("list", "--json").json["runs"] == []


def test_a_worktree_has_the_branch_and_the_start_that_are_asked_for_and_stays(rig: Rig) -> None:
    git(rig, "commit", "--allow-empty", "--quiet", "-m", "first")
    first = git(rig, "rev-parse", "HEAD")
    git(rig, "commit", "--allow-empty", "--quiet", "-m", "second")
    rig.workflow("name: one\nsteps:\n  - {id: coding, agent: shell, prompt: make.sh}\n")
    (rig.repo / "make.sh").write_text("echo made > made.txt\n")
    arguments = (
        "--git-worktree",
        "--git-worktree-branch",
        "feat/issue-42",
        "--git-worktree-ref",
        "HEAD~1",
        "--git-worktree-keep",
    )
    done = rig.run(*arguments, "--run-id", "apart")
    assert done.code == 0, done
    assert "work: branch feat/issue-42 in " in done.out
    assert git(rig, "merge-base", "feat/issue-42", "main") == first
    assert git(rig, "show", "feat/issue-42:made.txt") == "made"
    assert Path(rig.state("apart")["repo_dir"], "made.txt").exists()
    again = rig.run(*arguments)
    assert again.code == 2
    assert "feat/issue-42: " in again.err
    assert "has this branch already" in again.err
    kept = rig.orc("prune", "--older-than", "0", "--yes")
    assert "branch feat/issue-42 has commits that are not merged" in kept.out + kept.err
    git(rig, "merge", "--quiet", "feat/issue-42")
    assert rig.orc("prune", "--older-than", "0", "--yes").code == 0
    assert git(rig, "branch", "--format=%(refname:short)") == "main"


def test_a_step_waits_for_a_person_with_and_without_the_older_flag(rig: Rig) -> None:
    rig.workflow(HUMAN)
    for flags in ((), ("--pause-for-human-input",)):
        asked = rig.run("--no-wait", *flags)
        assert asked.code == 4, asked
        assert rig.state(asked.run)["steps"]["approval"]["status"] == "WAITING_ON_HUMAN"
        assert rig.orc("abort", asked.run).code == 0


def test_the_step_of_the_page_puts_memory_updates_into_the_files_of_their_folders(rig: Rig) -> None:
    (script,) = re.findall(r"^```shell\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    (rig.repo / "remember.sh").write_text(script)
    (rig.repo / "src").mkdir()
    (rig.repo / "src" / "AGENTS.md").write_text("# AGENTS.md\n\n## Gotchas\n- known already\n\n## Other\n- stays\n")
    step = "  - {id: remember, agent: shell, prompt: remember.sh, needs: [code_review]}\n"
    rig.workflow((rig.repo / "workflow.yaml").read_text() + step)

    def update(scope: str, section: str, entry: str) -> dict[str, Any]:
        return {"scope": scope, "section": section, "entry": entry}

    learned = [update("src", "Gotchas", "run `make` first, it's needed"), update(".", "Patterns", "look before you leap")]
    more = [update("src", "Gotchas", "known already"), update("nowhere", "Notes", "lost"), {"entry": "of no section"}]
    rig.play({"coding": {"report": {"memory_updates": learned}}, "code_review": {"report": {"memory_updates": more}}})
    done = rig.run()
    assert done.code == 0, done
    assert (rig.repo / "src" / "AGENTS.md").read_text() == (
        "# AGENTS.md\n\n## Gotchas\n- run `make` first, it's needed\n- known already\n\n## Other\n- stays\n"
    )
    own = "\n## Patterns\n- look before you leap\n"
    assert sorted((rig.repo / "AGENTS.md").read_text().splitlines()) == sorted(f"{own}\n## Notes\n- of no section".splitlines())
