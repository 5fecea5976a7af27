"""`orc notify list`: who is told what, and what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_orchestrator.config.subscribers import Subscriber
    from agent_orchestrator.runs.orchestrator import Orchestrator

EXAMPLE = """
orc notify list
orc notify list --json
"""


@make_command("list", EXAMPLE)
def command(repo: str | None, as_json: bool) -> int:
    """List who is told what, and what waits.

    A message that could not be told is tried again after 5 seconds, then ever more rarely; after a day it is given up.
    `orc notify send` tries all of them at once.
    """
    from agent_orchestrator.surfaces.cli.screen import Screen, plain, print_json

    with open_orchestrator(repo) as orchestrator:
        facts = list(_facts(orchestrator))
        if as_json:
            print_json({"subscribers": facts})
            return 0
        screen = Screen(orchestrator.settings.environ)
        if not facts:
            screen.line("Nobody is told anything: there is no [[notify]] in the configuration; see `orc help notifications`.")
            return 0
        for one in facts:
            screen.line(f"{screen.paint(one['name'], 'bold')}  {one['way']}  {plain(one['target'])}".rstrip())
            screen.line(f"  on: {', '.join(one['on']) or 'nothing'}   from: {plain(one['from'])}")
            screen.line(f"  waits: {plain(_say(one))}")
    return 0


def _facts(orchestrator: Orchestrator) -> Iterator[dict[str, Any]]:
    """Yield every subscriber, and those that are configured no more while something waits for them."""
    from agent_orchestrator.config.defaults import read_configuration
    from agent_orchestrator.config.keys import NOTIFY
    from agent_orchestrator.config.trust import is_trusted

    found = read_configuration(orchestrator.settings)
    untrusted = () if is_trusted(orchestrator.settings, found.guarded) else [one.entry.key for one in found.guarded]
    waiting = orchestrator.store.outbox.deliveries() if orchestrator.has_store else []
    for subscriber in found.subscribers:
        trusted = (*NOTIFY, subscriber.name) not in untrusted
        yield {**_describe(subscriber, trusted=trusted), **_wait_facts([one for one in waiting if one.reader == subscriber.name])}
    known = {subscriber.name for subscriber in found.subscribers}
    for name in dict.fromkeys(one.reader for one in waiting if one.reader not in known):
        facts = {"name": name, "way": "", "target": "", "on": [], "from": "no longer configured", "trusted": False}
        yield {**facts, **_wait_facts([one for one in waiting if one.reader == name])}


def _describe(subscriber: Subscriber, *, trusted: bool) -> dict[str, Any]:
    from agent_orchestrator.config.subscribers import EVERY_KIND

    return {
        "name": subscriber.name,
        "way": subscriber.way.value,
        "target": subscriber.shown,
        "on": [kind for kind in EVERY_KIND if kind in subscriber.kinds],
        "from": subscriber.origin + ("" if trusted else " (not trusted)"),
        "trusted": trusted,
    }


def _wait_facts(deliveries: list[Any]) -> dict[str, Any]:
    from agent_orchestrator.core.units import iso
    from agent_orchestrator.runs.notify.courier import read_waiting

    waiting = [(one, read_waiting(one)) for one in deliveries]
    going = [message for one, message in waiting if not one.given_up]
    return {
        "waiting": len(going),
        "given_up": len(waiting) - len(going),
        "tries": max((message.tries for message in going), default=0),
        "next_at": iso(min(message.due_us for message in going)) if going else None,
        "problem": next((message.problem for _, message in reversed(waiting) if message.problem), None),
    }


def _say(fact: dict[str, Any]) -> str:
    counts = [f"{fact[name]} {name.replace('_', ' ')}" for name in ("waiting", "given_up") if fact[name]]
    why = f" ({fact['problem']})" if fact["problem"] else ""
    return ", ".join(counts) + why if counts else "nothing"
