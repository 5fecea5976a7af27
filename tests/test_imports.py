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

LAYERS = "surfaces, testing > cluster > runs > config"
FORBIDDEN = [
    ("errors.py", "import agent_orchestrator.core.ids", LAYERS, "errors -> agent_orchestrator.core.ids"),
    ("core/dag.py", "import agent_orchestrator.store", LAYERS, "core.dag -> agent_orchestrator.store"),
    ("store/stray.py", "import agent_orchestrator.git", LAYERS, "store.stray -> agent_orchestrator.git"),
    ("stray.py", "", LAYERS, "stray"),
    (
        "systems/stray.py",
        "import agent_orchestrator.systems.workflow",
        "A system never",
        "systems.stray -> agent_orchestrator.systems.workflow",
    ),
    ("core/dag.py", "import os", "core and systems are pure", "core.dag -> os"),
    ("systems/workflow/stray.py", "from random import choice", "core and systems are pure", "systems.workflow.stray -> random"),
    ("engine/stray.py", "import apsw", "Only the store speaks SQL", "engine.stray -> apsw"),
    ("engine/stray.py", "import time", "Only engine/clock.py reads the clock", "engine.stray -> time"),
    ("runs/stray.py", "import click.termui", "Only the surfaces know the terminal", "runs.stray -> click"),
]

IMPORT_ALL = """
import importlib, sys, threading
for name in sys.argv[1:]:
    importlib.import_module(name)
print(threading.active_count(), "asyncio" in sys.modules)
"""


def _python(code: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(cwd / "src")}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def _contract_of(fault: str, told: str) -> str:
    """Return the contract under whose heading the fault is told."""
    before, found, _ = told.partition(f"- agent_orchestrator.{fault} ")
    return max((contract for *_, contract, _ in FORBIDDEN), key=before.rfind) if found else ""


def _modules() -> list[str]:
    files = sorted(path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py"))
    dotted = (".".join(path.parts).removesuffix(".__init__") for path in files)
    return [name for name in dotted if not name.endswith(".__main__")]


def test_the_import_contracts_hold() -> None:
    linted = _python(LINT)
    assert linted.returncode == 0, linted.stdout


def test_each_forbidden_import_breaks_its_contract(tmp_path: Path) -> None:
    """All stand in one copy of the package: to read it costs a second, and a broken contract names each import that breaks it."""
    shutil.copytree(PACKAGE, tmp_path / "src" / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for file, line, _, _ in FORBIDDEN:
        with (tmp_path / "src" / PACKAGE.name / file).open("a") as module:
            module.write(f"\n{line}\n")
    linted = _python(LINT, cwd=tmp_path)
    assert linted.returncode == 1, linted.stdout
    told = " ".join(linted.stdout.partition("Broken contracts")[2].split())
    assert [_contract_of(fault, told) for *_, fault in FORBIDDEN] == [contract for *_, contract, _ in FORBIDDEN], linted.stdout


def test_every_module_imports_silently_and_starts_nothing() -> None:
    imported = _python(IMPORT_ALL, *_modules())
    assert imported.stderr == ""
    assert imported.stdout.split()[:1] == ["1"], imported.stdout


def test_importing_the_package_does_not_cost_asyncio() -> None:
    assert _python(IMPORT_ALL, "agent_orchestrator").stdout == "1 False\n"


DRIVING = ("agent_orchestrator.runs.world", "agent_orchestrator.engine.process", "agent_orchestrator.systems.workflow.system")


@pytest.mark.parametrize("few", ["ctypes", "difflib", "random", "tempfile", "tomllib"])
def test_taking_a_run_up_does_not_cost_what_few_runs_need(few: str) -> None:
    assert _python(f"{IMPORT_ALL}\nprint({few!r} in sys.modules)", *DRIVING).stdout.split()[-1] == "False"
