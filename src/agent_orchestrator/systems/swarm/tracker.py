"""Issues of a tracker, as `bd export` writes them, and which of them are ready: the rules of `bd ready`.

Only blocking dependencies hold back. A parent holds its children back by what it waits for itself, never by being open.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from agent_orchestrator import typed
from agent_orchestrator.core.units import from_iso
from agent_orchestrator.systems.swarm.spec import PRIORITY

HOLDING = frozenset({"blocks", "blocked-by", "conditional-blocks", "waits-for"})
"""Kinds of dependencies that hold an issue back; `parent-child` hands down what holds the parent, the others only relate."""
PARENT = "parent-child"
WAITS = "waits-for"
ANY_CHILD = "any-children"

CLOSED = frozenset({"closed", "tombstone"})
DONE_WITH = CLOSED | {"pinned"}
"""The statuses of an issue for which nobody waits: it is closed, or stays open for ever."""
READY = "open"
STUCK = frozenset({"blocked", "deferred"})
"""The statuses of a parent that hold its children back, too: a person set it aside."""

CONTAINERS = frozenset(
    {
        *("epic", "convoy", "molecule", "agent", "gate", "message", "merge-request", "role", "rig", "slot", "event"),
        *("formula", "config", "advice", "runbook"),
    }
)
"""Types of issues that hold, steer or describe work; no agent can do one."""
FLAGS = {"pinned": "it is pinned", "ephemeral": "it is ephemeral", "is_template": "it is a template"}


class IssueLink(msgspec.Struct, frozen=True, kw_only=True):
    """An issue that another one depends on."""

    depends_on_id: str
    issue_id: str = ""
    type: str = "blocks"
    gate: str = ""
    """Of a link that waits for children: `any-children` is content with the first that is closed."""
    also_blocks: bool = False
    """Of such a link: whether the other one itself has to be closed, too."""


class TrackerIssue(msgspec.Struct, frozen=True, kw_only=True):
    """A tracker's line, as far as we look at it."""

    id: str
    title: str
    description: str = ""
    design: str = ""
    acceptance_criteria: str = ""
    notes: str = ""
    status: str = READY
    issue_type: str = "task"
    priority: int = PRIORITY
    pinned: bool = False
    ephemeral: bool = False
    is_template: bool = False
    defer_until: str = ""
    dependencies: tuple[IssueLink, ...] = ()

    @property
    def is_container(self) -> bool:
        """Return True if it is no work itself."""
        return self.issue_type in CONTAINERS

    @property
    def is_closed(self) -> bool:
        """Return True if nobody is to work on it any more."""
        return self.status in CLOSED

    @property
    def holds(self) -> bool:
        """Return True if whoever waits for it still has to."""
        return self.status not in DONE_WITH

    def is_deferred(self, now_us: int) -> bool:
        """Return True if it was put off to a time that has not come."""
        try:
            return self.defer_until != "" and from_iso(self.defer_until) > now_us
        except (ValueError, OverflowError):
            return True  # Nobody can say when that is: not yet.

    @property
    def instruction(self) -> str:
        """Say what an agent is to do."""
        parts = [self.title.strip()]
        sections = {"Description": self.description, "Design": self.design, "Acceptance criteria": self.acceptance_criteria}
        parts += [f"## {title}\n\n{text.strip()}" for title, text in {**sections, "Notes": self.notes}.items() if text.strip()]
        return "\n\n".join(parts)


def read_issue(document: dict[str, Any]) -> TrackerIssue:
    """Read a line; raises ValidationError. A tracker leaves out what is empty, or writes null."""
    known = {name: document[name] for name in TrackerIssue.__struct_fields__ if document.get(name) is not None}
    if isinstance(links := known.get("dependencies"), list):
        known["dependencies"] = [_read_link(link) if isinstance(link, dict) else link for link in links]
    return typed.convert(known, TrackerIssue)


def _read_link(link: dict[str, Any]) -> dict[str, Any]:
    """Bring a link into the form of an export: `bd list --json` names the other issue by its `id`."""
    told = {name: value for name, value in link.items() if value is not None}
    if "depends_on_id" not in told and "id" in told:
        return {"depends_on_id": told["id"], "type": told.get("dependency_type", "blocks")}
    return {name: told[name] for name in ("depends_on_id", "issue_id", "type") if name in told} | _read_gate(told.get("metadata"))


def _read_gate(metadata: object) -> dict[str, Any]:
    """Read how a link waits; a tracker keeps it as JSON in a text, or as an object."""
    if isinstance(metadata, str):
        try:
            metadata = msgspec.json.decode(metadata)
        except msgspec.DecodeError:
            return {}
    if not isinstance(metadata, dict):
        return {}
    gate = metadata.get("gate")
    return {"gate": gate if isinstance(gate, str) else "", "also_blocks": metadata.get("also_blocks") in (True, "true")}


class Tracker:
    """The issues of a file."""

    def __init__(self, now_us: int) -> None:
        self._now_us = now_us
        self.issues: dict[str, TrackerIssue] = {}
        self._parents: dict[str, list[str]] = {}
        self._children: dict[str, list[str]] = {}
        self._handed: dict[str, list[str]] = {}

    def add(self, issue: TrackerIssue) -> None:
        """Take an issue in; what a link says about another issue is not asked."""
        self.issues[issue.id] = issue
        for link in issue.dependencies:
            if link.type == PARENT and link.issue_id in ("", issue.id) and link.depends_on_id != issue.id:
                self._parents.setdefault(issue.id, []).append(link.depends_on_id)
                self._children.setdefault(link.depends_on_id, []).append(issue.id)

    def find_reason(self, bead: str) -> str | None:
        """Say why an issue is not dispatched whatever it waits for; None if it may be."""
        issue = self.issues[bead]
        if issue.is_container:
            kind = f"{'an' if issue.issue_type[0] in 'aeiou' else 'a'} {issue.issue_type}"
            return f"it is {kind}, no work itself, and {issue.status}"
        if issue.status != READY:
            return f"it is {issue.status}"
        if issue.is_deferred(self._now_us):
            return f"it is deferred until {issue.defer_until}"
        flag = next((said for name, said in FLAGS.items() if getattr(issue, name)), None)
        return flag or self._find_set_aside(bead)

    def _find_set_aside(self, bead: str) -> str | None:
        for above in self._ancestors(bead):
            parent = self.issues[above]
            if parent.status in STUCK:
                return f"{above}, which it is part of, is {parent.status}"
            if parent.is_deferred(self._now_us):
                return f"{above}, which it is part of, is deferred until {parent.defer_until}"
        return None

    def is_silent(self, bead: str) -> bool:
        """Return True for a container that need not be mentioned: its work is in its children, or it is no plan of work."""
        issue = self.issues[bead]
        return issue.is_container and (issue.issue_type != "epic" or bead in self._children)

    def find_needs(self, bead: str) -> dict[str, str]:
        """Return what must be closed before an issue is ready, each with the parent it comes from, or the issue itself."""
        found = dict.fromkeys(self._blockers(bead), bead)
        for above in self._ancestors(bead):
            for need in self._hand_down(above):
                found.setdefault(need, above)
        return found

    def _ancestors(self, bead: str) -> Iterator[str]:
        """Yield the parents that are not done with, and theirs; a tracker may have them in a circle."""
        seen, stack = {bead}, [bead]
        while stack:
            for parent in self._parents.get(stack.pop(), ()):
                if parent not in seen and parent in self.issues and self.issues[parent].holds:
                    seen.add(parent)
                    stack.append(parent)
                    yield parent

    def _descendants(self, bead: str) -> set[str]:
        found: set[str] = set()
        stack = [bead]
        while stack:
            below = [child for child in self._children.get(stack.pop(), ()) if child not in found]
            found.update(below)
            stack += below
        return found

    def _blockers(self, bead: str) -> Iterator[str]:
        """Yield what the issue's own links say, as far as it is not closed."""
        for link in self.issues[bead].dependencies:
            if link.type not in HOLDING or link.issue_id not in ("", bead):
                continue
            needs = [link.depends_on_id]
            if link.type == WAITS and link.depends_on_id in self.issues:
                needs = [*(needs if link.also_blocks else ()), *(child for child in self._fan_out(link) if child != bead)]
            yield from (need for need in needs if need not in self.issues or self.issues[need].holds)

    def _fan_out(self, link: IssueLink) -> list[str]:
        """Return the children that a link waits for: all, or none once any is closed where that is enough."""
        children = self._children.get(link.depends_on_id, [])
        first = link.gate == ANY_CHILD and any(self.issues[child].is_closed for child in children)
        return [] if first else children

    def _hand_down(self, parent: str) -> list[str]:
        """Return what holds a parent's children: not they themselves, nor what waits for one of them."""
        if parent not in self._handed:
            blockers = list(self._blockers(parent))
            below = self._descendants(parent) if blockers else set()
            self._handed[parent] = [need for need in blockers if not self._reaches(need, below)]
        return self._handed[parent]

    def _reaches(self, bead: str, below: set[str]) -> bool:
        seen, stack = {bead}, [bead]
        while stack:
            one = stack.pop()
            if one in below:
                return True
            fresh = [need for need in self._blockers(one) if need not in seen] if one in self.issues else []
            seen.update(fresh)
            stack += fresh
        return False
