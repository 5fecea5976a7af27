"""The specification of a swarm run, stored with it. Plain data, whole and checked before it is made."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from agent_orchestrator.core.effects import AgentChoice, Tree
from agent_orchestrator.core.limits import OUTPUT_LIMIT_BYTES

MAX_ATTEMPTS = 2
TIMEOUT_S = 3_600.0
PRIORITY = 2
PROMPT_SHOWN_CHARS = 200
OUTPUT_SHOWN_CHARS = 500
NO_MODEL = "default"
"""Stands in a record where no model was named: the agent's own choice is not known to us."""


class BeadSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One bead."""

    id: str
    prompt: str
    """The instruction, its template filled in: the same for all attempts."""
    task: str = ""
    """The words that were given, where a template stands around them."""
    agent: AgentChoice
    repo: str
    """Absolute."""
    branch: str = ""
    """Empty: the repository's own checkout."""
    start: str = ""
    onto: tuple[str, ...] = ()
    """Branches of beads that it depends on: it begins with their results."""
    priority: int = PRIORITY
    """0 comes first."""
    needs: tuple[str, ...] = ()
    template: str | None = None
    verify: str | None = None
    max_attempts: int = MAX_ATTEMPTS
    timeout_s: float = TIMEOUT_S
    attempts_before: int = 0
    """Attempts of earlier dispatches: the numbers go on."""

    @property
    def tree(self) -> Tree:
        """The tree that its agent works in."""
        return Tree(repo=self.repo, branch=self.branch, start=self.start, onto=self.onto)

    @property
    def title(self) -> str:
        """The first line of what was asked for."""
        return (self.task or self.prompt).strip().partition("\n")[0]

    @property
    def place(self) -> str:
        """The working tree as a name: two beads with the same one would mix their work."""
        return f"{self.repo}\0{self.branch}"


class SwarmSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One dispatch, or one file of beads; every need is a bead of this run."""

    beads: tuple[BeadSpec, ...]
    dispatch: bool = False
    """One bead by itself: the run has its id."""
    max_agents: int = 1
    stop_after_failures: int | None = None
    shared: bool = False
    """Beads may work in the same tree at once."""
    beside: tuple[str, ...] = ()
    """Beads of other runs that were at work on the same repository when this one began."""
    tmux: bool = False
    bd_close: bool = False
    bd_close_epics: bool = False
    """Closing a bead closes the epics in the tracker whose children are all closed then."""
    env: dict[str, str] = {}
    idle_timeout_s: float | None = None
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES

    @property
    def assigned(self) -> dict[str, AgentChoice]:
        """The agents by bead."""
        return {bead.id: bead.agent for bead in self.beads}

    def with_assigned(self, agents: Mapping[str, AgentChoice]) -> SwarmSpec:
        """The specification with these instead, where they are given."""
        beads = (msgspec.structs.replace(one, agent=agents[one.id]) if one.id in agents else one for one in self.beads)
        return msgspec.structs.replace(self, beads=tuple(beads))

    @property
    def choices(self) -> tuple[AgentChoice, ...]:
        """Everybody who may work."""
        return tuple(bead.agent for bead in self.beads)


def hash_prompt(prompt: str) -> str:
    """The SHA-256 of an instruction, for comparing runs of the same one."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()


def session_of(bead: str) -> str:
    """The session name in a bead's records."""
    return f"agent-{bead}"


def terminal_of(bead: str) -> str:
    """The tmux session that a bead's agent runs in: tmux has no dots in names."""
    return session_of(bead).replace(".", "_")
