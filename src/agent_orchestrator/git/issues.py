"""Issues of the repository on a server, as work for runs: who asked for it, and whether the text is still what they saw.

An issue's text is anybody's. It counts only where somebody who may write to the repository put the label on it, and only as it
was then: a text or a title that was changed afterwards is nobody's word.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from agent_orchestrator.errors import Unavailable
from agent_orchestrator.git.forge import LISTED, Forge

WRITERS = frozenset({"admin", "maintain", "write"})

_ASKED = """
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    issue(number: $number) {
      title body lastEditedAt
      timelineItems(itemTypes: [LABELED_EVENT, RENAMED_TITLE_EVENT], last: 100) {
        nodes {
          __typename
          ... on LabeledEvent { createdAt actor { login } label { name } }
          ... on RenamedTitleEvent { createdAt }
        }
      }
    }
  }
}
"""


class ListedIssue(msgspec.Struct, frozen=True):
    """An open issue in a list."""

    number: int
    pull_request: dict[str, Any] | None = None
    """Set for a pull request, which the server lists among the issues."""


class Actor(msgspec.Struct, frozen=True):
    """A person or program on the server."""

    login: str


class Label(msgspec.Struct, frozen=True):
    """A label by its name."""

    name: str


class IssueChange(msgspec.Struct, frozen=True, rename="camel"):
    """A change of an issue: a label put on it, or another title."""

    created_at: str
    actor: Actor | None = None
    label: Label | None = None


class IssueChanges(msgspec.Struct, frozen=True):
    """The changes, oldest first."""

    nodes: list[IssueChange]


class IssueText(msgspec.Struct, frozen=True, rename="camel"):
    """An issue with its text and its past."""

    title: str
    body: str
    timeline_items: IssueChanges
    last_edited_at: str | None = None


class _Repository(msgspec.Struct):
    issue: IssueText | None


class _Data(msgspec.Struct):
    repository: _Repository | None


class _Answer(msgspec.Struct):
    data: _Data


class _Permission(msgspec.Struct):
    permission: str


def list_issues(forge: Forge, label: str) -> list[int]:
    """Return the open issues with a label, oldest first; raises Unavailable."""
    query = f"issues?labels={quote(label, safe='')}&state=open&sort=created&direction=asc&per_page={LISTED}"
    return [one.number for one in forge.ask(list[ListedIssue], query) if one.pull_request is None]


def read_issue(forge: Forge, number: int) -> IssueText | None:
    """Return an issue with its past; None where there is none. Raises Unavailable."""
    _, owner, name = forge.repository.split("/")
    variables = {"owner": owner, "name": name, "number": number}
    found = forge.call(_Answer, "graphql", {"query": _ASKED, "variables": variables}).data.repository
    return found.issue if found is not None else None


def find_fault(forge: Forge, issue: IssueText, label: str) -> str:
    """Say why an issue is nobody's word that counts; '' where it is. Raises Unavailable."""
    moments = issue.timeline_items.nodes
    put = [one for one in moments if one.label is not None and one.label.name.lower() == label.lower()]
    if not put:
        return f"nobody is known to have put the label {label} on it"
    last = put[-1]
    who = last.actor.login if last.actor is not None else ""
    if not who or not _may_write(forge, who):
        return f"{who or 'somebody unknown'}, who put the label {label} on it, may not write to the repository"
    changes = [one.created_at for one in moments if one.label is None]
    if issue.last_edited_at is not None:
        changes.append(issue.last_edited_at)
    if any(changed >= last.created_at for changed in changes):  # Both in whole seconds.
        return f"it was changed after {who} had put the label {label} on it; read it again, and put it on again"
    return ""


def _may_write(forge: Forge, login: str) -> bool:
    try:
        return forge.ask(_Permission, f"collaborators/{quote(login, safe='')}/permission").permission in WRITERS
    except Unavailable as error:
        if "HTTP 404" in str(error):
            return False
        raise


def swap_label(forge: Forge, number: int, old: str, new: str) -> None:
    """Put a label on an issue and take another off it, whichever of them is there already; raises Unavailable."""
    forge.ask(list[Label], f"issues/{number}/labels", {"labels": [new]})
    try:
        forge.ask(list[Label], f"issues/{number}/labels/{quote(old, safe='')}", method="DELETE")
    except Unavailable as error:
        if "HTTP 404" not in str(error):
            raise
