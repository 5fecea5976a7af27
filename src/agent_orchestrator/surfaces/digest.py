"""A digest as a page: Markdown, or one HTML file that needs nothing else. What agents and files said is only ever text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

from agent_orchestrator.core.units import from_iso, say_cost, say_count, say_duration
from agent_orchestrator.runs.digest import Digest, DigestEntry, DigestSection
from agent_orchestrator.store.port import Spending

TITLES = {
    "waiting": "Waiting for you",
    "finished": "Finished",
    "failed": "Failed",
    "parked": "Parked",
    "going": "Running",
}
"""The sections in the order in which a person needs them."""
WEEK_DAYS = 7
UNVERIFIED = "nothing verified it"

_MARKED = re.compile(r"([\\`*_\[\]<>|~&])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin: 1.4rem 0 .3rem } table { border-collapse: collapse; width: 100% }
td, th { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0; border-top: 1px solid #8884 }
code { font: 13px ui-monospace, monospace } .finished { color: #1a7f37 } .failed { color: #cf222e } .waiting { color: #9a6700 }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #111 } .failed { color: #ff7b72 } .finished { color: #7ee787 } .waiting { color: #e3b341 }
}
"""


def sections_of(digest: Digest) -> Iterator[tuple[str, str, DigestSection]]:
    """Yield the sections that have something, each with its name and its title."""
    for name, title in TITLES.items():
        section: DigestSection = getattr(digest, name)
        if section.total:
            hidden = section.total - len(section.entries)
            yield name, f"{title} ({section.total}, {hidden} not shown)" if hidden else title, section


def say_headline(digest: Digest) -> str:
    """Say all of it in a sentence."""
    counts = [(digest.finished.total, "finished"), (digest.failed.total, "failed"), (digest.waiting.total, "waiting")]
    counts += [(digest.parked.total, "parked"), (digest.going.total, "running")]
    said = ", ".join(f"{count} {word}" for count, word in counts if count) or "nothing happened"
    spent = f"; {say_total(digest.spent)} spent" if digest.spent else ""
    when = f"Run {digest.run_id}" if digest.run_id is not None else f"Since {say_time(digest.since or '', digest.until)}"
    return f"{when}: {said}{spent}"


def say_time(at: str, now: str) -> str:
    """Say a time on the clock of whoever reads it, with its day where that is another one."""
    then, today = (datetime.fromtimestamp(from_iso(one) / 1_000_000).astimezone() for one in (at, now))
    days = abs((today.date() - then.date()).days)
    return then.strftime("%H:%M" if not days else "%a %H:%M" if days < WEEK_DAYS else "%Y-%m-%d %H:%M")


def say_total(spent: Iterable[Spending]) -> str:
    """Say what was spent in all; a part that is unknown is not nothing."""
    lines = list(spent)
    known = [line.cost_usd for line in lines if line.cost_usd is not None]
    return say_cost(sum(known) if known else None, partly=bool(known) and any(line.unknown for line in lines))


def say_spending(line: Spending) -> tuple[str, str, str, str, str]:
    """Say a line of what was spent: agent, model, launches, cost, tokens."""
    cost = say_cost(line.cost_usd, partly=line.cost_usd is not None and line.unknown > 0)
    return line.agent, line.model or "unknown", say_count(line.launches, "launch"), cost, f"{line.tokens:,} tokens"


def say_why(entry: DigestEntry) -> str:
    """Say in a line how it ended, with its evidence, or what it waits for."""
    proofs = [f"`{one.command}` passed ({say_duration(one.duration_s)})" for one in entry.evidence]
    return one_line("; ".join([*proofs, *([UNVERIFIED] if entry.unverified else []), *([entry.why] if entry.why else [])]))


def one_line(text: str) -> str:
    """Return a text in one line, without anything that steers a terminal."""
    return " ".join(_CONTROL.sub(" ", text).split())


def to_markdown(digest: Digest) -> str:
    """Return the digest as Markdown."""
    lines = [f"# {_quiet(say_headline(digest))}", ""]
    for _, title, section in sections_of(digest):
        lines += [f"## {title}", ""]
        for entry in section.entries:
            told = f"- **{_quiet(entry.name)}** ({_code(entry.run_id)}) {_quiet(say_why(entry))}".rstrip()
            lines.append(f"{told}: {' or '.join(_code(way) for way in entry.ways)}" if entry.ways else told)
        lines.append("")
    if digest.spent:
        lines += [
            f"## Spent: {_quiet(say_total(digest.spent))}",
            "",
            "| agent | model | launches | cost | tokens |",
            "|---|---|---|---|---|",
        ]
        lines += [f"| {' | '.join(_quiet(cell) for cell in say_spending(line))} |" for line in digest.spent]
        lines.append("")
    return "\n".join(lines)


def to_html(digest: Digest) -> str:
    """Return the digest as one HTML file, without scripts, that loads nothing."""
    title = _escape(say_headline(digest))
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
    ]
    for name, heading, section in sections_of(digest):
        parts += [f'<h2 class="{name}">{_escape(heading)}</h2>', "<table>"]
        for entry in section.entries:
            ways = "<br>".join(f"<code>{_escape(way)}</code>" for way in entry.ways)
            cells = (
                f"<code>{_escape(entry.run_id)}</code>",
                _escape(one_line(entry.name)),
                _escape(say_why(entry)),
                ways,
            )
            parts.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
        parts.append("</table>")
    if digest.spent:
        parts += [f"<h2>Spent: {_escape(say_total(digest.spent))}</h2>", "<table>"]
        for line in digest.spent:
            parts.append(f"<tr>{''.join(f'<td>{_escape(cell)}</td>' for cell in say_spending(line))}</tr>")
        parts.append("</table>")
    return "\n".join([*parts, "</body></html>", ""])


def _escape(text: str) -> str:
    """Return a text that HTML takes as it is; the module for that knows every entity by name, and a screen needs none."""
    return text.translate(_ENTITIES)


def _quiet(text: str) -> str:
    """Return a text that Markdown takes as it is."""
    return _MARKED.sub(r"\\\1", one_line(text))


def _code(text: str) -> str:
    fence = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    inner = one_line(text)
    return f"{fence}{inner}{fence}" if "`" not in inner else f"{fence} {inner} {fence}"
