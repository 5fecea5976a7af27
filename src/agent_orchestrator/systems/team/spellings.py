"""The spellings of foreign team files: names of fields, words for a status, labels such as "T1: Write it".

Files that agents wrote have `taskGroups`, "COMPLETED ✅" and "in-progress" for what the seed spells in one way. Only plain
meanings are read here; what is not known stays what it is.
"""

from __future__ import annotations

import re

from agent_orchestrator.core.foreign.values import is_done, word_of

SKIPPED = "skipped"
"""The status of work that was given up on purpose: nobody is to begin it."""

_WORDS = {
    "complete": "",
    "in_progress": "inprogress started active running working wip doing ongoing developing implementing underway partial",
    "pending": "todo to_do not_started open new planned queued ready waiting backlog unstarted unassigned",
    "assigned": "",
    "dev_working": "",
    "dev_blocked": "blocked stuck on_hold",
    "waiting_qa": "ready_for_qa waiting_for_qa needs_qa",
    "qa_testing": "testing in_qa qa",
    "qa_failed": "failed_qa tests_failing",
    "waiting_review": "ready_for_review waiting_for_review needs_review qa_passed pending_review",
    "tech_review": "review in_review reviewing under_review",
    "changes_requested": "needs_changes rejected changes_required",
    SKIPPED: "cancelled canceled deferred dropped wont_do obsolete abandoned not_needed",
}
_STATUS = {word: status for status, words in _WORDS.items() for word in (status, *words.split())}
_DONE_MARKS = re.compile(r"\s*(?:✅|☑️?|✔️?|✓|\[[xX]\])\s*")
_OPEN_MARKS = re.compile(r"\s*(?:⬜|☐|🔄|⏳|❌|\[ ?\])\s*")
_TASK = re.compile(r"((?:[A-Za-z]{1,12}[-_. ]?)?\d[\w.-]{0,30}?)\s*(?:[:)–—]|\.?\s-|\.)\s+(\S.*)", re.DOTALL)
_GROUP = re.compile(r"(?:[Gg]roup[ _-])?([A-Za-z0-9][\w.-]{0,40})\s*(?::|–|—|\s-)\s+(\S.*)", re.DOTALL)


def read_status(given: object) -> str | None:
    """Read a status in the seed's words, or None when its meaning is not plain."""
    if given is True:
        return "complete"
    if not isinstance(given, str):
        return None
    return _STATUS.get(word_of(given)) or ("complete" if is_done(given) else None)


def split_task(text: str) -> tuple[str, str, bool]:
    """Split "✅ T1: Write it" into its id, its description and whether it is marked as done; without an id the text is it."""
    done = _DONE_MARKS.match(text)
    plain = (_DONE_MARKS if done else _OPEN_MARKS).sub("", text, count=1) if done or _OPEN_MARKS.match(text) else text
    found = _TASK.fullmatch(plain.strip())
    name, description = (found[1].strip(), found[2].strip()) if found else (plain.strip() or text, "")
    return name, description, done is not None


def split_group(text: str) -> tuple[str, str]:
    """Split "Group A: Sign in" into an id and a name; a text that is neither is both."""
    found = _GROUP.fullmatch(text.strip())
    return (found[1], found[2].strip()) if found else (text.strip(), "")


def make_id(text: str) -> str:
    """Make an id of a text: only letters, digits, dots and dashes can be parts of paths."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:60].strip("-._")


def fold(text: str) -> str:
    """Give the form in which names are compared: "Group A", "group_a" and "A" are one."""
    return re.sub(r"\Agroup(?=.)", "", re.sub(r"[^\w]+|_", "", text.casefold()))
