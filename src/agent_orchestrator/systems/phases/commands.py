"""The command in a criterion: what of its text is run, and what is only said.

Backticks are not by themselves a command. `run:` says so; else a code is run that stands alone and reads like a command
line, or that stands in a sentence and begins with a program that exists. Names, paths and signatures are words.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import msgspec

Exists = Callable[[str], bool]
"""Tells whether there is a program of this name, or at this path."""

SHELL_WORDS = frozenset(("!", "[", "cd", "command", "exec", "export", "for", "if", "set", "test", "true", "false", "while", "."))
_TOOLS = """
bash black bun bundle cargo cmake composer deno docker dotnet eslint flake8 gh git go gradle grep jest just make mix mvn mypy
ninja node nox npm npx php phpunit pip pnpm poetry prettier pytest python python3 rake ruff sbt sh swift tox tsc uv uvx vitest
yarn
"""
TOOLS = frozenset(_TOOLS.split())
"""Programs that are known as such even where they are not installed."""
_AMBIGUOUS = """
cd command compare convert cut date display exec export false file find for head id if import install join last less link look
more read set size sort split tail test time true type wait watch which while who yes
"""
_PROSE = frozenset(_AMBIGUOUS.split())
"""Programs that are words of the language too: alone they are a word."""
_KEYWORDS = """
async await class const def delete from function import insert interface let new private public return select static struct type
update var void with
"""
_CODE_WORDS = frozenset(_KEYWORDS.split())
_CODE = re.compile(r"(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)")
_RUN = re.compile(r"(?:^|(?<=[\s(;,.:—–-]))run:\s*(?P<rest>\S.*)\Z", re.I | re.S)
_JUDGE = re.compile(r"judged?:|.*\(judged\)\W*\Z", re.I | re.S)
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'|\$\([^()]*\)")
_SIGNATURE = re.compile(r"[\w\]]\(|->|=>|…|\.\.\.|^@")
_PROGRAM = re.compile(r"(?:\.{0,2}/)?[A-Za-z0-9_\[!.][\w.+/@-]*\Z")
_PASSES = re.compile(r"\s*(?:still\s+|also\s+)?(?:pass(?:es)?|succeeds?|exits?|is\s+(?:green|clean))\b", re.I)
_TECHNICAL = re.compile(r"^-|[./=*$|&<>:\"'\[\]]|^!$")


class FoundCommand(msgspec.Struct, frozen=True, kw_only=True):
    """The command in the text of a criterion, and the codes that only look like one."""

    command: str | None = None
    plain: str = ""
    """The text without the command."""
    missing: tuple[str, ...] = ()
    """Codes that read like a command line, and whose program does not exist: they are not run."""


def presume(name: str) -> bool:
    """Tell of the shell's words and of well-known programs that they exist: for texts that come while a run is at work."""
    return name in SHELL_WORDS or name in TOOLS


def find_command(text: str, exists: Exists = presume) -> FoundCommand:
    """Find the command of a criterion."""
    if _JUDGE.match(text):
        return FoundCommand(plain=text)
    if (said := _RUN.search(text)) is not None:
        ticked, rest = _CODE.match(said["rest"]), said["rest"].strip()
        bracketed = text[: said.start()].endswith("(")
        command = ticked["code"].strip() if ticked is not None else rest.removesuffix(")") if bracketed else rest
        return FoundCommand(command=command, plain=text[: said.start()])
    commands, missing, plain = [], [], text
    for match in _CODE.finditer(text):
        code = match["code"].strip().removeprefix("$ ")
        if (words := _read_words(code)) is None:
            continue
        before, after = text[: match.start()].rstrip(), text[match.end() :].strip()
        if _is_run(words, before, after, exists):
            commands.append(code)
            plain = plain.replace(match[0], " ", 1)
        elif not exists(words[0]) and len(words) > 1 and (words[0] in TOOLS or _is_technical(words)):
            missing.append(code)
    joined = commands[0] if len(commands) == 1 else " && ".join(f"( {one} )" for one in commands)
    return FoundCommand(command=joined or None, plain=plain, missing=tuple(missing))


def _is_run(words: list[str], before: str, after: str, exists: Exists) -> bool:
    bracketed = before.endswith("(") and re.fullmatch(r"\)\W*", after) is not None
    alone = not after.strip(".;,!") and (not before or before.endswith((":", "—", "→")))
    there, several = exists(words[0]), len(words) > 1
    if alone and there:
        return True
    if alone or bracketed:
        return (there and not (words[0] in _PROSE and not several)) or (
            alone and several and (words[0] in TOOLS or _is_technical(words))
        )
    if not there:
        return False
    if not several:
        return words[0] not in _PROSE and _PASSES.match(after) is not None
    return words[0] not in _PROSE or _is_technical(words)


def _read_words(code: str) -> list[str] | None:
    """Give the words of a command line, the program first; None for what reads like something else."""
    bare = _QUOTED.sub(" q ", code)
    if _SIGNATURE.search(bare) or re.search(r"\w,(?:\s|\Z)", bare):
        return None
    try:
        words = shlex.split(code)
    except ValueError:
        return None
    while words and (re.match(r"[A-Za-z_]\w*=", words[0]) or words[0] == "!"):
        words = words[1:]
    if not words or _PROGRAM.match(words[0]) is None or words[0] in _CODE_WORDS:
        return None
    shouted = words[0].isupper() and words[0].isalpha()
    return None if shouted or words[0].endswith((".", ":")) else words


def _is_technical(words: list[str]) -> bool:
    return any(_TECHNICAL.search(word) for word in words[1:])
