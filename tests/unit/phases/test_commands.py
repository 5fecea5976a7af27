"""The command of a criterion: run what is one, and leave names, paths and signatures words."""

from __future__ import annotations

import pytest

from agent_orchestrator.systems.phases.commands import find_command

HERE = {"make", "pytest", "git", "find", "test", "true", "sort", "python3", "./check.sh", "grep", "cd", "!"}


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Tests pass: `make test`", "make test"),
        ("Tests pass: `make`", "make"),
        ("Tests pass `make test`", "make test"),
        ("All tests pass (`python3 -m pytest`)", "python3 -m pytest"),
        ("`git status` is clean", "git status"),
        ("`pytest` passes", "pytest"),
        ("`make one`", "make one"),
        ("Works: `$ make test`.", "make test"),
        ("It is there `test -f a.txt`", "test -f a.txt"),
        ("None left: `! grep -rq left src`", "! grep -rq left src"),
        ("Builds: `cd web && npm test`", "cd web && npm test"),
        ("With a name: `CI=1 make test`", "CI=1 make test"),
        ("The script: `./check.sh --all`", "./check.sh --all"),
        ("Not here, but plain: `npm ci --silent`", "npm ci --silent"),
        ("Tests pass: `pytest -q` and lint is clean: `make lint`", "( pytest -q ) && ( make lint )"),
        ("Tests pass. run: anything at all", "anything at all"),
        ("Tests pass (run: `odd tool`)", "odd tool"),
        ("Tests pass (run: odd tool)", "odd tool"),
    ],
)
def test_what_reads_like_a_command_line_is_run(text: str, command: str) -> None:
    assert find_command(text, HERE.__contains__).command == command


@pytest.mark.parametrize(
    "text",
    [
        "`resolve(symbol: str, as_of: date) -> Info | None`",
        "Operators are composable: `rank(ts_mean(close, 20))`",
        "`pyproject.toml` with metadata",
        "`src/quantdl/` package with `__init__.py`",
        "Notebook in `examples/quickstart.ipynb`",
        "Verify imports work: `from quantdl import Client`",
        "`GET /users` answers with 404",
        "Returns `true` when `find` works and `sort by name` is kept",
        "Configurable via env var `QUANTDL_BUCKET`",
        "If `universe='top3000'`, all are loaded",
        "Pinned with ranges (e.g. `polars>=0.20,<1.0`)",
        "Built with `make`",
        "The class is called: `UserModel`",
        "The column is called: `password hash`",
        "judged: `make test` is the only way to test",
        "`make test` is nice (judged)",
        "`SELECT * FROM users` is quick",
        "Nothing in backticks",
    ],
)
def test_names_paths_and_signatures_are_words(text: str) -> None:
    assert find_command(text, HERE.__contains__).command is None


def test_a_command_in_a_sentence_whose_program_is_missing_is_not_run_and_named() -> None:
    found = find_command("Lint is clean (`uv run ruff check .`)", HERE.__contains__)
    assert (found.command, found.missing) == (None, ("uv run ruff check .",))
