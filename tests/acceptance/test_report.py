"""The morning after: `orc report` over runs that finished, failed, wait, are parked, and what they spent."""

from __future__ import annotations

import html.parser
import subprocess
from pathlib import Path

import msgspec
import pytest

from agent_orchestrator.core.summary import Summary
from agent_orchestrator.engine.journal import Folded
from agent_orchestrator.runs.digest import make_digest
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import Append, StoredRun
from tests.acceptance.rig import HUMAN, Rig
from tests.acceptance.test_budgets import CLAUDE

CHECKED = """
name: {name}
steps:
  - {{id: code, agent: coder, prompt: prompt.md}}
  - {{id: review, agent: reviewer, prompt: prompt.md, needs: [code], check: '{check}'}}
"""
TAGS = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    """A repository in which each kind of thing has happened."""
    repo = tmp_path_factory.mktemp("night") / "repo"
    repo.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=repo, check=True)
    rig = Rig(repo)
    (repo / "play.yaml").write_text("- step: code\n  cost_usd: 0.75\n  tokens: {input: 1000, output: 200}\n- step: '*'\n")
    play = ("--rehearse", "play.yaml", "--shared-tree", "--no-wait", "--run-id")
    rig.workflow(CHECKED.format(name=TAGS, check="test -f play.yaml"))
    assert rig.orc("run", "--workflow", "workflow.yaml", *play, "good").code == 0
    rig.workflow(CHECKED.format(name="broken", check="false"))
    assert rig.orc("run", "--workflow", "workflow.yaml", *play, "bad").code == 1
    rig.workflow(HUMAN)
    assert rig.orc("run", "--workflow", "workflow.yaml", *play, "asks").code == 4
    rig.workflow("name: bare\nsteps:\n  - {id: only, agent: coder, prompt: prompt.md}\n")
    assert rig.orc("run", "--workflow", "workflow.yaml", *play, "trust").code == 0
    program = rig.side / "claude.py"
    program.write_text(CLAUDE)
    program.chmod(0o755)
    (repo / ".orc.toml").write_text(f'[agents.claude]\nbinary = "{program}"\n')
    rig.workflow("name: limited\nsteps:\n  - {id: s, agent: claude, prompt: prompt.md}\n")
    limited = ("--env", "LIMITED_S=3600", "--shared-tree", "--no-wait", "--run-id", "parked")
    assert rig.orc("run", "--workflow", "workflow.yaml", *limited).code == 6
    return rig


def test_one_screen_tells_what_was_finished_and_how_what_failed_waits_and_was_spent(night: Rig) -> None:
    said = night.orc("report")
    assert said.code == 0, said
    lines = said.out.splitlines()
    assert "2 finished, 1 failed, 1 waiting, 1 parked; " in lines[0]
    assert len(lines) <= 24
    assert all(len(line) <= 80 for line in lines)
    body = said.out
    assert "good  <script>alert(1)</s…  `test -f play.yaml` passed (" in body
    assert "trust  bare  nothing verified it" in body
    assert "orc show bad" in body
    assert "check `false` exited with code 1" in night.orc("report", env={"COLUMNS": "140"}).out
    assert "orc approve asks approval" in body
    assert "parked until " in body
    assert "$1.50  scripted  2 launches, 2,400 tokens" in body


def test_the_same_as_data_names_commands_that_do_what_they_say(night: Rig) -> None:
    facts = night.orc("report", "--json").json
    (waiting,) = facts["waiting"]["entries"]
    assert waiting["ways"] == ["orc approve asks approval"]
    assert facts["finished"]["total"] == 2
    good = next(one for one in facts["finished"]["entries"] if one["run_id"] == "good")
    assert good["evidence"][0] | {"duration_s": 0} == {"unit": "review", "command": "test -f play.yaml", "duration_s": 0}
    spent = {line["agent"]: line for line in facts["spent"]}
    assert spent["scripted"]["cost_usd"] >= 0.75
    assert night.orc("show", *facts["failed"]["entries"][0]["ways"][0].split()[2:]).code == 0


def test_one_run_is_told_alone(night: Rig) -> None:
    said = night.orc("report", "bad")
    assert said.out.startswith("Run bad: 1 failed; ")
    assert "good" not in said.out
    assert night.orc("report", "nobody").code == 2


class Page(html.parser.HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.said = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.said += data


def test_the_page_is_one_file_without_scripts_that_loads_nothing(night: Rig) -> None:
    page = Page(night.orc("report", "--html").out)
    assert "script" not in page.tags
    assert page.links == []
    assert TAGS in page.said
    assert "orc approve asks approval" in page.said


def test_names_are_only_text_in_markdown(night: Rig) -> None:
    said = night.orc("report", "--md").out
    assert "## Waiting for you" in said
    assert TAGS not in said
    assert r"**\<script\>alert(1)\</script\>** (`good`)" in said
    assert "`orc approve asks approval`" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--since", "yesterday"), "--since is 'yesterday': it must be a duration such as 90m, 12h or 2d, or a time such as"),
        (("--md", "--html"), "--md, --html and --json exclude each other; give one."),
        (("bad", "--since", "2h"), "--since is for all runs; a report of one run tells all of it."),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(night: Rig, words: tuple[str, ...], said: str) -> None:
    refused = night.ask("report", *words)
    assert refused.code == 2
    assert said in refused.err


def test_what_ended_before_is_left_out_and_what_waits_is_not(night: Rig) -> None:
    late = night.orc("report", "--since", "2100-01-01", "--json").json
    assert (late["finished"]["total"], late["failed"]["total"]) == (0, 0)
    assert late["spent"] == []
    assert late["waiting"]["total"] == 1
    assert night.orc("report", "--since", "2d", "--json").json["finished"]["total"] == 2


def test_a_repository_without_runs_has_nothing_to_tell_and_gets_no_store(rig: Rig) -> None:
    said = rig.orc("report")
    assert said.code == 0
    assert said.out.endswith(": nothing happened\n")
    assert not (rig.repo / ".git" / "orc").exists()


class Counting(Orchestrator):
    """Counts the journals that it reads."""

    folds = 0

    def fold(self, run: StoredRun) -> Folded:
        self.folds += 1
        return super().fold(run)


def test_no_journal_is_read_for_what_the_list_of_runs_tells(night: Rig) -> None:
    with Counting(str(night.repo)) as orchestrator:
        digest = make_digest(orchestrator, 0, 4)
        assert digest.finished.entries[-1].evidence[0].command == "test -f play.yaml"
        assert digest.failed.entries[0].why == "review: Gate failure: check `false` exited with code 1"
        assert digest.waiting.entries[0].why.startswith("asks: ")
        assert orchestrator.folds == 0


def test_of_an_earlier_version_only_the_journals_of_runs_that_are_shown_are_read(rig: Rig, repo: Path) -> None:
    assert rig.run("--run-id", "seed").code == 0
    with Counting(str(repo)) as orchestrator:
        seed = orchestrator.find("seed")
        spec, system = orchestrator.fold(seed).state.spec, orchestrator.fold(seed).system
        for number in range(40):
            context = msgspec.structs.replace(seed.context, run=f"copy{number}")
            made = orchestrator.create(system, spec, "copy", context)
            over = Summary(status="completed", done=3, total=3)
            at_us = orchestrator.clock.now_us()
            orchestrator.store.append([Append(run=made.id, expected_seq=1, at_us=at_us, body=b"[]", summary=over)])
        orchestrator.folds = 0
        digest = make_digest(orchestrator, 0, 4)
        assert digest.finished.total == 41
        assert len(digest.finished.entries) == 4
        assert orchestrator.folds == 4
