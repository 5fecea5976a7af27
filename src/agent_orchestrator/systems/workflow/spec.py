"""The specification of a workflow run: the workflow file as data, and the options of this run.

Stored with the run as JSON, so it holds plain values only. Reading the file is `parse.py`'s; paths are resolved
by the caller, who may look at the disk, and put in with `with_prompts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_orchestrator.core.budget import Amounts
from agent_orchestrator.core.effects import AgentChoice

ITEMS_MAX = 100
"""The most items that a loop without `max_iterations` takes: more fail the step, for nobody said to leave any out."""


class ItemLoop(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One step done once for each item; exactly one of the three sources is given."""

    items: tuple[Any, ...] | None = None
    items_from_step: str | None = None
    items_from_artifact: str | None = None
    item_var: str = "item"
    index_var: str = "index"
    max_iterations: int | None = None
    """The items beyond are left out."""


class StepSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One step, as the workflow file has it."""

    id: str
    agent: str
    prompt: str
    """As written in the file."""
    prompt_path: str | None = None
    """Absolute; filled in by `with_prompts`."""
    needs: tuple[str, ...] = ()
    loop_back_to: str | None = None
    gates: tuple[str, ...] = ()
    check: str | None = None
    human_in_the_loop: bool = False
    answer_file: bool = True
    """True where a person may answer by writing a file; `orc approve` and `orc reject` always answer."""
    when: str | None = None
    model: str | None = None
    timeout_s: float | None = None
    max_attempts: int | None = None
    budget: Amounts | None = None
    """The budget of the step, all its iterations and attempts together."""
    attempt_budget: Amounts | None = None
    metadata: dict[str, Any] = {}
    next_on_success: tuple[str, ...] = ()
    loop: ItemLoop | None = None


class WorkflowSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The workflow file's static part and the run's options."""

    name: str
    steps: tuple[StepSpec, ...]
    description: str = ""
    metadata: dict[str, Any] = {}
    max_parallel: int = 4
    max_attempts: int = 2
    max_iterations: int = 4
    gate_state_file: str | None = None
    agents: dict[str, AgentChoice] = {}
    """Role → choice; the key "" is the default for all other roles."""
    variables: dict[str, str] = {}
    env: dict[str, str] = {}
    when_env: dict[str, str] = {}
    """The values of `env.NAME` in a `when`: captured when the run was made, so that a resumed run decides alike."""
    timeout_s: float | None = None
    idle_timeout_s: float | None = None
    file: str | None = None
    """The absolute path of the workflow file. Runs of 0.1.0 do not say it."""

    def attempts_of(self, step: StepSpec) -> int:
        """Give the number of times that one iteration of the step may be tried."""
        return step.max_attempts if step.max_attempts is not None else self.max_attempts

    @property
    def assigned(self) -> dict[str, AgentChoice]:
        """The agents by role; a role that is an agent's name needs no choice."""
        named = {step.agent for step in self.steps if step.agent != "shell"} if "" not in self.agents else set()
        return {**{role: AgentChoice(name=role) for role in sorted(named)}, **self.agents}

    def with_assigned(self, agents: Mapping[str, AgentChoice]) -> WorkflowSpec:
        """The specification with these instead, where they are given."""
        return msgspec.structs.replace(self, agents={**self.agents, **agents})

    @property
    def choices(self) -> tuple[AgentChoice, ...]:
        """Everybody who may work."""
        return tuple(self.choice_for(step) for step in self.steps)

    def choice_for(self, step: StepSpec) -> AgentChoice:
        """Which agent performs the step: `shell` is always the shell; else the role's choice, else the default."""
        if step.agent == "shell":
            return AgentChoice(name="shell")
        choice = self.agents.get(step.agent) or self.agents.get("") or AgentChoice(name=step.agent)
        return choice if step.model is None else msgspec.structs.replace(choice, model=step.model)


def with_prompts(spec: WorkflowSpec, paths: Mapping[str, str]) -> WorkflowSpec:
    """The spec with the absolute prompt path of each step named in `paths`."""
    steps = tuple(msgspec.structs.replace(step, prompt_path=paths[step.id]) if step.id in paths else step for step in spec.steps)
    return msgspec.structs.replace(spec, steps=steps)


def with_options_kept(new: WorkflowSpec, old: WorkflowSpec) -> WorkflowSpec:
    """The new file with the stored run's options; only what the new spec really gives overrides them.

    The three limits always stay: they are changed by name (`max_attempts`, …), never by a default.
    """
    return msgspec.structs.replace(
        new,
        max_parallel=old.max_parallel,
        max_attempts=old.max_attempts,
        max_iterations=old.max_iterations,
        gate_state_file=new.gate_state_file or old.gate_state_file,
        agents=old.agents | new.agents,
        variables=old.variables | new.variables,
        env=old.env | new.env,
        when_env=old.when_env | new.when_env,
        timeout_s=new.timeout_s if new.timeout_s is not None else old.timeout_s,
        idle_timeout_s=new.idle_timeout_s if new.idle_timeout_s is not None else old.idle_timeout_s,
    )
