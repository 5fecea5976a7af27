"""`orc notify test`: a message to each subscriber, and what came back."""

from __future__ import annotations

import click

from agent_orchestrator.runs.exits import COMPLETED, FAILED
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

EXAMPLE = """
orc notify test
orc notify test desk --json
"""


@make_command("test", EXAMPLE)
@click.argument("name", required=False)
def command(name: str | None, repo: str | None, as_json: bool) -> int:
    """Send a test message to subscribers.

    To all of them, or to the one with this NAME, and says what each answered. Exits with 1 if one could not be told.
    """
    import uuid

    from agent_orchestrator.config.subscribers import NoticeKind
    from agent_orchestrator.runs.notify.message import Message
    from agent_orchestrator.runs.notify.notices import Notice
    from agent_orchestrator.runs.notify.notifier import load_subscribers, make_notice_redactor, make_sending
    from agent_orchestrator.runs.notify.ways import send
    from agent_orchestrator.surfaces.cli.notify.shared import choose
    from agent_orchestrator.surfaces.cli.screen import Screen, plain, print_json

    with open_orchestrator(repo) as orchestrator:
        settings, clock = orchestrator.settings, orchestrator.clock
        facts = []
        for one in choose(load_subscribers(settings), name):
            notice = Notice(
                kind=NoticeKind.DONE.value,
                run="test",
                name="test",
                system="",
                words="is a test",
                detail="Nothing has happened: somebody ran `orc notify test`.",
                at_us=clock.now_us(),
            )
            message = Message(
                id=f"orc-test-{uuid.uuid4().hex}", kind=notice.kind, notices=(notice,), count=1, repository=settings.home.name
            )
            reply = send(one, make_sending(settings, clock, message, None))
            said = make_notice_redactor(settings, one).redact_text(reply.said)
            facts.append({"name": one.name, "way": one.way.value, "ok": reply.ok, "said": said, "id": message.id})
        if as_json:
            print_json({"sent": facts})
        else:
            screen = Screen(settings.environ)
            rows = [(fact["name"], fact["way"], "told" if fact["ok"] else "not told", plain(fact["said"])) for fact in facts]
            screen.table(("NAME", "WAY", "RESULT", "ANSWER"), rows)
    return COMPLETED if all(fact["ok"] for fact in facts) else FAILED
