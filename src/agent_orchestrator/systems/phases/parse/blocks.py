"""A Markdown document as sections with their fields, boxes and lines: what the parser of task documents reads.

Knows Markdown, and of tasks only that a checkbox is a criterion. Every line number is that of the file, counted from 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

_FIELD = re.compile(r"\*\*(?P<key>[^*]+?)\s*(?::\*\*|\*\*\s*(?:\([^)]*\))?\s*:)\s*(?P<value>.*)\Z", re.S)
_BOX = re.compile(r"\[(?P<mark>[ xX]?)\](?:\s+(?P<text>.*))?\Z", re.S)
_ROW = re.compile(r"\|(?P<key>[^|]+)\|(?P<value>[^|]*)\|")
_PLAIN = re.compile(r"(?P<key>[A-Za-z][A-Za-z -]*?)\s*:")
_COMMA = re.compile(r",(?![^()]*\))")
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_RULES = re.compile(r"\A(?:\s*[-*_]{3,}[ \t]*(?:\n|\Z))+|(?:(?:\n|\A)[ \t]*[-*_]{3,}[ \t]*)+\Z")
"""The lines that part sections from each other."""

Complain = Callable[[str, int | None], None]
"""Notes a fault and its line."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a paragraph, or one item of a list."""

    line: int
    text: str
    item: bool = False
    depth: int = 0
    """The number of lists that it stands in."""
    more: tuple[tuple[int, str], ...] = ()
    """The lines of an item after its first, each with its number; they are part of the text."""

    @property
    def checked(self) -> bool | None:
        """True for a checkbox with a cross, False for one without; None when it is none."""
        match = _BOX.match(self.text) if self.item else None
        return match["mark"] in ("x", "X") if match is not None else None

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
        """Give the value as a list: parted by commas outside brackets, or the items below it."""
        inline = [(self.line, part.strip(" `")) for part in _COMMA.split(self.value) if part.strip(" `")]
        return inline + [(entry.line, entry.text.strip(" `")) for entry in self.entries if entry.text.strip(" `")]

    def chosen(self) -> list[str]:
        """Give the value as a list of words: that of its line, or the items below it, of checkboxes those with a cross."""
        if self.value:
            return [part.strip(" `") for part in _COMMA.split(self.value) if part.strip(" `")]
        boxes = [entry for entry in self.entries if entry.checked is not None]
        if boxes:
            return [entry.box or "" for entry in boxes if entry.checked]
        return [text for _, text in self.listed()]


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

    def rows(self) -> Iterator[Field]:
        """Give the rows of a table of two columns or more as fields, its head left out."""
        found = [(entry.line, _ROW.match(entry.text)) for entry in self.entries if not entry.item]
        rows = [(line, match["key"].strip(" *`"), match["value"].strip(" `")) for line, match in found if match is not None]
        for at, (line, key, value) in enumerate(rows):
            head = at + 1 < len(rows) and not rows[at + 1][1].strip(":-")
            if key.strip(":-") and not head:
                yield Field(line=line, key=key, value=value, entries=(), text=value)

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
    """Give lines and items; a quotation is a note to people, code in an item is part of its text."""
    depth = quoted = 0
    held: Entry | None = None
    for at, token in enumerate(tokens):
        depth += (token.type == "list_item_open") - (token.type == "list_item_close")
        quoted += (token.type == "blockquote_open") - (token.type == "blockquote_close")
        if quoted or token.map is None:
            continue
        if token.type == "fence" and depth and held is not None and held.item:
            held = msgspec.structs.replace(held, text=f"{held.text} {'; '.join(_words(token.content))}")
        if token.type != "inline" or tokens[at - 1].type == "heading_open":
            continue
        for entry in _lines(token.content.splitlines(), token.map[0] + 1, depth, item=depth > 0):
            if held is not None:
                yield held
            held = entry
    if held is not None:
        yield held


def _words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def _lines(lines: list[str], first: int, depth: int, *, item: bool) -> Iterator[Entry]:
    """Give a paragraph line by line, an item as a whole; a field begins anew where Markdown would go on with the item."""
    held: Entry | None = None
    for number, line in enumerate(lines, first):
        text = " ".join(line.split())
        if held is None or _FIELD.match(text) is not None or not held.item:
            if held is not None:
                yield held
            held = Entry(line=number, text=text, item=item and number == first, depth=depth)
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
    return _RULES.sub("", _COMMENT.sub("", "\n".join(lines[begin:end])).strip()).strip()
