"""The effects that ought to be going on: unit → effect, one thing per unit at a time.

Only `evolve` changes it. It remembers which units changed since the engine last looked, so that making the world
match costs what changed, not what exists; after a crash the engine looks at all of it, with the same code.
It also keeps what the engine decides for every system alike: its budget, units whose agent may not start yet, and what
people do with the work in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, get_args

import msgspec

from agent_orchestrator.core.budget import Budget
from agent_orchestrator.core.effects import ACTIVE, AgentChoice, AskHuman, Effect, KeptTree, RunAgent
from agent_orchestrator.core.events import AgentSpoke, Forked, ToolRefused, UnitSteered, UnitTakenOver, WentBack
from agent_orchestrator.core.finish import Finish
from agent_orchestrator.core.hold import Hold, HoldReason
from agent_orchestrator.core.ids import EffectId, unit_of
from agent_orchestrator.core.inputs import Saying

STEERING_KEPT = 20
"""Words of people that are kept for agents which have not read them."""


class Steering(msgspec.Struct):
    """Words of a person, and who has read them: (unit, role) → iteration. Each agent of a unit reads them, not only the first."""

    text: str
    unit: str = ""
    read: dict[tuple[str, str], int] = {}

    def is_for(self, effect: RunAgent) -> bool:
        """Tell whether the prompt of an agent has them: it has not read them, or in an earlier try of the same iteration."""
        return self.unit in ("", effect.unit) and self.read.get((effect.unit, effect.role), effect.iteration) == effect.iteration

    def tell(self, effect: RunAgent) -> str:
        """Note that an agent reads the words, and return them."""
        self.read[effect.unit, effect.role] = effect.iteration
        return self.text


class PlannedAgent(msgspec.Struct, frozen=True):
    """An agent whose effect nobody has looked at yet: a fold puts thousands, and looks at those that are left.

    It has all that the effect is made of, as it is when it is put: `build` gives the same whenever it is called.
    """

    id: EffectId
    unit: str

    def build(self) -> RunAgent:
        """Return the effect."""
        raise NotImplementedError


_BUILT = frozenset({*get_args(Effect), type(None)})
"""All others are planned. To look a kind up takes a third of asking whether something is an instance of what it is not."""
_WAITING = _BUILT - frozenset(ACTIVE)
"""All others occupy the machine, those included that nobody has looked at."""


if TYPE_CHECKING:
    Wanted = Effect | PlannedAgent
else:
    Wanted = Effect  # As a snapshot is decoded: whoever takes one looks at every effect first.


class Doing(msgspec.Struct):
    """The wanted effects of one run."""

    _effects: dict[str, Wanted] = {}
    """By unit."""
    _boots: dict[str, str | None] = {}
    _changed: dict[str, None] = {}
    active: int = 0
    """The number of units that run a program, those that are held included: they keep their place."""
    questions: int = 0
    """Units that wait for a person's answer."""
    boot: str | None = None
    """The boot in which the run is driven at this point of its journal."""
    budget: Budget = Budget()
    warned: dict[str, int] = {}
    """The highest share, in percent, that was warned of, by limit."""
    holds: dict[str, Hold] = {}
    """Units whose wanted agent has not started, and may not yet: unit → why."""
    refused: dict[tuple[str, str, str], ToolRefused] = {}
    """Tools that were refused to agents of the run: agent, tool, what was asked."""
    finish: Finish = msgspec.field(default_factory=Finish)
    worked_us: int = 0
    """The time in which something of the run was at work."""
    steering: list[Steering] = []
    """Words of people, the newest last."""
    spoken: dict[str, AgentSpoke] = {}
    """Questions of agents at work that nobody has answered, by unit; each goes on meanwhile."""
    interrupted: set[EffectId] = set()
    """Agents at work that are to be stopped, to go on with the words of a person, or after one had their session."""
    taken: set[str] = set()
    """Units whose agent's session a person has: none of their agents starts."""
    tests: dict[str, int] = {}
    """The most tests that a check of each command ran."""
    found: dict[tuple[str, str], str] = {}
    """The trees as the run found them, each as a commit: before any of its work."""
    kept: dict[tuple[str, str], KeptTree] = {}
    """The newest tree that was kept of each place: repository and branch, both empty for the run's own tree."""
    returning: WentBack | Forked | None = None
    """The point whose trees have to be brought back before anything starts."""
    shared: frozenset[str] = frozenset()
    """Sessions that belong to the run which this one was forked from."""
    stale: frozenset[str] = frozenset()
    """Sessions that know of work which is no part of this run any more."""

    def put(self, effect: Effect | PlannedAgent) -> None:
        """From now on the unit does this, instead of what it did."""
        if self.steering and isinstance(effect, RunAgent | PlannedAgent):
            effect = self._told(effect.build() if isinstance(effect, PlannedAgent) else effect)
        unit, kind = effect.unit, type(effect)
        before = self._effects.get(unit)
        if before is not None:
            self._forget(before)
        if kind not in _WAITING:
            self.active += 1
        elif kind is AskHuman:
            self.questions += 1
        self._effects[unit] = effect
        self._boots[unit] = self.boot
        self._changed[unit] = None
        if self.spoken:
            self.spoken.pop(unit, None)

    def drop(self, unit: str) -> None:
        """From now on the unit does nothing."""
        before = self._effects.pop(unit, None)
        if before is not None:
            self._forget(before)
            del self._boots[unit]
            self._changed[unit] = None
            if self.spoken:
                self.spoken.pop(unit, None)

    def _forget(self, before: Effect | PlannedAgent) -> None:
        """Nothing that is kept about the unit's effect holds for the next one."""
        kind = type(before)
        if kind not in _WAITING:
            self.active -= 1
        elif kind is AskHuman:
            self.questions -= 1
        if self.interrupted:
            self.interrupted.discard(before.id)
        if self.holds:
            self.holds.pop(before.unit, None)

    def steer(self, event: UnitSteered) -> None:
        """A person has words for the agents of a unit, or of all: one that has not begun yet reads them at once."""
        self.steering = [*self.steering, Steering(event.text, event.unit)][-STEERING_KEPT:]
        self.spoken = {unit: asked for unit, asked in self.spoken.items() if event.unit not in ("", unit)}
        for effect in [one for one in self if isinstance(one, RunAgent) and event.unit in ("", one.unit)]:
            if self.is_held(effect.id):
                self._effects[effect.unit] = self._told(effect)
            elif event.now:
                self._interrupt(effect)

    def take_over(self, event: UnitTakenOver) -> None:
        """A person has the session of the unit's agent: one at work is stopped, and held when it would go on."""
        self.taken.add(event.unit)
        effect, hold = self.of(event.unit), self.holds.get(event.unit)
        starts = hold is None or hold.why is HoldReason.SHORTAGE  # There the start is under way, and tried again.
        if isinstance(effect, RunAgent) and starts:
            self._interrupt(effect)

    def _interrupt(self, effect: RunAgent) -> None:
        self.interrupted.add(effect.id)
        self._changed[effect.unit] = None

    def hear(self, event: AgentSpoke) -> None:
        """An agent at work said something: a question stands until words for it come or it ends, words that it read are read."""
        effect = self.of(event.unit)
        if event.saying is Saying.QUESTION:
            self.spoken[event.unit] = event
        elif event.saying is Saying.HEARD and isinstance(effect, RunAgent):
            for words in self.words_for(effect):
                words.tell(effect)

    def words_for(self, effect: RunAgent) -> list[Steering]:
        """Give the words of people for an agent at work that its prompt did not have."""
        return [one for one in self.steering if one.is_for(effect) and one.text not in effect.steering]

    @property
    def asking(self) -> int:
        """The number of things that wait for a person: questions, those of agents at work included, and sessions taken over."""
        held = sum(hold.why is HoldReason.PERSON for hold in self.holds.values()) if self.taken else 0
        return self.questions + len(self.spoken) + held

    def _told(self, effect: RunAgent) -> RunAgent:
        """The agent with the words that are for it."""
        words = tuple(one.tell(effect) for one in self.steering if one.is_for(effect))
        return msgspec.structs.replace(effect, steering=words) if words else effect

    def hold(self, unit: str, hold: Hold) -> None:
        """The unit's agent may not start yet; nothing, when the unit does something else by now."""
        if self.wants(hold.effect):
            self.holds[unit] = hold

    def let_go(self, unit: str, effect: EffectId) -> None:
        """The unit's agent may start."""
        if self.is_held(effect):
            del self.holds[unit]
            self._changed[unit] = None

    def change_agent(self, unit: str, agent: AgentChoice) -> None:
        """Another agent is to do what the unit does; its launch has not begun."""
        effect = self.of(unit)
        if isinstance(effect, RunAgent):
            self._effects[unit] = msgspec.structs.replace(effect, agent=agent)

    def is_held(self, effect: EffectId) -> bool:
        """Tell whether this effect is wanted, and may not start yet."""
        hold = self.holds.get(unit_of(effect)) if self.holds else None
        return hold is not None and hold.effect == effect

    def of(self, unit: str) -> Effect | None:
        """Give the unit's effect."""
        effect = self._effects.get(unit)
        if type(effect) not in _BUILT:
            effect = self._effects[unit] = effect.build()  # type: ignore[union-attr]
        return effect  # type: ignore[return-value]

    def wants(self, effect: EffectId) -> bool:
        """Tell whether an outcome of this effect still matters."""
        wanted = self._effects.get(unit_of(effect))
        return wanted is not None and wanted.id == effect

    def boot_of(self, unit: str) -> str | None:
        """The boot in which the unit's effect came to be wanted: after another one it must not be started any more."""
        return self._boots[unit]

    @property
    def at_work(self) -> int:
        """The number of units that run a program now."""
        return self.active - len(self.holds)

    def changes(self) -> Iterable[str]:
        """Units whose effect changed since they were last taken."""
        return self._changed

    def take_changes(self) -> list[str]:
        """Units whose effect changed since the last call, in order of change."""
        changed = list(self._changed)
        self._changed.clear()
        return changed

    def details(self) -> list[dict[str, str]]:
        """Give what commands show of it."""
        return [{"step": effect.unit, "effect": effect.id} for effect in self]

    def __iter__(self) -> Iterator[Effect]:
        for unit, effect in self._effects.items():
            if isinstance(effect, PlannedAgent):
                effect = self._effects[unit] = effect.build()
            yield effect

    def __len__(self) -> int:
        return len(self._effects)
