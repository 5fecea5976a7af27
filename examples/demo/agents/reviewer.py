"""Reads the change and reports; whether the tests pass is not its word but the orchestrator's own check."""

from __future__ import annotations

from tools import report, run, say


def work() -> None:
    _, names = run("git", "diff", "--name-only")
    _, lines = run("git", "diff", "--unified=0", "--", "pages")
    changed = names.split()
    say(lines.strip() or "nothing was changed")
    touched = [name for name in changed if name.startswith("tests/")]
    gate = {"gate_failure": f"the tests were changed: {', '.join(touched)}"} if touched else {}
    report(summary=f"changed: {', '.join(changed)}", metrics={"files": len(changed)}, **gate)
