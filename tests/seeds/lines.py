"""The command lines that the five seeds tell people to type, taken out of their texts: none can be forgotten."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent / "data"
SEEDS = ("000", "001", "002", "003", "004")

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_INLINE = re.compile(r"`([^`\n]+)`")
_COMMAND = re.compile(r'^\s*command: "(.+)"$', re.M)
_PROGRAMS = ("aiwg", "cat", "cp", "git", "jq", "python", "rm", "watch")


class Line(NamedTuple):
    """A command line, as it stands in a seed."""

    seed: str
    text: str


def lines_of(seed: str) -> list[Line]:
    """List the pieces of shell, the commands in the running text, and those of a seed that is YAML."""
    text = (DATA / f"seed_{seed}.orig").read_text("utf-8")
    found = []
    for kind, body in _FENCE.findall(text):
        if kind == "bash":
            found += [line.strip() for line in body.replace("\\\n", " ").splitlines() if line.strip() and line[0] != "#"]
    words = [code for code in _INLINE.findall(_FENCE.sub("", text)) if " " in code]
    found += [code for code in words if code.split()[0] in _PROGRAMS or code.startswith("./")]
    found += _COMMAND.findall(text)
    return [Line(seed, re.sub(r"\s{2,}", " ", line)) for line in dict.fromkeys(found)]


LINES = [line for seed in SEEDS for line in lines_of(seed)]
