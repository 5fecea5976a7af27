"""Runs the tests and writes PLAN.md about those that fail."""

from __future__ import annotations

from pathlib import Path

from tools import failed_tests, report, run_tests, say


def work() -> None:
    say("running the tests")
    code, output = run_tests()
    failed = failed_tests(output)
    say(f"pytest ended with {code}; failing: {', '.join(failed) or 'none'}")
    lines = ["# Plan", "", "Change `pages/__init__.py` so that these pass:", "", *(f"- {test}" for test in failed), ""]
    Path("PLAN.md").write_text("\n".join(lines), "utf-8")
    report(artifacts=["PLAN.md"], metrics={"failing": len(failed)}, summary=f"{len(failed)} failing test")
