"""What the figures suggest, and when they suggest nothing."""

from __future__ import annotations

from agent_orchestrator.analysis.figures import Figures, Tally

SUCCESS_MIN, SUCCESS_RUNS_MIN = 0.70, 3
RETRIES_MAX, RETRY_RUNS_MIN = 0.30, 3
AGENT_MIN, AGENT_RUNS_MIN = 0.60, 2
TEMPLATE_MIN, TEMPLATE_RUNS_MIN = 0.50, 2


def recommendations(figures: Figures) -> list[str]:
    """One sentence per threshold that is passed; nothing when all is well."""
    said = []
    every, rate = figures.all, figures.all.success_rate
    if rate is not None and every.ended >= SUCCESS_RUNS_MIN and rate < SUCCESS_MIN:
        common = figures.common_reasons()
        most = f" Begin with the most common failure: {common[0][0]} ({common[0][1]}x)." if common else ""
        said.append(f"Only {rate:.0%} of the beads succeed, less than {SUCCESS_MIN:.0%}.{most}")
    retries = every.retry_rate
    if retries is not None and every.total >= RETRY_RUNS_MIN and retries > RETRIES_MAX:
        said.append(f"{retries:.0%} of the beads need more than one attempt: make prompts more precise, or verify earlier.")
    said += _low("Agent", figures.agents, AGENT_RUNS_MIN, AGENT_MIN, "give its beads to another agent or a stronger model")
    said += _low("Template", figures.templates, TEMPLATE_RUNS_MIN, TEMPLATE_MIN, "rewrite it, or split what it asks for")
    return said


def _low(what: str, groups: dict[str, Tally], runs_min: int, rate_min: float, then: str) -> list[str]:
    found = []
    for name, tally in sorted(groups.items()):
        rate = tally.success_rate
        if rate is not None and tally.ended >= runs_min and rate < rate_min:
            found.append(f"{what} {name} succeeds in {rate:.0%} of {tally.ended} beads, less than {rate_min:.0%}: {then}.")
    return found
