"""Facts about units that several systems tell in the same words; each of them has those that it tells in its union."""

from __future__ import annotations

from agent_orchestrator.core.events import Event, StopReason
from agent_orchestrator.core.ids import EffectId


class BackoffEnded(Event, frozen=True, kw_only=True, tag="backoff_ended"):
    """The unit may try again."""

    step: str


class QuestionsRaised(Event, frozen=True, kw_only=True, tag="questions_raised"):
    """Whoever plans wants to know something first; no questions is an answer, too."""

    questions: tuple[str, ...]


class HumanAsked(Event, frozen=True, kw_only=True, tag="human_asked"):
    """A person is asked about something, `after` the launch whose work it is about."""

    effect: EffectId
    step: str
    about: str
    question: str
    after: EffectId = EffectId("")


class HumanJudged(Event, frozen=True, kw_only=True, tag="human_judged"):
    """A person answered; what it means follows."""

    step: str
    about: str
    approved: bool
    comments: str = ""


class MergeStarted(Event, frozen=True, kw_only=True, tag="merge_started"):
    """The unit's branch is being merged: it is its turn."""

    effect: EffectId
    step: str


class EditRefused(Event, frozen=True, kw_only=True, tag="edit_refused"):
    """An edited state file was not adopted."""

    problems: tuple[str, ...]


class Concluded(Event, frozen=True, kw_only=True, tag="concluded"):
    """Nothing more will be tried; `Ended` follows."""

    stop: StopReason
    detail: str
