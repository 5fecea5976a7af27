"""Takes secrets out of what is stored: known values, and texts of a shape that only credentials have.

Redaction may be repeated at any time: what it leaves behind contains nothing that it would replace.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, quote_plus

import msgspec

from agent_orchestrator.beneath import LinkInTheWay, open_beneath, open_folder, replace_file
from agent_orchestrator.bounded import store_of
from agent_orchestrator.core.effects import KeptTree
from agent_orchestrator.core.limits import OUTPUT_LIMIT_BYTES

REDACTED = b"[redacted]"
SECRET_LENGTH_MIN = 8
"""A shorter value would turn up by chance in ordinary text."""

_BLOCK_BYTES = 512
_CHUNK_BYTES = 1024 * 1024
_OVERLAP_BYTES = 64 * 1024
"""Longer than anything that is replaced, so that nothing escapes across the border of two chunks."""

_SHAPES: tuple[tuple[bytes, bytes], ...] = (
    (b"sk-", rb"\bsk-[A-Za-z0-9_-]{20,4096}"),
    (b"github_pat_", rb"\bgithub_pat_[A-Za-z0-9_]{30,255}"),
    (b"AKIA", rb"\bAKIA[0-9A-Z]{16}\b"),
    (b"AIza", rb"\bAIza[A-Za-z0-9_-]{35}"),
    (b"xox", rb"\bxox[abprs]-[A-Za-z0-9-]{10,255}"),
    (b"earer ", rb"\b[Bb]earer [A-Za-z0-9._~+/=-]{16,8192}"),
    (b"PRIVATE KEY", rb"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----[^-]{0,32768}-----END [A-Z ]{0,32}PRIVATE KEY-----"),
)
"""A literal that each shape contains, which is looked for first because that is a hundred times faster, and the shape."""

_GITHUB_BEGINS = re.compile(rb"gh[pous]_")
_GITHUB_SHAPE = rb"\bgh[pous]_[A-Za-z0-9]{30,255}"
"""Four kinds of GitHub's: all of them are looked for in the time that one literal takes."""

_LINE_END = rb"(?:\r?\n|(?:\\{1,2}r)?\\{1,2}n)?"
"""The end of a line in the middle of base64, as such or inside JSON."""
_HEAD_CHARS = 256
_LINE_CHARS_MIN = 64
"""Programs that write base64 in lines make them at least so long."""


def _spellings(value: str) -> set[bytes]:
    """The value as it stands, inside JSON and inside JSON in JSON (agents write streams of it, and reports), and in a URL."""
    inner = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    raw = value.encode("utf-8", "surrogateescape")
    spelt = {value, *inner, *(json.dumps(one, ensure_ascii=False)[1:-1] for one in inner), quote(raw, ""), quote_plus(raw)}
    return {one.encode("utf-8", "surrogateescape") for one in spelt}


def _encoded(value: bytes) -> set[bytes]:
    """The value in base64, both alphabets, wherever in the text it begins: without the characters it shares with others."""
    found = set()
    for before, shared in ((0, 0), (1, 2), (2, 3)):
        whole = (before + len(value)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            found.add(encode(bytes(before) + value)[shared:whole])
    return found


def _is_sparse(status: os.stat_result) -> bool:
    """Tell whether a file is longer than any output may be and mostly holes: a terabyte of them would be read for hours."""
    return status.st_size > OUTPUT_LIMIT_BYTES and status.st_blocks * _BLOCK_BYTES < status.st_size // 2


def _has_data(source: int) -> bool:
    try:
        os.lseek(source, 0, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return False
        raise
    os.lseek(source, 0, os.SEEK_SET)
    return True


def _cut(path: Path) -> None:
    """Shorten a file to what is looked at: a secret may lie behind that."""
    target = open_beneath(store_of(path.parent), path, os.O_WRONLY)
    try:
        os.ftruncate(target, OUTPUT_LIMIT_BYTES)
    finally:
        os.close(target)


def _parts(encoded: bytes) -> list[bytes]:
    """Two parts of a text in base64, of which one is whole wherever its lines end."""
    size = min(len(encoded), _LINE_CHARS_MIN) // 2
    return [encoded[:size], encoded[size : 2 * size]]


def _lines_of(encoded: bytes) -> bytes:
    """The pattern of a text in base64 that may be broken into lines; of a long one, the beginning and as much as follows."""
    head, rest = encoded[:_HEAD_CHARS], len(encoded[_HEAD_CHARS:])
    pattern = _LINE_END.join(re.escape(bytes((byte,))) for byte in head)
    return pattern + (rb"(?:[A-Za-z0-9+/_-]|\r?\n|\\{1,2}[rn]){0,%d}" % rest if rest else b"")


def _in_order(values: Iterable[bytes]) -> list[bytes]:
    """The longest first: a value may be the beginning of another."""
    return sorted((value for value in values if len(value) < _OVERLAP_BYTES), key=lambda value: (-len(value), value))


class Redactor:
    """Replaces the given values and all credential shapes by `[redacted]`."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        known = [value for value in values if len(value) >= SECRET_LENGTH_MIN]
        literals = _in_order({spelt for value in known for spelt in _spellings(value)})
        encoded = _in_order({one for value in known for one in _encoded(value.encode("utf-8", "surrogateescape"))})
        self._parts = list(dict.fromkeys(part for one in encoded for part in _parts(one)))
        self._hints = [*literals, *(hint for hint, _ in _SHAPES)]
        self._encoded, self._plain = encoded, [*map(re.escape, literals), *(shape for _, shape in _SHAPES), _GITHUB_SHAPE]

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return re.compile(b"|".join(self._plain))

    @cached_property
    def _wide_pattern(self) -> re.Pattern[bytes]:
        """The same with base64, which takes longer to make than most commands have: made when there is some."""
        return re.compile(b"|".join([*map(_lines_of, self._encoded), *self._plain]))

    def redact_text(self, text: str) -> str:
        """The text without secrets."""
        if not text:
            return text
        raw = text.encode("utf-8", "surrogatepass")
        shown = self.redact_bytes(raw)
        return text if shown is raw else shown.decode("utf-8", "surrogatepass")

    def redact_bytes(self, raw: bytes) -> bytes:
        """The bytes without secrets."""
        pattern = self._choose(raw)
        return raw if pattern is None else pattern.sub(REDACTED, raw)

    def redact_tree(self, kept: KeptTree | None) -> KeptTree | None:
        """The tree without secrets. A branch with one in its name is not named at all: another name is another branch."""
        if kept is None:
            return None
        branch = kept.branch if self.redact_text(kept.branch) == kept.branch else ""
        return msgspec.structs.replace(kept, branch=branch, problem=self.redact_text(kept.problem))

    def redact_file(self, path: Path) -> bool:
        """Rewrites a launch's file without secrets, whole or not at all; False when there was nothing to do.

        Anything that is not a plain file, or that a link leads to, is left alone. Raises OSError.
        """
        found = os.lstat(path)  # Most files of a launch are empty, or not there.
        if not stat.S_ISREG(found.st_mode) or found.st_size == 0:
            return False
        try:
            source = open_beneath(store_of(path.parent), path)
        except LinkInTheWay:
            return False
        try:
            status = os.fstat(source)
            if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
                return False
            if _is_sparse(status):
                if _has_data(source):
                    _cut(path)
                if not _has_data(source):  # Only holes, or only holes are left: no reading of half a gigabyte of zeros.
                    return False
            if not any(replaced for _, replaced in self._redacted(source)):
                return False
            os.lseek(source, 0, os.SEEK_SET)
            self._rewrite(source, path, stat.S_IMODE(status.st_mode))
            return True
        finally:
            os.close(source)

    def _rewrite(self, source: int, path: Path, mode: int) -> None:
        parts = (part for part, _ in self._redacted(source))
        with open_folder(store_of(path.parent), path.parent) as folder:
            replace_file(folder, path.name, f".{path.name}.redacting", parts, mode)

    def _redacted(self, source: int) -> Iterator[tuple[bytes, bool]]:
        """The file's content in pieces, each with whether anything in it was replaced."""
        held, ahead = b"", os.read(source, _CHUNK_BYTES)
        while True:
            held += ahead
            ahead = os.read(source, _CHUNK_BYTES) if ahead else b""  # Read ahead, or the end would be looked at twice.
            # Up to here a secret that begins is wholly in what was read.
            safe = len(held) - _OVERLAP_BYTES if ahead else len(held)
            if safe <= 0 and ahead:
                continue
            if ahead:  # cut at the end of a line, so that what follows is not taken for the beginning of a word
                safe = held.rfind(b"\n", safe - safe // 2, safe) + 1 or safe
            piece, held, replaced = self._split(held, safe)
            yield piece, replaced
            if not ahead:
                return

    def _split(self, held: bytes, safe: int) -> tuple[bytes, bytes, bool]:
        pattern = self._choose(held)
        if pattern is None:
            return held[:safe], held[safe:], False
        parts, position = [], 0
        for match in pattern.finditer(held):
            if match.start() >= safe:
                break
            parts += [held[position : match.start()], REDACTED]
            position = match.end()
        end = max(safe, position)
        return b"".join([*parts, held[position:end]]), held[end:], bool(parts)

    def _choose(self, raw: bytes) -> re.Pattern[bytes] | None:
        """The pattern to look for; None where nothing of it can be there."""
        if any(part in raw for part in self._parts):
            return self._wide_pattern
        return self._pattern if any(hint in raw for hint in self._hints) or _GITHUB_BEGINS.search(raw) else None
