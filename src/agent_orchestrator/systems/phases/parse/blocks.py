"""A Markdown document as sections with their fields, boxes and lines: what the parser of task documents reads.

Knows Markdown, and of tasks only that a checkbox is a criterion. Every line number is that of the file, counted from 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

from agent_orchestrator.systems.phases.spec import Criterion, find_code, make_criteria

_FIELD = re.compile(r"\*\*(?P<key>[^*]+?)\s*(?::\*\*|\*\*\s*:)\s*(?P<value>.*)\Z", re.S)
_BOX = re.compile(r"\[(?P<mark>[ xX]?)\](?:\s+(?P<text>.*))?\Z", re.S)
_PLAIN = re.compile(r"(?P<key>[A-Za-z][A-Za-z -]*?)\s*:")
_COMMENT = re.compile(r"<!--.*?-->", re.S)

Complain = Callable[[str, int | None], None]
"""Notes a fault and its line."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a paragraph, or one item of a list."""

    line: int
    text: str
    item: bool = False
    more: tuple[tuple[int, str], ...] = ()
    """The lines of an item after its first, each with its number; they are part of the text."""

    @property
    def code(self) -> str | None:
        """The first thing in backticks."""
        return find_code(self.text)

    @property
    def box(self) -> str | None:
        """The text behind a checkbox; None when it is none."""
        match = _BOX.match(self.text) if self.item else None
        return (match["text"] or "").strip() if match is not None else None


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """`**Key**: value`, with what follows it up to the next key."""

    line: int
    key: str
    value: str
    entries: tuple[Entry, ...]
    text: str
    """The value and all that follows, as it was written."""

    def listed(self) -> list[tuple[int, str]]:
        """Give the value as a list: parted by commas, or the items below it."""
        inline = [(self.line, part.strip(" `")) for part in self.value.split(",") if part.strip(" `")]
        return inline + [(entry.line, entry.text.strip(" `")) for entry in self.entries if entry.text.strip(" `")]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A heading with what stands below it, up to the next heading."""

    level: int
    title: str
    line: int
    text: str
    entries: tuple[Entry, ...]
    fields: tuple[Field, ...]

    @property
    def loose(self) -> tuple[Entry, ...]:
        """The entries before the first field."""
        first = self.fields[0].line if self.fields else None
        return tuple(entry for entry in self.entries if first is None or entry.line < first)

    def unmarked(self, known: Collection[str]) -> dict[int, tuple[str, str]]:
        """Find lines that begin with a known key, in small letters there, which is not written as one: text and key by number."""
        lines = [line for entry in self.entries for line in ((entry.line, entry.text), *entry.more)]
        found = ((number, text, _PLAIN.match(text)) for number, text in lines)
        named = ((number, text, " ".join(match["key"].split())) for number, text, match in found if match is not None)
        return {number: (text, key) for number, text, key in named if key.lower() in known}


def join_sections(sections: Sequence[Section]) -> Section:
    """Join a section with those of deeper levels below it."""
    first, *deeper = sections
    parts = [first.text, *(f"{'#' * one.level} {one.title}\n\n{one.text}" for one in deeper)]
    return msgspec.structs.replace(
        first,
        text="\n\n".join(part.strip() for part in parts if part.strip()),
        entries=tuple(entry for one in sections for entry in one.entries),
        fields=tuple(field for one in sections for field in one.fields),
    )


def read_sections(source: str) -> list[Section]:
    """Read the document's sections in order; what stands before the first heading is left out."""
    lines = source.splitlines()
    tokens = MarkdownIt("commonmark").parse(source)
    heads = [
        (int(token.tag[1:]), tokens[at + 1].content.strip(), token.map[0])
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.map is not None and token.level == 0
    ]
    entries = list(_entries(tokens))
    sections = []
    for number, (level, title, begin) in enumerate(heads):
        end = heads[number + 1][2] if number + 1 < len(heads) else len(lines)
        inside = tuple(entry for entry in entries if begin + 1 < entry.line <= end)
        sections.append(
            Section(
                level=level,
                title=title,
                line=begin + 1,
                text=_cut(lines, begin + 1, end),
                entries=inside,
                fields=tuple(_fields(inside, lines, end)),
            )
        )
    return sections


def _entries(tokens: list[Token]) -> Iterator[Entry]:
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.type == "list_item_open") - (token.type == "list_item_close")
        if token.type != "inline" or token.map is None or tokens[at - 1].type == "heading_open":
            continue
        yield from _lines(token.content.splitlines(), token.map[0] + 1, item=depth > 0)


def _lines(lines: list[str], first: int, *, item: bool) -> Iterator[Entry]:
    """Give a paragraph line by line, an item as a whole; a field begins anew where Markdown would go on with the item."""
    held: Entry | None = None
    for number, line in enumerate(lines, first):
        text = " ".join(line.split())
        if held is None or _FIELD.match(text) is not None or not held.item:
            if held is not None:
                yield held
            held = Entry(line=number, text=text, item=item and number == first)
        else:
            held = msgspec.structs.replace(held, text=f"{held.text} {text}", more=(*held.more, (number, text)))
    if held is not None:
        yield held


def _fields(entries: tuple[Entry, ...], lines: list[str], end: int) -> Iterator[Field]:
    starts = [(at, match) for at, entry in enumerate(entries) if (match := _FIELD.match(entry.text)) is not None]
    for number, (at, match) in enumerate(starts):
        following = starts[number + 1][0] if number + 1 < len(starts) else len(entries)
        until = entries[following].line - 1 if following < len(entries) else end
        value = match["value"].strip()
        rest = _cut(lines, entries[at].line, until)
        yield Field(
            line=entries[at].line,
            key=match["key"].strip(),
            value=value,
            entries=entries[at + 1 : following],
            text="\n".join(part for part in (value, rest) if part),
        )


def _cut(lines: list[str], begin: int, end: int) -> str:
    return _COMMENT.sub("", "\n".join(lines[begin:end])).strip()


def read_boxes(entries: tuple[Entry, ...], nameless: str, complain: Complain) -> tuple[Criterion, ...]:
    """Read checkboxes as criteria; `nameless` is the complaint about one that has no text."""
    texts: list[tuple[str, str | None]] = []
    for entry in entries:
        text = entry.box
        if text is None:
            if entry.item:
                complain(f"a criterion is a checkbox: write - [ ] {entry.text}", entry.line)
        elif not text:
            complain(f"{nameless}: say what must be true", entry.line)
        else:
            texts.append((text, entry.code))
    return make_criteria(texts)
