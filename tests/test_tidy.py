"""The house style as tests, one per rule; the message says what to do. Rules are bent in `tidy/exceptions.py` or not at all."""

from __future__ import annotations

import ast
import re
from pathlib import PurePath

import pytest

from tests.tidy.exceptions import (
    CALLED_FROM_OUTSIDE,
    CATCHES_EVERYTHING,
    IMPORTS_LATE,
    KNOWS_TYPES,
    PRINTS,
    READS_CLOCK,
    READS_ENVIRONMENT,
    RUNS_GIT,
    SKIPS,
    SRC,
)
from tests.tidy.rooms import list_named_systems
from tests.tidy.source import ROOT, Function, Module, check_none, dotted, files, modules, package
from tests.tidy.words import GERUNDS, find_gerunds, find_riddles, find_shared_names

pytestmark = pytest.mark.xdist_group("tidy")  # One process parses all files for all rules.

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
DOCSTRING_LINES_MAX = 8

JUDGES = re.compile(r"\.systems\.\w+\.(?:decide|advance|steps|judging)\b|\.core\.retry\b|\.core\.judging\.(?:judge_|retry_us)")
"""The imports that `evolve` may not have: rules that may change, while the journals that they made stay."""

FORBIDDEN_WORDS = {"utils", "util", "helpers", "helper", "common", "manager", "service", "handler", "base", "misc"}
LEFT_UNDONE = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
MACHINE_PATH = re.compile(
    r"(?<![\w.}])/(?:root|work|home/(?!user\b|you\b|me\b)\w+|Users/(?!operator\b|you\b)\w+|opt/(?:pypi|wheels))(?=/)"
)
REGISTRY_HOST = re.compile(
    r"index-url\s*[=\s]\s*\w+:/|://[^\s/:(]*(?:pythonhosted|artifactory|jfrog|nexus)|:/{2,3}[\w./-]+/simple\b"
)
STARTS_PROGRAM = re.compile(
    r"(?:^|\.)(?:run|Popen|call|check_call|check_output|create_subprocess_exec|posix_spawnp?|exec[lv]p?e?|Order)$"
)
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(<?([^)\s>]+)>?\)")


def _is_listed(module: Module, places: dict[str, str]) -> bool:
    return any(module.path == place or (place.endswith("/") and module.path.startswith(place)) for place in places)


def _prose(docstring: str) -> list[str]:
    """A docstring's lines of text: drawings and examples are indented."""
    return [line for line in docstring.splitlines() if line and not line.startswith(" ")]


# Sizes and names


def test_no_module_is_longer_than_400_lines() -> None:
    long = ((module.path, module.text.count("\n")) for module in modules())
    check_none(
        (f"{path}: {lines} lines" for path, lines in long if lines > MODULE_LINES_MAX), "split the module by what it is about"
    )


def test_no_function_is_longer_than_70_lines() -> None:
    sizes = ((m.at(f), f.name, (f.end_lineno or f.lineno) - f.lineno + 1) for m in modules() for f in m.functions())
    check_none((f"{at}: {name} has {size} lines" for at, name, size in sizes if size > FUNCTION_LINES_MAX), "split the function")


def test_every_module_says_in_a_few_lines_what_it_is_for() -> None:
    said = [(module, _prose(ast.get_docstring(module.tree) or "")) for module in package() if module.text.strip()]
    faults = [f"{module.path}: {len(lines)} lines" for module, lines in said if not 1 <= len(lines) <= DOCSTRING_LINES_MAX]
    check_none(faults, "a module docstring has 1 to 8 lines of text (indented drawings are free)")


def test_no_module_is_named_after_nothing() -> None:
    named = (
        (module.path, {word for part in PurePath(module.path).with_suffix("").parts for word in part.split("_")})
        for module in modules()
    )
    check_none(
        (path for path, words in named if words & FORBIDDEN_WORDS),
        f"name the module after its noun, not {sorted(FORBIDDEN_WORDS)}",
    )


def test_no_module_is_named_after_a_doing() -> None:
    check_none(find_gerunds(), f"name the module after its noun; {sorted(GERUNDS)} are nouns")


def test_no_two_public_classes_share_a_name() -> None:
    check_none(find_shared_names(), "a name means one thing in the whole package")


def test_no_docstring_is_a_riddle() -> None:
    check_none(find_riddles(), "say the noun; a function's docstring begins with a verb")


def test_public_names_are_listed_in_order() -> None:
    faults = []
    for module in package():
        for node in module.tree.body:
            if isinstance(node, ast.Assign) and any(dotted(target) == "__all__" for target in node.targets):
                names = ast.literal_eval(node.value)
                if list(names) != sorted(set(names)):
                    faults.append(module.at(node))
    check_none(faults, "__all__ is a literal, sorted, without repeats")


def test_nothing_is_left_undone() -> None:
    faults = []
    for path in files():
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if LEFT_UNDONE.search(line):
                faults.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    check_none(faults, "do it, or open an issue")


def _used_names(module: Module) -> set[str]:
    """Every name that a module mentions other than by defining it."""
    names = {node.id for node in module.nodes(ast.Name) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    names |= {node.attr for node in module.nodes(ast.Attribute) if isinstance(node, ast.Attribute)}
    names |= {node.arg for node in module.nodes(ast.keyword) if isinstance(node, ast.keyword) and node.arg}
    texts = (node.value for node in module.nodes(ast.Constant) if isinstance(node, ast.Constant))
    return names | {text for text in texts if isinstance(text, str) and text.isidentifier()}


def _defined_names(module: Module) -> list[tuple[ast.AST, str]]:
    """Functions, classes, constants and methods; what Python itself calls is left out."""
    found: list[tuple[ast.AST, str]] = []
    for node in module.tree.body:
        if isinstance(node, Function | ast.ClassDef):
            found.append((node, node.name))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [(node, target.id) for target in targets if isinstance(target, ast.Name) and target.id != "_"]
        if isinstance(node, ast.ClassDef):
            found += [(method, method.name) for method in node.body if isinstance(method, Function)]
    return [(node, name) for node, name in found if not name.startswith("__")]


def test_everything_that_is_defined_is_used() -> None:
    used = set().union(*(_used_names(module) for module in package()))
    faults = []
    for module in package():
        if not _is_listed(module, CALLED_FROM_OUTSIDE):
            faults += [f"{module.at(node)}: {name}" for node, name in _defined_names(module) if name not in used]
    check_none(faults, "nothing uses it: delete it")


# What code may touch


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {dotted(kind).rsplit(".", 1)[-1] for kind in kinds if kind is not None}
    last = handler.body[-1]
    passes_on = isinstance(last, ast.Raise) and last.exc is None
    return handler.type is None or "Exception" in names or ("BaseException" in names and not passes_on)


def test_only_performed_effects_and_the_process_edge_catch_everything() -> None:
    handlers = ((m, h) for m in package() if not _is_listed(m, CATCHES_EVERYTHING) for h in m.nodes(ast.ExceptHandler))
    check_none(
        (m.at(h) for m, h in handlers if isinstance(h, ast.ExceptHandler) and _catches_everything(h)),
        "name the errors that can happen here; a broken invariant must not be caught",
    )


def test_only_config_reads_the_environment() -> None:
    faults = []
    for module in package():
        if not _is_listed(module, READS_ENVIRONMENT):
            used = [(node, dotted(node)) for node in module.nodes(ast.Attribute)]
            faults += [
                module.at(node) for node, name in (*used, *module.imports()) if re.match(r"os\.(environb?|getenvb?)$", name)
            ]
    check_none(faults, "take it from Settings; only config/ reads the environment")


def test_only_the_clock_reads_the_time() -> None:
    faults = []
    for module in package():
        if module.path != READS_CLOCK:
            faults += [module.at(node) for node, name in module.imports() if name == "time" or name.startswith("time.")]
            faults += [
                module.at(node) for node, name in module.calls() if re.search(r"\b(datetime|date)\.(now|utcnow|today)$", name)
            ]
    check_none(faults, "ask the clock you were given; only engine/clock.py reads the time")


def _starts_git(call: ast.Call, name: str) -> bool:
    given = [*call.args[:2], *(keyword.value for keyword in call.keywords if keyword.arg in {"args", "argv"})]
    first = [node.elts[0] if isinstance(node, ast.List | ast.Tuple) and node.elts else node for node in given]
    return bool(STARTS_PROGRAM.search(name)) and any(isinstance(node, ast.Constant) and node.value == "git" for node in first)


def test_only_the_git_package_starts_git() -> None:
    calls = ((m, call, name) for m in package() if not m.path.startswith(RUNS_GIT) for call, name in m.calls())
    check_none((m.at(call) for m, call, name in calls if _starts_git(call, name)), "ask agent_orchestrator.git")


def _makes_types_known(call: ast.Call, name: str) -> bool:
    typed = any(keyword.arg == "type" for keyword in call.keywords)
    return name in {"msgspec.convert", "msgspec.json.Decoder"} or (name == "msgspec.json.decode" and typed)


def test_only_one_module_makes_types_known() -> None:
    calls = ((m, call, name) for m in package() if m.path != KNOWS_TYPES for call, name in m.calls())
    check_none((m.at(call) for m, call, name in calls if _makes_types_known(call, name)), "use agent_orchestrator.typed: threads")


def test_only_surfaces_print() -> None:
    calls = ((m, call, name) for m in package() if not _is_listed(m, PRINTS) for call, name in m.calls())
    check_none((m.at(call) for m, call, name in calls if name == "print"), "return it; only surfaces speak to a terminal")


def test_evolve_judges_nothing() -> None:
    faults = []
    for module in package():
        if not re.search(r"/systems/\w+/evolve(?:/|\.py)", module.path):
            continue
        for node, name in module.imports():
            if JUDGES.search(name):
                faults.append(f"{module.at(node)}: {name}")
        for node in module.nodes(ast.Attribute):
            assert isinstance(node, ast.Attribute)
            if node.attr == "retryable" or (node.attr == "goes_on" and dotted(node).split(".")[-2] == "failure"):
                faults.append(f"{module.at(node)}: {dotted(node)}")
    check_none(faults, "decide in `decide` or `advance`, and let the decision travel in the event: journals fold for ever")


def test_no_system_is_named_outside_its_rooms() -> None:
    faults = (fault for module in package() for fault in list_named_systems(module))
    check_none(faults, "ask `about`, `hooks_of` or `words_of` of the run's system: a sixth one must not need this place")


def test_imports_stand_at_the_top() -> None:
    faults = []
    for module in package():
        if not _is_listed(module, IMPORTS_LATE):
            inner = (node for function in module.functions() for node in ast.walk(function))
            faults += [module.at(node) for node in inner if isinstance(node, ast.Import | ast.ImportFrom)]
    check_none(faults, "an import inside a function hides a lost layer")


# Tests


def _tests() -> list[tuple[Module, Function]]:
    return [
        (module, function) for module in modules("tests") for function in module.functions() if function.name.startswith("test_")
    ]


def _can_fail(function: Function) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant):
            return True
        if isinstance(node, ast.Call) and re.match(
            r"(raises|warns|fail|_?(check|assert|expect)_\w+)$", dotted(node.func).rsplit(".", 1)[-1]
        ):
            return True
    return False


def test_every_test_can_fail() -> None:
    faults = [f"{module.at(function)}: {function.name}" for module, function in _tests() if not _can_fail(function)]
    check_none(faults, "a test asserts, expects an error, or calls a check_*")


def test_no_two_tests_of_a_module_share_a_name() -> None:
    seen: set[tuple[str, str]] = set()
    faults = []
    for module in modules("tests"):
        for node in module.tree.body:
            if isinstance(node, Function) and node.name.startswith("test_"):
                if (module.path, node.name) in seen:
                    faults.append(f"{module.at(node)}: {node.name}")
                seen.add((module.path, node.name))
    check_none(faults, "the second hides the first")


def test_nothing_is_mocked() -> None:
    faults = []
    for module in modules("tests"):
        faults += [module.at(node) for node, name in module.imports() if name.startswith(("unittest.mock", "mock."))]
        faults += [module.at(node) for node, name in module.calls() if re.search(r"(monkeypatch|mocker)\.(setattr|patch)", name)]
    check_none(faults, "use the fakes that ship in agent_orchestrator.testing")


def test_no_test_is_skipped() -> None:
    faults = []
    for module in modules("tests"):
        if module.path not in SKIPS:
            named = ((node, dotted(node)) for node in module.nodes(ast.Attribute))
            faults += [module.at(n) for n, name in named if re.match(r"pytest\.(mark\.)?(skip|skipif|xfail|importorskip)$", name)]
    check_none(faults, "mend the test or delete it; a reasoned exception belongs in SKIPS")


def test_a_test_sleeps_only_while_it_polls() -> None:
    faults = []
    for module in modules("tests"):
        loops = [node for loop in module.nodes(ast.While, ast.For, ast.AsyncFor) for node in ast.walk(loop)]
        for call, name in module.calls():
            waits = name in {"time.sleep", "sleep"} or (name == "asyncio.sleep" and ast.unparse(call.args[0]) != "0")
            if waits and call not in loops:
                faults.append(module.at(call))
    check_none(faults, "let the fake clock jump, or poll for what you wait for")


def test_the_tests_of_a_group_run_in_one_process(request: pytest.FixtureRequest) -> None:
    """pytest-xdist sends a group to one process by a suffix of the tests' ids."""
    assert request.node.nodeid.endswith("@tidy") == request.config.getoption("loadgroup", False)


# Files


@pytest.mark.parametrize(
    ("pattern", "what"),
    [(MACHINE_PATH, "a path of one machine"), (REGISTRY_HOST, "a package registry")],
    ids=["paths", "registries"],
)
def test_no_file_names_a_developers_machine(pattern: re.Pattern[str], what: str) -> None:
    faults = []
    for path in files():
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if pattern.search(line):
                faults.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    check_none(faults, f"{what} has no place in the project")


def test_every_sql_file_and_statement_is_used() -> None:
    named = set(re.findall(r"[\w.]+", "\n".join(module.text for module in package())))
    faults = []
    for path in files():
        if path.suffix == ".sql":
            names = [path.parent.name if path.parent.name == "migrations" else path.name]
            names += re.findall(r"^-- name: (\w+)$", path.read_text("utf-8"), re.M)
            faults += [f"{path.relative_to(ROOT)}: {name}" for name in names if name not in named]
    check_none(faults, "nobody names it: delete it")


PARTS_OF_A_ROOM = {"cli", "commands", "decide", "events", "evolve", "parse", "schema", "agent_orchestrator"}
"""Folders whose README is that of the room around them."""


def test_every_room_has_a_readme() -> None:
    rooms = sorted({(ROOT / module.path).parent for module in package()})
    shared = {"runs", "cli"}  # their folders per system are parts of them
    rooms = [room for room in rooms if room.name not in PARTS_OF_A_ROOM and room.parent.name not in shared]
    bare = [room for room in rooms if not (room / "README.md").exists()]
    check_none((str(room.relative_to(ROOT)) for room in bare), "say what the folder is for and what it must never do")


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_every_link_of_the_docs_resolves() -> None:
    faults = []
    for path in files():
        if path.suffix == ".md":
            for target in LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.S)):
                file, _, anchor = target.partition("#")
                there = path.parent / file if file else path
                broken = not there.exists() or (
                    anchor and there.suffix == ".md" and anchor not in _anchors(there.read_text("utf-8"))
                )
                if broken and "://" not in target and not target.startswith("mailto:"):
                    faults.append(f"{path.relative_to(ROOT)}: {target}")
    check_none(faults, "the link leads nowhere")


def test_the_drawn_exception_tree_is_the_real_one() -> None:
    (module,) = [module for module in package() if module.path == f"{SRC}/errors.py"]
    drawn: dict[str, str] = {}
    branch = ["Exception"]
    for bars, name in re.findall(r"^    ([│├└─ ]*)(\w+)", (ast.get_docstring(module.tree) or ""), re.M):
        depth = len(bars) // 4 + 1
        drawn[name] = branch[depth - 1]
        branch[depth:] = [name]
    real = {node.name: dotted(node.bases[0]) for node in module.tree.body if isinstance(node, ast.ClassDef) and node.bases}
    assert drawn == real
