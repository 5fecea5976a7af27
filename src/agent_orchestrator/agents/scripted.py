"""`scripted`: a deterministic agent that plays a script: for tests, demonstrations and rehearsals without a model.

Inside the engine it needs no process and dies with it. `python -m agent_orchestrator.agents.scripted SCRIPT` plays the
same script as a program under the environment contract, and so outlives the engine like any other agent.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_orchestrator.agents.adapter import AgentTask, Verdict
from agent_orchestrator.agents.script import Rule, load_script
from agent_orchestrator.agents.verdict import judge_report
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.report import COMPLETED, REPORT_SCHEMA, ReportRule
from agent_orchestrator.errors import InvalidValue, OrcError

UNSCRIPTED = Rule()
DONE = Verdict()


class ScriptedPart(msgspec.Struct, frozen=True, kw_only=True):
    """A role at one launch, and the working tree that it plays in."""

    run: str
    step: str
    role: str
    iteration: str
    attempt: str
    workdir: Path
    word: str = COMPLETED
    """The status of a report whose rule does not say one."""


class Performance(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a part."""

    exit_code: int
    report: bytes | None
    said: str
    error: str


class ScriptedAgent:
    """The in-process adapter. Option: `script`, a path; without one every part is COMPLETED."""

    name = "scripted"
    abilities = frozenset({"temperature", "tokens", "cost"})
    """It is as deterministic as its script, and says what it costs where the script does."""

    def preflight(self, choice: AgentChoice) -> None:
        """Check that the script is valid."""
        _rules(choice)

    def delay_s(self, task: AgentTask) -> float:
        """Return the time that the rule takes; a script that was broken meanwhile fails at once, in `act`."""
        try:
            rule = _rule_of(task)
        except OrcError:
            return 0.0
        return math.inf if rule.hang else rule.takes

    def act(self, task: AgentTask) -> Verdict:
        """Play, and judge it like a program. The report is in the verdict; no file of the launch is written."""
        try:
            rule = _rule_of(task)
            if rule is UNSCRIPTED and not task.effect.report.required:
                return DONE
            played = play(rule, _part(task))
        except (OrcError, ValueError) as error:
            return Verdict(failure=Failure(kind=FailureKind.SPEC, message=f"The script cannot be played: {error}"))
        except OSError as error:
            return Verdict(failure=Failure(kind=FailureKind.EXIT, message=f"The script could not be played: {error}"))
        verdict = judge_report(played.exit_code, played.report, task.effect.report, where="its report", last_line=played.error)
        return msgspec.structs.replace(verdict, usage=rule.usage)

    def touches(self, task: AgentTask) -> bool:
        """Say whether the rule writes or deletes files."""
        try:
            rule = _rule_of(task)
        except OrcError:
            return False
        return bool(rule.write or rule.append or rule.delete)


def play(rule: Rule, part: ScriptedPart) -> Performance:
    """Apply the rule to the working tree. Raises OSError, and ValueError for a path that leads out."""
    for name, text in rule.write.items():
        _inside(part.workdir, name).write_text(text, "utf-8")
    for name, text in rule.append.items():
        with _inside(part.workdir, name).open("a", encoding="utf-8") as file:
            file.write(text)
    for name in rule.delete:
        _inside(part.workdir, name).unlink(missing_ok=True)
    exit_code = rule.exit or (1 if rule.fail is not None else 0)
    return Performance(exit_code=exit_code, report=_report(rule, part, exit_code), said=rule.say, error=rule.fail or "")


def _report(rule: Rule, part: ScriptedPart, exit_code: int) -> bytes | None:
    if rule.malformed_report is not None:
        return rule.malformed_report.encode()
    if rule.report is None or (exit_code != 0 and not rule.report):
        return None
    report = {
        "schema": REPORT_SCHEMA,
        "run_id": part.run,
        "step_id": part.step,
        "agent": part.role,
        "status": part.word,
        **({"logs": [rule.say]} if rule.say else {}),
        **({"gate_failure": rule.gate_failure} if rule.gate_failure is not None else {}),
        **rule.report,
    }
    return msgspec.json.encode(report)


def _inside(workdir: Path, name: str) -> Path:
    """Return the path made ready for writing; a symbolic link must not lead the script out of the tree."""
    root = workdir.resolve()
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise ValueError(f"{name} leads out of the working tree")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _rules(choice: AgentChoice) -> tuple[Rule, ...]:
    script = choice.options.get("script")
    if script is None:
        return ()
    if not isinstance(script, str):
        raise InvalidValue(what="The script", value=script, expected="a path")
    return load_script(Path(script))


def _rule_of(task: AgentTask) -> Rule:
    if "script" not in task.effect.agent.options:
        return UNSCRIPTED
    rules = _rules(task.effect.agent)
    return _rule_for(rules, _part(task)) if rules else UNSCRIPTED


def _rule_for(rules: tuple[Rule, ...], part: ScriptedPart) -> Rule:
    for rule in rules:
        if rule.matches(part.step, part.role, part.iteration, part.attempt):
            return rule
    return UNSCRIPTED


def _part(task: AgentTask) -> ScriptedPart:
    effect = task.effect
    return ScriptedPart(
        run=task.run,
        step=effect.unit,
        role=effect.role,
        iteration=str(effect.iteration),
        attempt=str(effect.attempt),
        workdir=task.workdir,
        word=_word(effect.report),
    )


def _word(rule: ReportRule) -> str:
    """Return COMPLETED, or a judging role's first word: a rehearsal passes unless its script says otherwise."""
    return COMPLETED if rule.any_status or COMPLETED in {*rule.words, *rule.aliases} else next(iter(rule.words))


def main(argv: list[str], environ: Mapping[str, str]) -> int:
    """Play the part as a program."""
    if len(argv) != 1:
        print("usage: python -m agent_orchestrator.agents.scripted SCRIPT", file=sys.stderr)
        return 2
    part = ScriptedPart(
        run=environ.get("RUN_ID", ""),
        step=environ.get("STEP_ID", ""),
        role=environ.get("AGENT_ID", ""),
        iteration=environ.get("ITERATION", "0"),
        attempt=environ.get("STEP_ATTEMPT", "1"),
        workdir=Path(environ.get("REPO_DIR", ".")),
    )
    try:
        rule = _rule_for(load_script(Path(argv[0])), part)
        if rule.hang:
            signal.pause()
        if rule.takes:
            threading.Event().wait(rule.takes)
        played = play(rule, part)
        if played.report is not None and "REPORT_PATH" in environ:
            Path(environ["REPORT_PATH"]).write_bytes(played.report)
    except (OrcError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    if played.said:
        print(played.said)
    if played.error:
        print(played.error, file=sys.stderr)
    return played.exit_code


AGENT = ScriptedAgent()

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
