"""Golden transcripts: each `*.txt` here is a script of inputs and, below each, the facts and units that followed.

`ORC_REWRITE=1 pytest tests/scenarios` writes them anew; the diff is what to review. The format is in README.md.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.effects import AskHuman, Effect, Wait
from agent_orchestrator.core.events import BudgetWarned, HoldEnded, LimitsSet, Paused, StopReason, UnitHeld
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.hold import Hold, HoldReason
from agent_orchestrator.core.inputs import (
    Abort,
    Answer,
    CheckpointEnded,
    Edited,
    FileRead,
    GatesOpened,
    HumanAnswered,
    Instruct,
    MergeEnded,
    MergeVerdict,
    Pause,
    Resume,
    TimerFired,
    Usage,
)
from agent_orchestrator.core.launch_events import LaunchFinished
from agent_orchestrator.core.units import US, iso
from agent_orchestrator.systems.loop.state import LoopState
from agent_orchestrator.systems.phases.state import PhasesState
from agent_orchestrator.systems.swarm.documents import documents
from agent_orchestrator.systems.swarm.state import SwarmState
from agent_orchestrator.systems.team.status import ShownTeam as TeamState
from agent_orchestrator.systems.workflow.parse import parse
from tests.scenarios.loop_world import UNIT, LoopWorld
from tests.scenarios.phases_world import PhasesWorld, phases_lines
from tests.scenarios.played import START_US, Played
from tests.scenarios.swarm_world import SwarmWorld
from tests.scenarios.team_world import TeamWorld
from tests.scenarios.world import World

HERE = Path(__file__).parent
SCENARIOS = sorted(HERE.glob("*.txt"))
ENDED = """
effect step purpose criterion requirement command started_us ended_us exit_code failure reported artifacts metrics logs
summary done quality_score output metered cost_usd tokens tail tests tests_passed warnings session tree moved again worth then
goes_on
"""
"""The order in which a transcript has the fields of a program that ended: what it was about comes first."""


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_transcript_is_what_happens(path: Path) -> None:
    written = path.read_text("utf-8")
    played = play(written)
    if os.environ.get("ORC_REWRITE"):
        path.write_text(played, "utf-8")
    assert played == path.read_text("utf-8")


def test_there_are_transcripts_for_every_rule() -> None:
    assert len(SCENARIOS) >= 18


def play(text: str) -> str:
    """The transcript with its answers as they are now: blocks of `input`, `----`, answer, and an empty line."""
    stage = Stage()
    blocks = []
    for block in text.split("\n\n\n"):
        head, _, _ = block.partition("\n----")
        blocks.append("\n".join([head.strip("\n"), "----", *stage.perform(head.strip("\n"))]))
    if stage.world is not None:
        stage.world.compare(stage.world.folded())
    return "\n\n\n".join(blocks) + "\n"


class Stage:
    """Reads one block after the other and says what changed."""

    def __init__(self) -> None:
        self.world: Played | None = None
        self.shown: dict[str, str] = {}
        self.file = ""

    def perform(self, head: str) -> list[str]:
        lines = [line for line in head.splitlines() if not line.startswith("#")]
        command, *words = shlex.split(lines[0])
        body = "\n".join(lines[1:])
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        given: dict[str, Any]
        if command == "run":
            self.file = body
            given = {key: int(value) if value.isdigit() else value for key, value in options.items()}
            self.world = World(body, **given)
            events = [event for event, _ in self.world.journal]
        elif command == "import" and names == ["team"]:
            self.world = TeamWorld(files=json.loads(body))
            events = [event for event, _ in self.world.journal]
        elif command == "import" and names == ["bead"]:
            self.world = SwarmWorld.imported(json.loads(body))
            events = [event for event, _ in self.world.journal]
        elif command == "import" and names:
            document = (HERE / "documents" / f"{names[0]}.md").read_text("utf-8")
            self.world = PhasesWorld(document, json.loads(body))
            events = [event for event, _ in self.world.journal]
        elif command == "import":
            self.world = LoopWorld.imported(json.loads(body))
            events = [event for event, _ in self.world.journal]
        elif command == "swarm":
            given = json.loads(body)
            self.world = SwarmWorld(*given.pop("beads"), **given)
            events = [event for event, _ in self.world.journal]
        elif command == "phases":
            document = (HERE / "documents" / f"{names[0]}.md").read_text("utf-8")
            self.world = PhasesWorld(document, **(json.loads(body) if body else {}))
            events = [event for event, _ in self.world.journal]
        elif command == "team":
            self.world = TeamWorld(**(json.loads(body) if body else {}))
            events = [event for event, _ in self.world.journal]
        elif command == "loop":
            self.world = LoopWorld(**(json.loads(body) if body else {}))
            events = [event for event, _ in self.world.journal]
        else:
            assert self.world is not None
            events = getattr(self, f"_{command}")(self.world, names, options, body)
        return [*(self._event(event) for event in events), *self._changes(), self._doing()]

    def _agent(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        failure = _failure(options)
        usage = Usage(cost_usd=float(options["cost"])) if "cost" in options else None
        report = json.loads(body) if body else None
        return world.agent(_unit(names), report, failure=failure, tail=options.get("tail", ""), usage=usage)

    def _check(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        failure = _failure(options)
        return world.check_end(
            _unit(names),
            exit_code=int(options["exit"]) if "exit" in options else None,
            failure=failure,
            tail=options.get("tail", ""),
            tree_before=options.get("before"),
            tree_after=options.get("after"),
        )

    def _saved(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        if isinstance(world, SwarmWorld):
            failure = options.get("failure", "")
            return world.tell(CheckpointEnded(effect=world.doing(names[0]).id, unavailable=failure, head="h" * 7))
        if isinstance(world, PhasesWorld):
            return world.saved(names[0], nothing="nothing" in names, **options)
        if isinstance(world, TeamWorld):
            more: dict[str, Any] = dict(options)
            if "collides" in more:
                more["collides"] = {more["collides"]: ("shared.py",)}
            return world.saved(names[0], **more)
        assert isinstance(world, LoopWorld)
        return world.saved(**options)

    def _merge(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        verdict = MergeVerdict(options.pop("verdict", "landed"))
        return world.tell(MergeEnded(effect=world.doing(names[0]).id, verdict=verdict, detail=options.get("detail", "")))

    def _merged(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        if isinstance(world, TeamWorld):
            return world.merged(names[0], names[1] if len(names) > 1 else "landed", **options)
        assert isinstance(world, PhasesWorld)
        return world.merged(names[0], **options)

    def _restore(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        assert isinstance(world, PhasesWorld)
        return world.restore(int(names[0]))

    def _taken(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        assert isinstance(world, LoopWorld)
        return world.take_up(int(options["pid"]))

    def _instruct(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        values: dict[str, Any] = dict(options)
        if "beads" in values:
            values["beads"] = values["beads"].split(",")
        return world.tell(Instruct(id=world.directive(), what=names[0], values=values))

    def _wait(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        world.now_us += int(options["s"]) * US
        return []

    def _held(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        unit = _unit(names)
        until_us = world.now_us + int(options.pop("s")) * US if "s" in options else None
        reason = options.pop("reason", "the account's rate limit is reached")
        why = HoldReason(options.pop("why", HoldReason.RATE_LIMIT))
        hold = Hold(effect=world.doing(unit).id, why=why, reason=reason, until_us=until_us, **options)
        return world.happen(UnitHeld(unit=unit, hold=hold))

    def _released(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        unit = _unit(names)
        return world.happen(HoldEnded(unit=unit, effect=world.doing(unit).id))

    def _limits(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        return world.happen(LimitsSet(limits=msgspec.convert(json.loads(body), Budget)))

    def _warned(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        values: dict[str, float] = {key: float(value) for key, value in options.items()}
        return world.happen(
            BudgetWarned(what=names[0], percent=int(values["percent"]), spent=values["spent"], limit=values["limit"])
        )

    def _spent(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        return world.happen(Paused(reason="the run's budget is spent", stop=StopReason.BUDGET_EXHAUSTED))

    def _timer(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        effect = world.doing(_unit(names))
        assert isinstance(effect, Wait)
        return world.tell(TimerFired(effect=effect.id), after_s=(effect.until_us - world.now_us) / US)

    def _gates(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        return world.tell(GatesOpened(effect=world.doing(_unit(names)).id))

    def _file(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        return world.tell(FileRead(effect=world.doing(_unit(names)).id, text=body, failure=_failure(options)))

    def _answer(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        effect = world.doing(_unit(names))
        assert isinstance(effect, AskHuman)
        approved = options["approved"] == "true"
        return world.tell(HumanAnswered(effect=effect.id, approved=approved, comments=options.get("comments", "")))

    def _approve(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        return world.tell(Answer(id=world.directive(), approved=True, unit=names[0] if names else None))

    def _reject(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        unit = names[0] if names else None
        return world.tell(Answer(id=world.directive(), approved=False, unit=unit, comments=options.get("comments", "")))

    def _pause(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        return world.tell(Pause(id=world.directive(), now="now" in names))

    def _abort(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        return world.tell(Abort(id=world.directive(), reason=options.get("reason", "aborted by a person")))

    def _resume(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        changes: dict[str, Any] = {key: int(value) if value.isdigit() else value for key, value in options.items()}
        if body and not isinstance(world, World):
            changes |= json.loads(body)
        elif body:
            changes["spec"] = msgspec.to_builtins(parse(body, "workflow.yaml").spec)
        return world.tell(Resume(id=world.directive(), changes=changes))

    def _edit(self, world: Played, names: list[str], options: dict[str, str], body: str) -> list[Any]:
        path, document = next(iter(world.documents().items()))
        if isinstance(world, TeamWorld):
            path = f"coordination/{names[0]}"
            document = world.documents()[path]
        for key, fields in json.loads(body).items():
            if not isinstance(world, World):
                document[key] = {**document[key], **fields} if isinstance(fields, dict) else fields
            else:
                document["steps"].setdefault(key, {}).update(fields)
        return world.tell(Edited(path=path, document=document))

    def _event(self, event: Any) -> str:
        fields = msgspec.to_builtins(event)
        name = fields.pop("event")
        for left_out in ("spec", "diff", "changed", "message"):
            fields.pop(left_out, None)
        if isinstance(event, LaunchFinished):
            unit = ("step", "bead") if isinstance(self.world, World | SwarmWorld) else ()
            fields = {key: fields[key] for key in dict.fromkeys((*unit, *ENDED.split(), *fields)) if key in fields}
        return " ".join([f"  {name}", *(f"{key}={_short(key, value)}" for key, value in fields.items())])

    def _changes(self) -> list[str]:
        assert self.world is not None
        state = self.world.state
        if isinstance(state, LoopState):
            said = {UNIT: _loop_line(state)}
        elif isinstance(state, PhasesState):
            said = phases_lines(state)
        elif isinstance(state, TeamState):
            said = {name: _team_line(state, name) for name in state.steps}
        elif isinstance(state, SwarmState):
            said = {bead: _bead_line(state, bead) for bead in state.beads}
        else:
            said = {name: _line(name, step) for name, step in state.steps.items()}
        changed = [line for name, line in said.items() if self.shown.get(name) != line]
        gone = [f"- {name}" for name in self.shown if name not in said]
        self.shown = said
        return [*changed, *gone]

    def _doing(self) -> str:
        assert self.world is not None
        state = self.world.state
        doing = ", ".join(_effect(effect) for effect in state.doing) or "nothing"
        return f"{state.lifecycle.stop or state.lifecycle.phase} · {doing}"


def _unit(names: list[str]) -> str:
    return names[0] if names else UNIT


def _loop_line(state: LoopState) -> str:
    parts = [f"= {state.status.value} iteration={state.iteration}"]
    parts += [f"strikes={state.strikes}"] if state.strikes else []
    parts += [f"pausing={state.pausing!r}"] if state.pausing is not None else []
    parts += [f"error={state.error[0]!r}"] if state.error is not None else []
    return " ".join(parts)


def _bead_line(state: SwarmState, bead: str) -> str:
    held = state.beads[bead]
    parts = [f"= {bead} {state.standing(bead)} attempt={held.attempt}/{held.limit}"]
    parts += [f"due={state.due[bead]}"] if bead in state.due else []
    if held.run is not None:
        shown = next(one for one in documents(state, 0) if one.path == f"state/runs/{bead}.json") if not held.released else None
        parts += [f"run={shown.body.status if shown is not None else held.run.status}"]
    if held.result is not None:
        code = "" if held.result.exit_code is None else f" exit={held.result.exit_code}"
        parts += [f"result={held.result.status}{code} will_retry={str(held.result.will_retry).lower()}"]
    parts += [f"reason={state.failed[bead]}"] if bead in state.failed else []
    parts += [f"kept={[one.run.attempt for one in held.kept]}"] if held.kept else []
    parts += [f"merge={held.merge.into}:{held.merge.verdict or 'in line'}"] if held.merge is not None else []
    parts += ["released"] if held.released else []
    return " ".join(parts)


def _team_line(state: TeamState, name: str) -> str:
    step = state.steps[name]
    parts = [f"= {name} {step.status.value} rounds={step.iteration_count}"]
    parts += [f"why={step.last_error!r}"] if step.last_error else []
    return " ".join(parts)


def _failure(options: dict[str, str]) -> Failure | None:
    if "failure" not in options:
        return None
    kind, _, message = options["failure"].partition(":")
    return Failure(kind=FailureKind(kind), message=message or kind)


def _short(key: str, value: object) -> str:
    if key == "effect" or key == "after":
        return str(value).split("/", 2)[2]
    if key.endswith("_us") and isinstance(value, int):
        return f"+{(value - START_US) / US:.3f}s"
    return value if isinstance(value, str) and " " not in value else msgspec.json.encode(value).decode()


def _line(name: str, step: Any) -> str:
    parts = [f"= {name} {step.status.value} attempts={step.attempts} iteration={step.iteration_count}"]
    parts += [f"{key}={value}" for key in ("artifacts", "metrics", "logs") if (value := getattr(step, key))]
    parts += [f"blocked_by={step.blocked_by_loop}"] if step.blocked_by_loop else []
    parts += [f"error={step.last_error!r}"] if step.last_error else []
    for key in ("started_at", "ended_at"):
        if (at := getattr(step, key)) is not None:
            parts.append(f"{key[:-3]}={at[14:23] if at.startswith(iso(START_US)[:13]) else at}")
    return " ".join(parts)


def _effect(effect: Effect) -> str:
    return f"{effect.unit}/{effect.id.split('/', 2)[2]}"
