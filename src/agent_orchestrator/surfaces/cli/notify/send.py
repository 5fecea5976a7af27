"""`orc notify send`: what waits, now."""

from __future__ import annotations

import click

from agent_orchestrator.runs.exits import COMPLETED, FAILED
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc notify send
orc notify send desk
"""


@make_command("send", EXAMPLE)
@click.argument("name", required=False)
def command(name: str | None, repo: str | None, as_json: bool) -> int:
    """Send what waits, now.

    To all subscribers, or to the one with this NAME: what failed before, what was given up, and what waits for others of its
    kind. Processes that drive runs and `orc web` do so by themselves, in their time. Exits with 1 if something still waits.
    """
    from agent_orchestrator.runs.notify.notifier import CourierLock, load_subscribers, make_courier
    from agent_orchestrator.surfaces.cli.notify.shared import choose
    from agent_orchestrator.surfaces.cli.screen import Screen, plain, print_json

    with open_orchestrator(repo) as orchestrator:
        facts = []
        for one in choose(load_subscribers(orchestrator.settings), name):
            lock = CourierLock(orchestrator, one.name)
            if not orchestrator.has_store:
                facts.append({"name": one.name, "waiting": 0, "problem": None})
            elif not lock.take():
                facts.append({"name": one.name, "waiting": None, "problem": "another process is delivering"})
            else:
                courier = make_courier(orchestrator, one)
                courier.load()
                courier.turn(last=True, again=True)
                lock.give_back()
                problem = next(iter(courier.problems), None)
                waiting = len(orchestrator.store.outbox.deliveries(one.name))
                facts.append({"name": one.name, "waiting": waiting, "problem": problem})
        if as_json:
            print_json({"subscribers": facts})
        else:
            rows = [(fact["name"], _say(fact["waiting"]), plain(fact["problem"] or "")) for fact in facts]
            Screen(orchestrator.settings.environ).table(("NAME", "WAITS", "PROBLEM"), rows)
    return FAILED if any(fact["waiting"] for fact in facts) else COMPLETED


def _say(waiting: object) -> str:
    return "unknown" if waiting is None else "nothing" if waiting == 0 else str(waiting)
