"""The import contracts of pyproject.toml hold, each of them bites, and importing the package does nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "agent_orchestrator"

LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"

IMPORT_ALL = """
import importlib, sys, threading
for name in sys.argv[1:]:
    importlib.import_module(name)
print(threading.active_count(), "asyncio" in sys.modules)
"""


def _python(code: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(cwd / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def _modules() -> list[str]:
    files = sorted(path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py"))
    dotted = (".".join(path.parts).removesuffix(".__init__") for path in files)
    return [name for name in dotted if not name.endswith(".__main__")]


def test_the_import_contracts_hold() -> None:
    linted = _python(LINT)
    assert linted.returncode == 0, linted.stdout


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("errors.py", "import agent_orchestrator.core.ids", "surfaces, testing > runs > config"),
        ("core/dag.py", "import agent_orchestrator.store", "surfaces, testing > runs > config"),
        ("store/stray.py", "import agent_orchestrator.git", "surfaces, testing > runs > config"),
        ("stray.py", "", "surfaces, testing > runs > config"),
        ("systems/stray.py", "import agent_orchestrator.systems.workflow", "A system never imports another"),
        ("core/dag.py", "import os", "core and systems are pure"),
        ("systems/workflow/stray.py", "from random import choice", "core and systems are pure"),
        ("engine/stray.py", "import apsw", "Only the store speaks SQL"),
        ("engine/stray.py", "import time", "Only engine/clock.py reads the clock"),
        ("runs/stray.py", "import click.termui", "Only the surfaces know the terminal"),
    ],
)
def test_a_forbidden_import_breaks_its_contract(tmp_path: Path, file: str, line: str, contract: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "src" / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "src" / PACKAGE.name / file).open("a") as module:
        module.write(f"\n{line}\n")
    linted = _python(LINT, cwd=tmp_path)
    printed = " ".join(linted.stdout.split())
    assert linted.returncode == 1, printed
    broken = [text for text in printed.split("BROKEN")[:-1] if contract in text.split("KEPT")[-1]]
    assert broken, printed


def test_every_module_imports_silently_and_starts_nothing() -> None:
    imported = _python(IMPORT_ALL, *_modules())
    assert imported.stderr == ""
    assert imported.stdout.split()[:1] == ["1"], imported.stdout


def test_importing_the_package_does_not_cost_asyncio() -> None:
    assert _python(IMPORT_ALL, "agent_orchestrator").stdout == "1 False\n"
