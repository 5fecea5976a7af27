"""The files that the style rules look at, parsed once, and the one way a rule complains."""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tests", "benchmarks", "docs", "examples", ".ci")
TEXT = {".py", ".md", ".sql", ".json", ".yaml", ".yml", ".toml", ".sh", ".txt", ".cfg", ""}

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """One Python file, walked once for all rules."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.tree = ast.parse(text, path)

    @cached_property
    def _by_kind(self) -> dict[type[ast.AST], list[ast.AST]]:
        found: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        for node in ast.walk(self.tree):
            found[type(node)].append(node)
        return found

    def at(self, node: ast.AST) -> str:
        """Return the place of a node, as editors open it."""
        return f"{self.path}:{getattr(node, 'lineno', 1)}"

    def nodes(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """Every node of these kinds."""
        return (node for kind in kinds for node in self._by_kind.get(kind, ()))

    def functions(self) -> Iterator[Function]:
        """Every function and method."""
        return (node for node in self.nodes(ast.FunctionDef, ast.AsyncFunctionDef) if isinstance(node, Function))

    def calls(self) -> Iterator[tuple[ast.Call, str]]:
        """Every call with the dotted name of what is called."""
        return ((node, dotted(node.func)) for node in self.nodes(ast.Call) if isinstance(node, ast.Call))

    def imports(self) -> Iterator[tuple[ast.AST, str]]:
        """Every imported name, in full."""
        for node in self.nodes(ast.Import, ast.ImportFrom):
            if isinstance(node, ast.Import):
                yield from ((node, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a name or attribute; what cannot be named (a call, an index) is left out."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""


@cache
def files() -> tuple[Path, ...]:
    """Every text file that belongs to the project."""
    inside = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    found = (path for path in (*ROOT.iterdir(), *inside) if path.is_file() and path.suffix in TEXT)
    # In a worktree `.git` is a file, and names the machine's paths.
    return tuple(sorted(path for path in found if "__pycache__" not in path.parts and path != ROOT / ".git"))


@cache
def modules(folder: str = "") -> tuple[Module, ...]:
    """Every Python file below a folder of the project, each parsed once."""
    if folder:
        return tuple(module for module in modules() if module.path.startswith(f"{folder}/"))
    gc.disable()  # Millions of objects that all stay: to look through them again and again takes as long as to make them.
    try:
        python = [path for path in files() if path.suffix == ".py"]
        return tuple(Module(str(path.relative_to(ROOT)), path.read_text("utf-8")) for path in python)
    finally:
        gc.freeze()
        gc.enable()


def package() -> tuple[Module, ...]:
    """The modules that ship."""
    return modules("src")


def check_none(faults: Iterable[str], rule: str) -> None:
    """Fails with the rule and every place that breaks it."""
    found = list(faults)
    assert not found, "\n  ".join([f"{rule}:", *found])
