"""Lines of keys in TOML, as a person would count them, and faults with these lines."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from agent_orchestrator.config.documents import find_lines, read_file

DOCUMENT = '''\
# [run] in a comment is no table
publish = false

[run]
agent = "claude"  # agent = "codex"
check = """
[run.notify]
on_end = "this is text"
"""
permissions.allow_tools = [
  "Read",  # ]
  "Bash(make:*)",
]
notify = { on_wait = "a = 1", on_end = "b" }

  [agents . "my agent"]
  command = ["x"]
[agents.claude.prices.default]
input = 1
'''


def test_the_line_of_a_key_is_that_of_its_statement_whatever_stands_in_texts_and_comments() -> None:
    lines = find_lines(DOCUMENT)
    assert tomllib.loads(DOCUMENT)["run"]["check"].startswith("[run.notify]")
    assert {".".join(key): line for key, line in lines.items()} == {
        "publish": 2,
        "run": 4,
        "run.agent": 5,
        "run.check": 6,
        "run.permissions": 10,
        "run.permissions.allow_tools": 10,
        "run.notify": 14,
        "run.notify.on_wait": 14,
        "run.notify.on_end": 14,
        "agents": 16,
        "agents.my agent": 16,
        "agents.my agent.command": 17,
        "agents.claude": 18,
        "agents.claude.prices": 18,
        "agents.claude.prices.default": 18,
        "agents.claude.prices.default.input": 19,
    }


def test_lines_are_counted_alike_with_the_line_ends_of_windows() -> None:
    assert find_lines(DOCUMENT.replace("\n", "\r\n")) == find_lines(DOCUMENT)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[run]\nagnet = 'x'", 2, "[run]: unknown key agnet; did you mean agent?"),
        ("[run]\n\nbudget_usd = 3", 3, "[run]: unknown key budget_usd; did you mean budget?"),
        ("[run]\non_end = 'x'", 2, "[run]: unknown key on_end; did you mean notify.on_end?"),
        ("[run]\nzebra = 1", 2, "[run]: unknown key zebra; there are agent, roles, models, "),
        ("[rum]\n", 1, "unknown key rum; did you mean run?"),
        ("[run.notify]\non_ends = 'x'", 2, "[run.notify]: unknown key on_ends; did you mean on_end?"),
        ("run = 3", 1, "run must be a table, as in [run]."),
        ("[run]\nroles = ['x']", 2, "run.roles must be a table, as in [run.roles]."),
        ("[run]\nworktree = 1", 2, "run.worktree is 1: it must be true or false."),
        ("[run]\nbudget = nan", 2, "run.budget is nan: it must be a positive amount such as 20 or $20."),
        ("[run]\ncheck = ' '", 2, "run.check is ' ': it must be a text that is not empty."),
        ("[run.permissions]\nallow_tools = 'Read'", 2, "run.permissions.allow_tools is 'Read': it must be a list of texts."),
        ("[run.roles]\nqa = 3", 2, "run.roles.qa is 3: it must be a text that is not empty."),
        ("[budget]\nrun_usd = 0", 2, "[budget]: run_usd is 0: it must be a positive amount"),
        (
            "[run]\nbudget = 1\n[budget]\nrun_usd = 2",
            4,
            "budget.run_usd says the same as run.budget in line 2; keep one of them.",
        ),
        ("publish = true\n[run]\npublish = true", 3, "run.publish says the same as publish in line 1; keep one of them."),
        ("[run]\nagent = 'x'\nagent = 'y'", 3, "the file is not TOML: Cannot overwrite a value."),
        ("[run]\ncheck = '''\n", 2, "the file is not TOML: "),
    ],
)
def test_a_fault_names_its_line_and_what_to_write_instead(text: str, line: int, said: str, tmp_path: Path) -> None:
    file = tmp_path / ".orc.toml"
    file.write_text(text)
    read = read_file(file)
    assert read is not None
    (fault,) = read.faults
    assert fault.problem.located("x").startswith(f"x:{line}: {said}")


def test_every_fault_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / ".orc.toml"
    file.write_text("[run]\nagnet = 'x'\nworktree = 'no'\n[agents.claude]\nmodle = 'y'\nmodel = 'z'\n")
    read = read_file(file)
    assert read is not None
    assert [fault.line for fault in read.faults] == [2, 3, 5]
    assert [(entry.key, entry.value, entry.line) for entry in read.entries] == [(("agents", "claude", "model"), "z", 6)]


def test_a_file_that_cannot_be_read_is_a_fault_and_a_missing_one_is_none(tmp_path: Path) -> None:
    assert read_file(tmp_path / "missing.toml") is None
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "bytes.toml"):
        read = read_file(path)
        assert read is not None
        assert len(read.faults) == 1
        assert not read.entries
