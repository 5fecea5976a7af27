"""Edits the code. What it knows is one remedy per complaint; which one it takes, the tests tell it.

At first it makes the mistake that many make: it mends the test it was told about, runs only that one, and is content.
Sent back, it reads FEEDBACK_PATH, takes the remedy for what the checks complained about, and runs all tests.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

from tools import FOLDER, failed_tests, report, run_tests, say

FILE = Path("pages/__init__.py")
REMEDIES = {
    "test_a_page_that_is_begun_counts": "items // per_page + 1",
    "test_a_full_page_is_not_followed_by_an_empty_one": "(items + per_page - 1) // per_page",
}
THINKING_MAX_S = 120.0


def work() -> None:
    check = read_complaint()
    if check is None:
        plan = Path(os.environ["DEP_PLAN_ARTIFACT_0"]).read_text("utf-8")
        complaints = re.findall(r"^- (\S+)$", plan, re.M)
        say(f"the plan names {len(complaints)} failing test")
        think()
        edit(complaints)
        code, _ = run_tests(*complaints)
        say(f"the test that the plan names {'passes' if code == 0 else 'fails'}")
    else:
        complaints = failed_tests(check["tail"])
        say(f"`{check['command']}` ended with {check['exit_code']}; it complains about {', '.join(complaints)}")
        edit(complaints)
        code, _ = run_tests()
        say(f"all tests {'pass' if code == 0 else 'do not pass'}")
    status = "COMPLETED" if code == 0 else "FAILED"
    report(status=status, artifacts=[str(FILE)], logs=[f"took care of {test}" for test in complaints])


def read_complaint() -> dict[str, Any] | None:
    """Return the check that sent the work back; None where nobody did, also if an attempt before this one was lost."""
    told = os.environ.get("FEEDBACK_PATH")
    entries = json.loads(Path(told).read_text("utf-8"))["entries"] if told else []
    return next((entry["check"] for entry in reversed(entries) if "check" in entry), None)


def think() -> None:
    """Works visibly until the demonstration has shown what it wants to show: no machine is too slow for it then."""
    enough = FOLDER / "enough-thought"
    started = time.monotonic()
    number = 0
    while not enough.exists() and time.monotonic() - started < THINKING_MAX_S:
        number += 1
        say(f"thinking, thought {number}")
        time.sleep(0.5)


def edit(complaints: list[str]) -> None:
    """Replaces what page_count returns by the remedy for the first complaint that has one."""
    names = [complaint.rpartition("::")[2] for complaint in complaints]
    remedy = next(REMEDIES[name] for name in names if name in REMEDIES)
    text = FILE.read_text("utf-8")
    FILE.write_text(re.sub(r"return .+", f"return {remedy}", text), "utf-8")
    say(f"page_count now returns {remedy}")
