"""README and docs cannot rot: what they name exists, their files are valid, their tables are complete, the tour is replayed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from agent_orchestrator.agents.script import Rule, parse_script
from agent_orchestrator.core.failure import FailureKind
from agent_orchestrator.runs.exits import EXIT_CODES
from agent_orchestrator.surfaces.cli.main import main, orc
from agent_orchestrator.systems.workflow.parse import LOOP_KEYS, STEP_KEYS, WORKFLOW_KEYS
from agent_orchestrator.testing.agents import CONTRACT
from tests.acceptance.examples import DOCS, FENCE, INLINE, PAGES, README, SHELL
from tests.acceptance.rig import ROOT, WAIT_S, Rig

GENERATED = DOCS / "cli.md"
SEPARATORS = {"|", "||", "&&", "&", ";", ">", ">>", "<"}

_TIME = re.compile(r"\d\d:\d\d:\d\d")
_WHO = re.compile(r"approved by [^()]+ \([^()]+\):")
_DURATION = re.compile(r"\b(?:\d+m )?\d+(?:\.\d+)?s(?:, [\d.ms ]+ of it at work)?(?!\w)")
"""On a busy machine the tour takes longer than its agents work, and says so."""


class Block(NamedTuple):
    """A fenced piece of a page."""

    page: Path
    kind: str
    text: str


def blocks(*pages: Path) -> list[Block]:
    return [Block(page, kind, text) for page in pages for kind, text in FENCE.findall(page.read_text("utf-8"))]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def command_lines(page: Path) -> Iterator[tuple[str, bool]]:
    """Every `orc …` of a page, and whether it is meant to be typed as it stands."""
    text = page.read_text("utf-8")
    for block in blocks(page):
        if block.kind in SHELL:
            lines = block.text.replace("\\\n", " ").splitlines()
            typed = [line.removeprefix("$ ") for line in lines if block.kind != "console" or line.startswith("$ ")]
            yield from ((line, True) for line in typed if line.startswith("orc "))
    for code in INLINE.findall(FENCE.sub("", text)):
        if code.startswith("orc "):
            yield code, False


def words_of(line: str) -> list[str]:
    """The words after `orc`, up to what is the shell's; "…" stands for anything."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word in SEPARATORS:
            break
        if word != "…":
            words.append(word)
    return words[1:]


def fault_of(line: str, *, whole: bool) -> str | None:
    """Say what is wrong with a command line: an unknown command or option, or, of a whole one, anything click finds."""
    words = words_of(line)
    root = click.Context(orc, info_name="orc", **orc.context_settings)
    if not words or words[0].startswith("-") or words[0].isupper():
        return None
    command = orc.get_command(root, words[0])
    if command is None:
        return f"there is no command {words[0]!r}"
    while isinstance(command, click.Group) and len(words) > 1 and not words[1].startswith("-") and not words[1].isupper():
        root = click.Context(command, info_name=words[0], parent=root)
        words = words[1:]
        command = command.get_command(root, words[0])
        if command is None:
            return f"there is no command {words[0]!r}"
    if whole:
        try:
            command.make_context(words[0], words[1:], parent=root).close()  # what its options choose is over with it
        except click.UsageError as error:
            return error.format_message()
        return None
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    unknown = [word for word in words[1:] if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in known]
    return f"there is no option {unknown[0]}" if unknown else None


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_line_names_a_command_and_options_that_exist(page: Path) -> None:
    faults = [f"{line}: {fault}" for line, whole in command_lines(page) if (fault := fault_of(line, whole=whole))]
    assert faults == []


def test_wrong_command_lines_would_be_found() -> None:
    assert fault_of("orc loop fly", whole=False) == "there is no command 'fly'"
    assert fault_of("orc loop run x --until y --zzz", whole=True) == "No such option '--zzz'."
    assert fault_of("orc fly RUN", whole=False) == "there is no command 'fly'"
    assert fault_of("orc pause RUN --later", whole=False) == "there is no option --later"
    assert fault_of("orc swarm run x.jsonl", whole=True) == "Missing option '--max-agents'."
    assert len(list(command_lines(README))) >= 15


def test_every_whole_example_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = {"workflow": 0, "script": 0, "json": 0}
    for number, block in enumerate(blocks(*PAGES)):
        if block.kind == "yaml" and re.search(r"^steps:", block.text, re.M):
            file = tmp_path / f"{number}.yaml"
            file.write_text(block.text)
            assert main(["validate", str(file)]) == 0, (name(block.page), capsys.readouterr().err)
            seen["workflow"] += 1
        elif block.kind == "yaml" and block.text.startswith("- "):
            assert parse_script(block.text, name(block.page))
            seen["script"] += 1
        elif block.kind == "json":
            assert json.loads(block.text)
            seen["json"] += 1
        else:
            assert block.kind != "yaml", f"{name(block.page)}: neither a workflow nor a script:\n{block.text}"
    assert all(seen.values()), seen


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_python_example_compiles(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "python":
            compile(block.text, name(page), "exec")
    assert page.read_text("utf-8").count("```") % 2 == 0


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("workflows.md", [*WORKFLOW_KEYS, *STEP_KEYS, *LOOP_KEYS]),
        ("agents.md", [*Rule.__struct_fields__, *(kind.value for kind in FailureKind)]),
    ],
)
def test_every_key_and_kind_is_explained(page: str, words: list[str]) -> None:
    text = (DOCS / page).read_text("utf-8")
    assert [word for word in words if f"`{word}`" not in text] == []


def test_every_variable_of_the_contract_is_explained() -> None:
    text = (DOCS / "agents.md").read_text("utf-8")
    told = [*CONTRACT, "STEP_MODEL", "FEEDBACK_PATH", "MANUAL_RESULT_PATH", "ORC_LAUNCH"]
    assert [variable for variable in told if not re.search(rf"^\|.*\b{variable}\b", text, re.M)] == []


@pytest.mark.parametrize("page", [README, DOCS / "operations.md"], ids=name)
def test_every_exit_code_is_listed(page: Path) -> None:
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", page.read_text("utf-8"), re.M)] == list(EXIT_CODES)


def test_the_index_lists_every_page() -> None:
    linked = set(re.findall(r"\]\(([\w/.-]+)\)", (DOCS / "index.md").read_text("utf-8")))
    assert {page.name for page in DOCS.glob("*.md")} - {"index.md"} <= linked
    assert GENERATED.name in linked


def test_the_tour_goes_as_it_is_told(rig: Rig) -> None:
    tour = (DOCS / "tour.md").read_text("utf-8")
    (workflow, script), (screen,) = (
        [text for kind, text in FENCE.findall(tour) if kind == wanted] for wanted in ("yaml", "console")
    )
    (rig.repo / "workflow.yaml").write_text(workflow)
    (rig.repo / "rehearsal.yaml").write_text(script)
    said = ""
    for command in re.findall(r"^\$ (.+)$", screen, re.M):
        done = subprocess.run(
            ["sh", "-c", f'orc() {{ "{sys.executable}" -m agent_orchestrator.cli "$@"; }}\n{command}'],
            cwd=rig.repo,
            env=rig.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        said += f"$ {command}\n{done.stdout}"
    assert _still(said.replace(str(rig.repo), "/tmp/tour")) == _still(screen)


def _still(text: str) -> str:
    """Return the parts that do not change from one time to the next."""
    return _WHO.sub("approved by anna (pts/3):", _DURATION.sub("0.0s", _TIME.sub("00:00:00", text)))
