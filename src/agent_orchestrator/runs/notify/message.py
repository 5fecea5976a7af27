"""Messages: one or many notices of a kind, as they wait in the outbox and as they are told."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_orchestrator.config.subscribers import NoticeKind
from agent_orchestrator.core.units import iso
from agent_orchestrator.runs.notify.notices import Notice

NOTICES_KEPT = 20
"""Notices that a message names; it counts the others."""
LINES_SHOWN = 5

_MANY = {
    NoticeKind.PERSON: "questions wait for a person",
    NoticeKind.BUDGET: "notes about budgets",
    NoticeKind.PARKED: "steps are parked",
    NoticeKind.FAILED: "runs failed",
    NoticeKind.DONE: "runs are done",
}


class WaitingMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message as the outbox keeps it: open for more notices of its kind until it is first tried."""

    notices: tuple[Notice, ...]
    count: int = 1
    due_us: int
    tries: int = 0
    since_us: int = 0
    """The time of the first try."""
    problem: str = ""

    def with_notice(self, notice: Notice) -> WaitingMessage:
        """Return the message with one more notice."""
        kept = (*self.notices, notice)[:NOTICES_KEPT]
        return msgspec.structs.replace(self, notices=kept, count=self.count + 1)


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it is told: the same id and content however often."""

    id: str
    kind: str
    notices: tuple[Notice, ...]
    count: int
    repository: str

    @property
    def title(self) -> str:
        """Our own words alone: nothing in it was written by an agent."""
        if self.count > 1:
            return f"orc: {self.count} {_MANY[NoticeKind(self.kind)]}"
        one = self.notices[0]
        return f"orc: {one.run} {one.words}" if not one.unit else f"orc: {one.run}, {one.unit} {one.words}"

    @property
    def text(self) -> str:
        """The facts, a line each."""
        if self.count == 1:
            return _line(self.notices[0], self.repository)
        shown = [f"{one.run} {one.words}: {_line(one, '')}" for one in self.notices[:LINES_SHOWN]]
        more = [f"… and {self.count - len(shown)} more"] if self.count > len(shown) else []
        return "\n".join([*shown, *more, f"in {self.repository}"])

    def data(self) -> dict[str, Any]:
        """Return the payload of a webhook, and the standard input of a program."""
        return {
            "type": f"run.{self.kind}",
            "timestamp": iso(self.notices[0].at_us),
            "data": {
                "title": self.title,
                "text": self.text,
                "repository": self.repository,
                "count": self.count,
                "facts": [_facts(one) for one in self.notices],
            },
        }


def _line(notice: Notice, repository: str) -> str:
    where = f" in {repository}" if repository else ""
    unit = f", {notice.unit}" if notice.unit else ""
    said = f": {notice.detail}" if notice.detail else ""
    return f"{notice.name}{unit}{where}{said}"


def _facts(notice: Notice) -> dict[str, Any]:
    return {
        "run_id": notice.run,
        "name": notice.name,
        "system": notice.system,
        "unit": notice.unit or None,
        "words": notice.words,
        "detail": notice.detail,
        "at": iso(notice.at_us),
    }
