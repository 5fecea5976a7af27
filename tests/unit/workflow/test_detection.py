"""The command that runs a project's tests, by the files that real projects have."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent_orchestrator.runs.detection import detect_check


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("package.json", '{"scripts": {"test": "vitest run"}}', "npm test --silent"),
        ("package.json", '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}', None),
        ("package.json", '{"scripts": {"build": "tsc"}, "keywords": ["test"]}', None),
        ("package.json", "not JSON", None),
        ("pyproject.toml", "[tool.pytest.ini_options]\n", "python -m pytest -q"),
        ("pyproject.toml", "[project]\nname = 'x'\n", None),
        ("Cargo.toml", "[package]\n", "cargo test"),
        ("go.mod", "module x\n", "go test ./..."),
        ("Makefile", "test: build\n\tpytest\n", "make test"),
        ("Makefile", ".PHONY: check\ncheck:\n\ttrue\n", "make check"),
        ("Makefile", "lint test unit : build\n\ttrue\n", "make test"),
        ("Makefile", "all: test\n\ttest: no target\n", None),
        ("Makefile", "test := 3\ntesting:\n\ttrue\n", None),
        ("Makefile", "check:\n\ttrue\ntest:\n\ttrue\n", "make test"),
    ],
)
def test_a_project_is_recognised_by_what_its_files_say(
    name: str, text: str, command: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for program in ("npm", "cargo", "go", "make", "python"):
        (bin_folder / program).write_text("#!/bin/sh\n")
        (bin_folder / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_folder))
    (tmp_path / name).write_text(text)
    found = detect_check(tmp_path)
    assert (found.command if found is not None else None) == command
    assert found is None or name in found.why


def test_a_command_whose_program_is_missing_is_none_and_python3_does_for_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert detect_check(tmp_path) is None
    (tmp_path / "bin" / "python3").symlink_to(shutil.which("true", path="/usr/bin:/bin") or "/bin/true")
    found = detect_check(tmp_path)
    assert found is not None
    assert found.command == "python3 -m pytest -q"
