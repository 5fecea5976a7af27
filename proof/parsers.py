"""Everything that reads what people, agents and older tools wrote: the parser, and what it is fed with to begin with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import click
import msgspec

from agent_orchestrator.agents import find_agent
from agent_orchestrator.agents.adapter import Agent, InProcessAgent
from agent_orchestrator.agents.script import parse_script
from agent_orchestrator.config.documents import read_file
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.errors import OrcError
from agent_orchestrator.projections.inspection import inspect
from agent_orchestrator.surfaces.cli.main import orc
from agent_orchestrator.systems import find_system
from agent_orchestrator.systems.phases.parse import parse_document
from agent_orchestrator.systems.swarm.tasks import parse as parse_tasks
from agent_orchestrator.systems.workflow.parse import parse as parse_workflow
from agent_orchestrator.testing.agents import make_ending, make_task
from proof.trial import SYSTEMS
from tests.acceptance.phases_rig import FOUR_PHASES

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = ROOT / "tests" / "unit" / "agents" / "data"
CLIENTS = ("claude", "codex", "gemini", "opencode")
CHOICES = {name: AgentChoice(name=name, options={}) for name in CLIENTS}
STATE_FILES = {
    "workflow": ".agents/runs/run/run_state.json",
    "loop": ".aiwg/ralph/loops/one/state.json",
    "phases": ".claude/agent-state.json",
    "team": "coordination/orchestrator_state.json",
    "swarm": "state/runs/one.json",
}
BEADS = '{"id": "one", "prompt": "do one", "depends_on": ["two"], "priority": 1}\n{"id": "two", "title": "x", "timeout": "3m"}\n'
CONFIG = (
    '[defaults]\nagent = "claude"\nmax-parallel = 3\n[agents.claude]\nmodel = "opus"\nargs = ["--x"]\n[loop]\nuntil = "make"\n'
)
SCRIPT = '- {step: build, status: COMPLETED, summary: "x", writes: {a.txt: "b"}, exit: 0}\n- {when: {step: "*"}, fails: 2}\n'
COMMANDS = (
    "run --workflow w.yaml --agent-command x --max-attempts 3 --run-id r",
    "loop run count --until true --max-iterations 3 --budget 5",
    "swarm run beads.jsonl --max-agents 2 --agent claude:sonnet",
    "team run words --check true",
    "status --json",
    "usage --since 3d",
    "history r --points",
    "approve r unit --comments x",
)


class Parser(msgspec.Struct, frozen=True, kw_only=True):
    """A parser: reads bytes and raises nothing but our own errors."""

    name: str
    system: str
    seeds: Callable[[], tuple[bytes, ...]]
    read: Callable[[bytes, Path], object]


def _texts(*folders: str, suffix: str) -> tuple[bytes, ...]:
    found = [file for folder in folders for file in sorted((ROOT / folder).rglob(f"*{suffix}"))]
    return tuple(file.read_bytes() for file in found if file.stat().st_size < 8_000)[:12]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape").encode("utf-8", "replace").decode("utf-8")


def _read_config(data: bytes, folder: Path) -> None:
    (folder / "config.toml").write_bytes(data)
    read = read_file(folder / "config.toml")
    assert read is not None
    read.refuse_faults()


def _read_state(system: str) -> Callable[[bytes, Path], object]:
    def read(data: bytes, folder: Path) -> object:
        (folder / "state.json").write_bytes(data)
        document = inspect(folder, folder / "state.json", ()).document
        return find_system(system).faults(STATE_FILES[system], document) if document is not None else None

    return read


def _judge_stream(client: str) -> Callable[[bytes, Path], object]:
    def read(data: bytes, folder: Path) -> object:
        task = make_task(folder, CHOICES[client])
        out, _, rest = data.partition(b"\0\0")
        ending = make_ending(task, len(rest) % 3)
        ending.out.write_bytes(out)
        ending.err.write_bytes(rest)
        return _find(client).judge(task, ending)

    return read


def _judge_report(data: bytes, folder: Path) -> object:
    task = make_task(folder, AgentChoice(name="command", options={"argv": ["agent"]}), required=True)
    ending = make_ending(task)
    for file, content in ((ending.out, b""), (ending.err, b""), (task.report, data)):
        file.write_bytes(content)
    return _find("command").judge(task, ending)


def _find(name: str) -> Agent:
    found = find_agent(name)
    assert not isinstance(found, InProcessAgent)
    return found


def _parse_command(data: bytes, folder: Path) -> None:
    """Read a command line as far as it goes without doing anything."""
    words = _text(data).split()
    command: click.Command = orc
    context: click.Context | None = None
    try:
        while isinstance(command, click.Group):
            context = command.make_context(command.name, words, parent=context)
            if not (words := [*context._protected_args, *context.args]):
                return
            _, found, words = command.resolve_command(context, words)
            assert found is not None
            command = found
        command.make_context(command.name, words, parent=context)
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        return


def _captured(client: str) -> Callable[[], tuple[bytes, ...]]:
    @cache
    def seeds() -> tuple[bytes, ...]:
        cases = json.loads((CAPTURES / f"{client}.json").read_bytes()).values()
        joined = ("\n".join(case.get("out", ())).encode() + b"\0\0" + "\n".join(case.get("err", ())).encode() for case in cases)
        return tuple(one for one in joined if len(one) < 20_000)[:20]

    return seeds


def _list_parsers() -> Iterator[Parser]:
    yield Parser(
        name="workflow file",
        system="workflow",
        seeds=lambda: _texts("examples", "tests/scenarios", suffix=".yaml"),
        read=lambda data, folder: parse_workflow(_text(data), "workflow.yaml"),
    )
    yield Parser(
        name="task document",
        system="phases",
        seeds=lambda: (FOUR_PHASES.encode(), *_texts("examples", suffix=".md")),
        read=lambda data, folder: parse_document(_text(data), "task.md"),
    )
    yield Parser(
        name="beads",
        system="swarm",
        seeds=lambda: (BEADS.encode(), *_texts("examples", "tests", suffix=".jsonl")),
        read=lambda data, folder: parse_tasks(_text(data), "beads.jsonl", 0),
    )
    for system in SYSTEMS:
        yield Parser(
            name=f"state file of {system}",
            system=system,
            seeds=lambda: (b'{"status": "running", "steps": {}}', *_texts("tests/seeds", "tests/journals", suffix=".json")),
            read=_read_state(system),
        )
    for client in CLIENTS:
        yield Parser(name=f"output of {client}", system="any", seeds=_captured(client), read=_judge_stream(client))
    report = b'{"status": "COMPLETED", "run_id": "run1", "step_id": "build", "gate_failure": false, "logs": ["x"]}'
    yield Parser(name="report", system="any", seeds=lambda: (report,), read=_judge_report)
    yield Parser(name="configuration", system="any", seeds=lambda: (CONFIG.encode(),), read=_read_config)
    yield Parser(
        name="script",
        system="any",
        seeds=lambda: (SCRIPT.encode(),),
        read=lambda data, folder: parse_script(_text(data), "s.yaml"),
    )
    yield Parser(
        name="command line",
        system="any",
        seeds=lambda: tuple(command.encode() for command in COMMANDS),
        read=_parse_command,
    )


PARSERS = tuple(_list_parsers())
ALLOWED = (OrcError,)
"""A person reads a sentence; anything else is a traceback."""
