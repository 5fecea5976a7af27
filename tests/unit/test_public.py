"""The names that the package promises: the page lists them all, each is there and says what it is, importing costs nothing."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import agent_orchestrator
from agent_orchestrator import Orchestrator
from tests.stores import OWN_STORE

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(agent_orchestrator.__file__).parent
PAGE = (ROOT / "docs" / "library.md").read_text("utf-8")

LOADED = """
import sys
import agent_orchestrator
assert set(agent_orchestrator.__all__) <= set(dir(agent_orchestrator))
print(*sorted({name.split(".")[0] for name in sys.modules} & {"asyncio", "msgspec", "apsw", "click", "yaml", "typing"}))
print(*(name for name in sys.modules if name.startswith("agent_orchestrator.")))
"""
LOOKED = """
import sys
from agent_orchestrator import Orchestrator
Orchestrator(sys.argv[1]).runs()
print("asyncio" in sys.modules)
"""


def test_the_page_lists_every_name_and_no_other() -> None:
    rows = re.findall(r"^\| (`.+?`) \|", PAGE.partition("\n## Names\n")[2], re.M)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == agent_orchestrator.__all__


@pytest.mark.parametrize("name", agent_orchestrator.__all__)
def test_a_name_is_there_and_says_what_it_is(name: str) -> None:
    value = getattr(agent_orchestrator, name)
    assert isinstance(value, str) or inspect.getdoc(value)


def test_a_method_of_the_page_is_there_and_says_what_it_does() -> None:
    (row,) = re.findall(r"^\| `Orchestrator` \| (.+) \|$", PAGE, re.M)
    names = re.findall(r"`(\w+)`", row)
    assert len(names) >= 14
    assert [name for name in names if not inspect.getdoc(getattr(Orchestrator, name, None))] == []


def test_a_type_checker_reads_the_names_that_are_loaded() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
    read = {
        (node.module.removeprefix("agent_orchestrator."), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("agent_orchestrator.")
        for alias in node.names
    }
    assert read == {(module, name) for module, names in agent_orchestrator._HOMES.items() for name in names}
    assert {name for _, name in read} == set(agent_orchestrator.__all__)
    assert (PACKAGE / "py.typed").exists()


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        getattr(agent_orchestrator, "Nothing")  # noqa: B009 - a type checker would not let it pass


def run_python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    return done.stdout


def test_importing_the_package_loads_nothing_else() -> None:
    assert run_python(LOADED) == "\n\n"


@OWN_STORE
def test_looking_at_runs_loads_no_event_loop(repo: Path) -> None:
    assert run_python(LOOKED, str(repo)) == "False\n"
