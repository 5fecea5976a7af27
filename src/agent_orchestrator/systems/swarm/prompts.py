"""The prompt of a bead's agent: its instruction, which bead it is, who else is at work, what to report. Pure text."""

from __future__ import annotations

from agent_orchestrator.systems.swarm.spec import BeadSpec

BESIDE_SHOWN = 20


def compose(bead: BeadSpec, attempt: int, limit: int, beside: tuple[str, ...]) -> str:
    """The prompt of one attempt; what failed before is appended when it is sent."""
    lines = [bead.prompt.rstrip(), "", "## About this task", ""]
    lines.append(f"- It is bead {bead.id}, attempt {attempt} of at most {limit}.")
    if bead.branch:
        lines.append(
            f"- You work in a worktree of your own, on branch {bead.branch}. What you leave uncommitted is committed for you."
        )
    if beside:
        more = f" and {len(beside) - BESIDE_SHOWN} more" if len(beside) > BESIDE_SHOWN else ""
        names = ", ".join(beside[:BESIDE_SHOWN])
        lines.append(f"- Other agents are at work on the same repository: {names}{more}. Leave alone what is theirs.")
    if bead.verify:
        lines.append(f"- When you are done, `{bead.verify}` is run for you; if it fails, the attempt has failed.")
    lines.append("- Report DONE when it is done, FAILED when it could not be done, and say in `reason` what you did, or why not.")
    return "\n".join(lines) + "\n"
