"""The pure team system, played by hand; every file is checked against the seed's schemas after every tick."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec

from agent_orchestrator.core.effects import AgentChoice, Checkpoint, Effect, Merge, RunAgent
from agent_orchestrator.core.inputs import Answer, CheckpointEnded, Collision, Commit, FileChange, MergeEnded, MergeVerdict
from agent_orchestrator.systems.team.imports import BranchState, import_files
from agent_orchestrator.systems.team.spec import TeamSpec, split_requirements
from agent_orchestrator.systems.team.system import TEAM
from tests.scenarios.played import Played

TEAM_RUN = "v4_20250115_143000"
PM = "pm"
DATA = Path(__file__).parents[1] / "seeds" / "data"

REQUIREMENTS = "Implement JWT authentication, user registration, and password reset functionality"


@cache
def seed_schema(name: str) -> Any:
    """A schema exactly as the seed prints it, compiled."""
    return jsonschema_rs.validator_for(json.loads((DATA / f"team_{name}_schema.json").read_text("utf-8")))


def document_faults(path: str, document: Any) -> list[str]:
    """Return the faults of a document against the seed's own schema."""
    name = path.rpartition("/")[2].removesuffix(".json")
    return [f"{path}{error.instance_path}: {error.message}" for error in seed_schema(name).iter_errors(document)]


def group(name: str, /, *after: str, files: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """A group as a project manager plans it."""
    return {
        "id": name,
        "name": f"Feature {name}",
        "tasks": [f"T{name}"],
        "files_affected": list(files or (f"{name.lower()}.py",)),
        "branch_name": f"feature/group-{name}",
        "depends_on": list(after),
        "complexity": "low",
        "estimated_effort_minutes": 10,
        **more,
    }


def plan(*groups: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A planning report."""
    tasks = [{"id": f"T{one['id']}", "description": f"Do {one['id']}", "group_id": one["id"]} for one in groups]
    return {"status": "PLANNING_COMPLETE", "mode": "parallel", "groups": list(groups), "tasks": tasks, **more}


class TeamWorld(Played):
    """One team and its journal."""

    def __init__(self, requirements: str = REQUIREMENTS, files: dict[str, Any] | None = None, **options: Any) -> None:
        options.setdefault("agents", {"": AgentChoice(name="command")})
        made = {"requirements": requirements, "wanted": split_requirements(requirements), "into": "main", **options}
        spec = msgspec.convert(msgspec.to_builtins(made), TeamSpec)
        facts: tuple[Any, ...] = ()
        if files is not None:
            found = {f"coordination/{name}.json": document for name, document in files.items()}
            facts = import_files(found, "pm_state.json", spec, lambda branch: BranchState.OPEN).facts
        super().__init__(TEAM, spec, TEAM_RUN, also=facts)

    def says(self, unit: str, status: str, **fields: Any) -> list[Any]:
        """The unit's agent reports."""
        return self.agent(unit, {"status": status, **fields})

    def planned(self, *groups: dict[str, Any], **more: Any) -> list[Any]:
        """The project manager plans these groups."""
        return self.agent(PM, plan(*groups, **more))

    def saved(self, unit: str, *files: str, collides: dict[str, tuple[str, ...]] | None = None, **fields: Any) -> list[Any]:
        """Save what the unit left."""
        effect = self.doing(unit)
        assert isinstance(effect, Checkpoint), f"{unit} is not being saved: {effect}"
        found = {f"feature/group-{name}": paths for name, paths in (collides or {}).items()}
        changed = tuple(FileChange("M", path, "0" * 40) for path in files or (f"{unit.lower()}.py",))
        outcome = CheckpointEnded(
            effect=effect.id,
            commit="c" * 40,
            tree="t" * 40,
            head="h" * 40,
            changed=changed,
            diff=f"+ {unit}",
            commits=(Commit(f"abc{len(self.journal):04x}", f"Work on {unit}"),),
            collisions=tuple(Collision(branch, paths) for branch, paths in found.items()),
        )
        return self.tell(msgspec.structs.replace(outcome, **fields))

    def merged(self, unit: str, verdict: str = "landed", **fields: Any) -> list[Any]:
        """The unit's merge is over."""
        effect = self.doing(unit)
        assert isinstance(effect, Merge), f"{unit} is not being merged: {effect}"
        commit = "m" * 40 if verdict == "landed" else None
        return self.tell(MergeEnded(effect=effect.id, verdict=MergeVerdict(verdict), commit=commit, **fields))

    def develops(self, unit: str, status: str = "READY_FOR_QA", **fields: Any) -> list[Any]:
        """The unit's developer reports, and its work is saved."""
        self.says(unit, status, summary=f"Did {unit}", **fields)
        return self.saved(unit)

    def completes(self, unit: str) -> list[Any]:
        """The unit's developer, QA and tech lead are content, and it lands."""
        self.develops(unit)
        self.says(unit, "PASS")
        self.says(unit, "APPROVED")
        self.saved(unit)
        return self.merged(unit)

    def answers(self, approved: bool = True, comments: str = "", unit: str | None = None) -> list[Any]:
        """A person answers."""
        return self.tell(Answer(id=self.directive(), approved=approved, comments=comments, unit=unit))

    def finishes(self) -> list[Any]:
        """The project manager is done and the tech lead confirms it."""
        self.says(PM, "DONE")
        return self.says(PM, "APPROVED")

    def prompt(self, unit: str) -> str:
        """Return the prompt of the unit's agent."""
        effect = self.doing(unit)
        assert isinstance(effect, RunAgent), f"no agent is at work for {unit}: {effect}"
        return effect.prompt_text or ""

    def role(self, unit: str) -> str:
        """Return the role that works for the unit."""
        effect: Effect | None = self.state.doing.of(unit)
        return effect.role if isinstance(effect, RunAgent) else type(effect).__name__ if effect is not None else "nobody"

    def file(self, name: str) -> Any:
        """A file of `coordination/`, as a reader gets it."""
        return self.documents()[f"coordination/{name}"]

    def status(self, unit: str) -> str:
        """The group's status in group_status.json."""
        status: str = self.file("group_status.json")[unit]["status"]
        return status

    def decisions(self) -> list[str]:
        """The story so far."""
        return [one["decision"] for one in self.file("orchestrator_state.json")["decisions_log"]]

    def faults(self) -> list[str]:
        """Against the seed's own schemas, not the widened ones."""
        return [fault for path, document in self.documents().items() for fault in document_faults(path, document)]


def working(*groups: dict[str, Any], **options: Any) -> TeamWorld:
    """A team whose plan is made; group A without one."""
    world = TeamWorld(**options)
    world.planned(*(groups or (group("A"),)))
    return world


def played_report(effect: RunAgent, chance: random.Random) -> dict[str, Any]:
    """Any valid report of a role."""
    words = list(effect.report.words)
    status = chance.choice(words)
    if "PLANNING_COMPLETE" in words and effect.iteration == 1:
        names = ["A", "B", "C", "D"][: chance.randint(1, 4)]
        later = {"C": ("A",), "D": ("B", "C")}
        after = {name: tuple(other for other in later.get(name, ()) if other in names) for name in names}
        groups = [group(name, *after[name], can_parallel=chance.random() < 0.8) for name in names]
        return plan(*groups, mode=chance.choice(["simple", "parallel"]))
    if "PLANNING_COMPLETE" in words:
        return {"status": "PLANNING_COMPLETE", "groups": []}
    counts = {"total": 5, "passed": 5 if status == "PASS" else 3}
    return {
        "status": status if status != "CONTINUE" else "DONE",
        "summary": f"said {status}",
        "blocker": "no key",
        "unit_tests": {"total": 3, "passed": 3, "failed": 0},
        "test_results": {"integration_tests": counts},
        "failures": ["it is slow"],
        "feedback": "look again",
        "issues": [{"priority": "high", "title": "slow", "location": "a.py:1"}],
        "quality": {"code_quality_score": 8.5, "security_issues_count": 0},
    }
