"""Every folder in `systems/` keeps the contract; a new one is picked up by itself and has to bring its specifications."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

import agent_orchestrator.systems as systems
from agent_orchestrator.core.effects import AgentChoice, RunAgent
from agent_orchestrator.core.forms import shape_of
from agent_orchestrator.systems import SYSTEMS, find_system
from agent_orchestrator.systems.loop.spec import LoopSpec
from agent_orchestrator.systems.phases.parse import parse_document
from agent_orchestrator.systems.phases.spec import PhasesSpec, Supervision
from agent_orchestrator.systems.swarm.spec import BeadSpec, SwarmSpec
from agent_orchestrator.systems.team.spec import QaMode, TeamSpec, split_requirements
from agent_orchestrator.systems.workflow.parse import parse
from agent_orchestrator.testing.systems import check_system, play_system
from tests.scenarios.team_world import played_report
from tests.unit.workflow.test_random_runs import a_workflow

FOLDER = Path(systems.__path__[0])
FOUND = sorted(folder.name for folder in FOLDER.iterdir() if (folder / "__init__.py").exists())
SEEDS = range(12)

EVERYTHING = """
name: everything
steps:
  - {id: plan, agent: planner, prompt: p.md, gates: [open]}
  - {id: code, agent: coder, prompt: p.md, needs: [plan], check: make, timeout: 10m}
  - {id: docs, agent: writer, prompt: p.md, needs: [plan], loop: {items: [a, b, c]}}
  - {id: each, agent: writer, prompt: p.md, needs: [plan], loop: {items_from_artifact: list.json}}
  - {id: review, agent: reviewer, prompt: p.md, needs: [code], loop_back_to: plan, human_in_the_loop: true}
  - {id: never, agent: coder, prompt: p.md, needs: [review], when: "review.status == 'SKIPPED'"}
  - {id: ship, agent: shipper, prompt: p.md, needs: [review, docs, each, never], check: make, max_attempts: 1}
"""


def workflow_specs() -> list[Any]:
    texts = [EVERYTHING, *(a_workflow(random.Random(seed)) for seed in range(6))]
    options = {"agents": {"": AgentChoice(name="command")}, "gate_state_file": "/gates.json", "max_attempts": 3}
    return [msgspec.structs.replace(parse(text, "workflow.yaml").spec, **options) for text in texts]


def workflow_report(effect: RunAgent, chance: random.Random) -> dict[str, Any]:
    return {
        "artifacts": chance.sample(["a.txt", "b/c.txt", "/etc/passwd"], 2),
        "metrics": {"count": 3, "fine": True},
        "gate_failure": chance.choice([False, False, None, "found P0 issues"]),
    }


@cache
def schema_of(name: str, document: str) -> Any:
    return jsonschema_rs.validator_for(msgspec.json.decode((FOLDER / name / "schema" / document).read_bytes()))


def check_workflow_document(path: str, document: Any) -> None:
    faults = list(schema_of("workflow", "run_state.schema.json").iter_errors(document))
    assert not faults, f"{path}: {faults[0].message}"


def loop_specs() -> list[Any]:
    command = AgentChoice(name="command")
    return [
        LoopSpec(task="fix it", completion="make", command="make", agent=command, max_iterations=6),
        LoopSpec(task="fix it", completion="make", command="make", agent=command, interactive=True, test_command="make test"),
        LoopSpec(task="write it", completion="it is good", agent=command, max_iterations=4, protected=("docs/",)),
        LoopSpec(task="write it", completion="it is good", agent=command, confirm_with=command, timeout_minutes=30, git=False),
    ]


def loop_report(effect: RunAgent, chance: random.Random) -> dict[str, Any]:
    if effect.report.required:
        return {"status": chance.choice(["PASS", "FAIL"]), "summary": "seen"}
    return {"summary": "did it", "quality_score": chance.randint(0, 100), "done": chance.random() < 0.5}


def check_loop_document(path: str, document: Any) -> None:
    if path.endswith("/state.json"):
        # The run under test has a name of its own; loops are named when they are started.
        named = {**document, "loop_id": "ralph-checked-00000000"}
        faults = list(schema_of("loop", "loop_state.schema.json").iter_errors(named))
        assert not faults, f"{path}: {faults[0].message}"


def swarm_specs() -> list[Any]:
    def bead(name: str, **more: Any) -> BeadSpec:
        return BeadSpec(**{"id": name, "prompt": f"do {name}", "agent": AgentChoice(name="command"), "repo": "/repo", **more})

    needs = {"b": ("a",), "d": ("a", "c")}
    linked = (
        bead("a", verify="make"),
        bead("b", needs=needs["b"], template="docs"),
        bead("c", repo="/other"),
        bead("d", branch="w/d", needs=needs["d"], priority=0, max_attempts=3),
    )
    crowd = tuple(bead(f"b{number}", priority=number % 3) for number in range(8))
    return [
        SwarmSpec(beads=(bead("a", attempts_before=3),), dispatch=True),
        SwarmSpec(beads=linked, max_agents=2, bd_close=True),
        SwarmSpec(beads=crowd, max_agents=3, stop_after_failures=2),
        SwarmSpec(beads=crowd, max_agents=3, shared=True, stop_after_failures=1),
    ]


def swarm_report(effect: RunAgent, chance: random.Random) -> dict[str, Any]:
    return {"status": chance.choice(["done", "failed"]), "reason": chance.choice(["", "did it", "x" * 5_000])}


def check_swarm_document(path: str, document: Any) -> None:
    kind = "result" if "/results/" in path or path.endswith(".result.json") else "run"
    faults = list(schema_of("swarm", f"{kind}.schema.json").iter_errors(document))
    assert not faults, f"{path}: {faults[0].message}"


PHASES_DOCUMENT = """
# Task: Everything

## Goal

All of it.

## Success Criteria (Global)

- [ ] In the end: `make`
- [ ] It is good

## Safety Bounds

- **Maximum iterations per task**: 3
- **Maximum cost**: $10

## Phases & Tasks

### Phase 1: First

#### Task 1.1: One

**Success Criteria**:
- [ ] `make one`
- [ ] One is good
**Files**: one.py

#### Task 1.2: Two

**Success Criteria**:
- [ ] Two is good
**Dependencies**: 1.1

### Phase 2: Second

#### Task 2.1: Three

**Success Criteria**:
- [ ] `make three`
- [ ] `make sure`
**Files**: three.py, lib/

#### Task 2.2: Four

**Success Criteria**:
- [ ] Four is good
**Files**: four.py

#### Task 2.3: Five

**Success Criteria**:
- [ ] `make five`
**Files**: lib/five.py
"""


def phases_specs() -> list[Any]:
    plan = parse_document(PHASES_DOCUMENT, "task.md").plan
    full = PhasesSpec(
        document="/repo/task.md", plan=plan, agents={"": AgentChoice(name="command")}, branch="phases/everything", plan_with=True
    )
    bare = msgspec.structs.replace(plan, supervision=Supervision(enabled=False), outer_ralph=False, criteria=())
    return [
        full,
        msgspec.structs.replace(full, yes=True, remote="origin", publish=True, target="main", plan_with=False),
        msgspec.structs.replace(full, yes=True, plan=bare, plan_with=False),
        msgspec.structs.replace(full, yes=True, plan_with=False, max_parallel=3),
    ]


def phases_report(effect: RunAgent, chance: random.Random) -> dict[str, Any]:
    learning = {"type": chance.choice(["pattern", "insight", "nonsense"]), "lesson": "look first"}
    if effect.role == "task-executor":
        criteria = {name: chance.random() < 0.9 for name in ("one_is_good", "two_is_good", "four_is_good")}
        return {"status": chance.choice(["SUCCESS", "SUCCESS", "PARTIAL"]), "criteria": criteria, "learnings": [learning]}
    if effect.role == "supervisor":
        return chance.choice(SUPERVISOR_REPORTS)
    if effect.role == "code-improvement-scanner":
        found = {"status": "FOUND", "findings": [{"priority": "P1", "file": "a.py", "issue": "slow"}]}
        return chance.choice([{"status": "CLEAN"}, {"status": "FIXED"}, found])
    return {"questions": ["why?"], "status": chance.choice(["READY", "QUESTIONS"])} if effect.role == "planner" else {}


SUPERVISOR_REPORTS: list[dict[str, Any]] = [
    {"status": "PASS"},
    {"status": "PASS", "conflicts": [{"type": "api", "details": "renamed"}]},
    {"status": "PASS", "criteria": {"one_is_good": False}},
    {"status": "AUTO_FIX", "auto_fixes": [{"file": "a.py", "issue": "names", "fix": "renamed"}]},
    {"status": "RE_PLAN", "conflicts": [{"type": "architecture", "recommendation": "use what is there"}]},
    {
        "status": "RE_PLAN",
        "conflicts": [{"type": "dependency"}],
        "recommended_changes": [{"action": "add", "task": "2.9", "name": "More", "criteria": ["`make more`"]}],
    },
]


def check_phases_document(path: str, document: Any) -> None:
    if path.endswith("/agent-state.json"):
        faults = list(schema_of("phases", "agent_state.schema.json").iter_errors(document))
        assert not faults, f"{path}: {faults[0].message}"


def team_specs() -> list[Any]:
    command = AgentChoice(name="command")
    options: dict[str, Any] = {"agents": {"": command}, "into": "main"}
    few: dict[str, Any] = {"max_qa_rounds": 2, "max_review_rounds": 2, **options}
    listed = "- log in (check: make login)\n- log out\n"
    return [
        TeamSpec(requirements="log in and out", wanted=split_requirements("log in and out"), **options),
        TeamSpec(requirements=listed, wanted=split_requirements(listed), check="make", **few),
        TeamSpec(
            requirements="fast", wanted=split_requirements("fast"), testing=QaMode.MINIMAL, max_parallel=1,
            escalate={"developer": AgentChoice(name="command", model="more")}, **options,
        ),
    ]  # fmt: skip


@cache
def team_schema(path: str) -> Any:
    return schema_of("team", f"{Path(path).stem}.schema.json")


def check_team_document(path: str, document: Any) -> None:
    faults = list(team_schema(path).iter_errors(document))
    assert not faults, f"{path}: {faults[0].instance_path} {faults[0].message}"


SPECS = {"workflow": workflow_specs, "loop": loop_specs, "swarm": swarm_specs, "phases": phases_specs, "team": team_specs}
REPORTS = {
    "workflow": workflow_report,
    "loop": loop_report,
    "swarm": swarm_report,
    "phases": phases_report,
    "team": played_report,
}
DOCUMENTS = {
    "workflow": check_workflow_document,
    "loop": check_loop_document,
    "swarm": check_swarm_document,
    "phases": check_phases_document,
    "team": check_team_document,
}


def test_the_registry_lists_exactly_the_systems_in_the_folder() -> None:
    assert sorted(SYSTEMS) == FOUND


@pytest.mark.parametrize("name", FOUND)
def test_a_system_keeps_the_contract(name: str) -> None:
    check_system(find_system(name), SPECS[name](), seeds=SEEDS, ticks=40, reports=REPORTS[name], check_document=DOCUMENTS[name])


@pytest.mark.parametrize("name", sorted({*FOUND} - {"workflow"}))
def test_a_prompt_names_only_what_its_report_may_say_and_leaves_the_asking_to_the_adapter(name: str) -> None:
    system, asked = find_system(name), dict[str, RunAgent]()

    def note(state: Any) -> None:
        for effect in state.doing:
            if isinstance(effect, RunAgent):
                asked.setdefault(f"{effect.role} {effect.report.form} {', '.join(effect.report.words)}", effect)

    for spec in SPECS[name]():
        for seed in SEEDS:
            play_system(system, spec, seed, ticks=40, reports=REPORTS[name], check_state=note)
    words = {word for effect in asked.values() for word in effect.report.words}
    fields = {field for form in system.forms.values() for field in shape_of(form)["properties"]}
    assert {effect.report.form for effect in asked.values()} >= set(system.forms) - {"on_demand"}
    for who, effect in asked.items():
        prompt = re.sub(r"```.*?```", "", effect.prompt_text or "", flags=re.DOTALL)  # what others said is theirs
        assert prompt, who
        assert "REPORT_PATH" not in prompt
        assert '{"' not in prompt, f"{who}: the shape of a report is for the adapter to tell"
        assert words & set(re.findall(r"\b[A-Z][A-Z_]+\b", prompt)) <= set(effect.report.words), who
        known = shape_of(system.forms.get(effect.report.form))["properties"]
        assert fields & set(re.findall(r"`([a-z_]+)`", prompt)) <= set(known), who
