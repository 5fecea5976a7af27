"""The five modes at a moment in which there is much to see: for the tests of the live view, and for the pictures of the docs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

PLAYER = Path(__file__).with_name("player.py")
CONFIG = """\
[agents.claude]
binary = "{binary}"
model = "claude-sonnet-4-5"
prices.default = {{ input = 3, output = 15, cache_read = 0.3, cache_write = 3.75 }}
"""
HELD = {"until": "go"}


class Stage(NamedTuple):
    """A command, and a text that stands at the terminal when there is something to see."""

    arguments: tuple[str, ...]
    seen: tuple[str, ...]


class Theatre:
    """A repository with files of its own, and beside it the player with its parts."""

    def __init__(self, folder: Path, name: str = "shop") -> None:
        self.repo, self.side = folder / name, folder / "side"
        for made in (self.repo, self.side):
            made.mkdir(parents=True, exist_ok=True)
        binary = self.side / "claude"
        binary.write_text(f'#!/bin/sh\nexec {sys.executable} "{self.side}/player.py" "$@"\n')
        binary.chmod(0o755)
        (self.side / "player.py").write_bytes(PLAYER.read_bytes())
        (self.repo / ".orc.toml").write_text(CONFIG.format(binary=binary))
        (self.repo / "cart.py").write_text('"""The cart."""\n')
        (self.repo / "prompt.md").write_text("Do your part.\n")
        self.git("init", "--quiet", "--initial-branch", "main")
        self.git("add", "--all")
        self.git("-c", "user.name=Ada", "-c", "user.email=ada@localhost", "commit", "--quiet", "--message", "The shop")
        self.go(held=True)

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.repo, check=True, capture_output=True)

    def play(self, parts: dict[str, dict[str, Any]]) -> None:
        """Set who does what."""
        (self.side / "parts.json").write_text(json.dumps(parts))

    def go(self, *, held: bool = False) -> None:
        """Let those go on that are held, or hold them again."""
        if held:
            (self.side / "go").unlink(missing_ok=True)
        else:
            (self.side / "go").touch()


def say(text: str, **more: Any) -> dict[str, Any]:
    return {"say": text, **more}


def use(tool: str, on: str, **more: Any) -> dict[str, Any]:
    named = {"Bash": "command", "Grep": "pattern"}.get(tool, "file_path")
    return {"tool": tool, "on": {named: on}, **more}


def workflow(theatre: Theatre) -> Stage:
    (theatre.repo / "workflow.yaml").write_text(
        """\
name: checkout
steps:
  - {id: plan, agent: planner, prompt: prompt.md, check: "test -s plan.md"}
  - {id: implement, agent: coder, prompt: prompt.md, needs: [plan], check: "test -f cart.py"}
  - {id: write_the_tests, agent: tester, prompt: prompt.md, needs: [plan]}
  - {id: approve_design, agent: planner, prompt: prompt.md, needs: [plan], human_in_the_loop: true}
  - {id: release_notes, agent: writer, prompt: prompt.md, needs: [implement, write_the_tests, approve_design]}
"""
    )
    theatre.play(
        {
            "plan": {"acts": [say("The cart needs a total and a discount.")], "writes": {"plan.md": "1. total\n2. discount\n"}},
            "implement": {
                "acts": [use("Read", "cart.py"), use("Edit", "cart.py"), use("Bash", "pytest -q tests/test_cart.py", **HELD)]
            },
            "write_the_tests": {
                "acts": [use("Grep", "def total"), say("Next come the tests of discounts that round up.", **HELD)]
            },
            "approve_design": {
                "acts": [say("Prices are kept in cents.")],
                "report": {"summary": "Prices are kept in cents, and discounts round up."},
            },
        }
    )
    arguments = ("run", "--workflow", "workflow.yaml", "--agent", "claude", "--run-id", "checkout", "--budget-usd", "5")
    return Stage(
        arguments,
        ("Approve step approve_design?", "● Bash pytest -q", "discounts", "changed, +", "check `test -s plan.md` passed"),
    )


def loop(theatre: Theatre) -> Stage:
    theatre.play(
        {
            "loop@1": {"acts": [say("I begin with the total.")], "writes": {"cart.py": "def total(): ...\n"}},
            "loop@2": {"acts": [use("Bash", "pytest -q", tokens=4_000)], "writes": {"cart.py": "def discount(): ...\n"}},
            "*": {
                "acts": [use("Read", "cart.py"), use("Bash", "pytest -q tests/test_cart.py -k rounding", tokens=9_000, **HELD)]
            },
        }
    )
    check = ("--until", 'test "$(grep -c def cart.py)" -ge 9', "--max-iterations", "3", "--no-auto-test")
    words = ("loop", "run", "the cart rounds as the shop does", *check, "--agent", "claude", "--budget-usd", "4")
    return Stage(words, ("2/3 iterations", "iteration 3", "● Bash pytest -q"))


def phases(theatre: Theatre) -> Stage:
    tasks = "".join(
        f"#### Task {number}: {title}\n\n**Success Criteria**:\n- [ ] It is good\n\n"
        for number, title in (("1.1", "Prices in cents"), ("1.2", "Totals"))
    )
    later = "#### Task 2.1: Discounts\n\n**Success Criteria**:\n- [ ] It is good\n"
    document = f"# Task: Checkout\n\n## Goal\n\nA cart that adds up.\n\n## Phases & Tasks\n\n### Phase 1: Cart\n\n{tasks}"
    (theatre.repo / "task.md").write_text(f"{document}### Phase 2: Money\n\n{later}")
    done = {"report": {"status": "SUCCESS", "summary": "Prices are whole cents.", "criteria": {"it_is_good": True}}}
    theatre.play(
        {
            "1.1": {"acts": [use("Edit", "cart.py")], "writes": {"cart.py": "CENTS = 100\n"}, **done},
            "1.2": {"acts": [use("Read", "cart.py"), use("Edit", "cart.py", tokens=7_000, **HELD)], **done},
            "*": {"report": {"status": "SUCCESS", "summary": "Fine.", "criteria": {"it_is_good": True}}},
        }
    )
    words = ("phases", "run", "task.md", "--agent", "claude", "--yes", "--no-supervisor", "--no-outer-ralph", "--run-id", "cart")
    return Stage(words, ("1/3 tasks", "● Edit cart.py", "1.2"))


def team(theatre: Theatre) -> Stage:
    groups = [
        {"id": "A", "name": "cart totals", "tasks": ["T1"], "branch_name": "team/totals", "files_affected": ["cart.py"]},
        {"id": "B", "name": "discounts", "tasks": ["T2"], "branch_name": "team/discounts", "files_affected": ["discount.py"]},
    ]
    tasks = [{"id": task, "description": f"Do {task}", "group_id": group["id"]} for group in groups for task in group["tasks"]]
    plan = {"status": "PLANNING_COMPLETE", "mode": "parallel", "mode_reasoning": "independent", "tasks": tasks, "groups": groups}
    ready = {"status": "READY_FOR_QA", "summary": "Totals are exact.", "notes": "", "unit_tests": None}
    theatre.play(
        {
            "pm.plan": {"acts": [say("Totals and discounts are independent.")], "report": plan},
            "A.develop": {"acts": [use("Edit", "cart.py")], "writes": {"cart.py": "def total(): ...\n"}, "report": ready},
            "A.qa": {"acts": [use("Bash", "pytest -q tests/integration", tokens=6_000, **HELD)]},
            "B.develop": {"acts": [use("Write", "discount.py"), say("Half a cent is rounded up now.", tokens=5_000, **HELD)]},
        }
    )
    words = ("team", "run", "The cart adds up, with discounts", "--agent", "claude", "--check", "true", "--budget-usd", "9")
    return Stage(words, ("0/2 groups", "● Bash pytest -q", "Half a cent"))


def swarm(theatre: Theatre) -> Stage:
    beads = [{"id": f"shop-{number}", "prompt": f"Fix issue {number}.", "priority": number // 40} for number in range(101, 131)]
    (theatre.side / "beads.jsonl").write_text("".join(json.dumps(bead) + "\n" for bead in beads))
    doing = (
        *(use("Bash", "pytest -q tests/test_stock.py", tokens=3_000, **HELD), use("Grep", "def ship", **HELD)),
        *(say("The stock is counted twice here.", tokens=8_000, **HELD), use("Edit", "invoice.py", **HELD)),
    )
    parts = {f"shop-{number}": {"acts": [doing[number % 4]]} for number in range(105, 131)}
    parts |= {f"shop-{number}": {"acts": [say("Fixed.")]} for number in range(101, 105)}
    theatre.play({name: {**part, "report": {"status": "DONE", "reason": "fixed"}} for name, part in parts.items()})
    file = str(theatre.side / "beads.jsonl")
    words = ("swarm", "run", file, "--agent", "claude", "--max-agents", "12", "--branch", "fix")
    return Stage(words, ("4/30 beads", "● Grep def ship", "counted twice", "to come"))


STAGES: dict[str, Callable[[Theatre], Stage]] = {
    "workflow": workflow,
    "loop": loop,
    "phases": phases,
    "team": team,
    "swarm": swarm,
}
