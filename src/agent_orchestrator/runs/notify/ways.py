"""The ways to tell somebody: by HTTP, on the desktop, or by a program. Each tries once and says what came back.

What an agent wrote is plain text everywhere: escaped where the receiver knows markup, and never part of a command line.
"""

from __future__ import annotations

import contextlib
import html
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from agent_orchestrator.config.subscribers import Subscriber, Way
from agent_orchestrator.runs.facts import state_file
from agent_orchestrator.runs.notify.response import Response, Sending, encode_body

PROGRAM_S = 60.0


def send(subscriber: Subscriber, sending: Sending) -> Response:
    """Tell a subscriber once."""
    match subscriber.way:
        case Way.COMMAND | Way.SHELL:
            return _start_program(subscriber, sending)
        case Way.DESKTOP:
            return _show(sending)
        case _:
            from agent_orchestrator.runs.notify.requests import send_request

            return send_request(subscriber, sending)


def _show(sending: Sending) -> Response:
    message = sending.message
    # The body may be markup to whoever shows it, the title never is.
    argv = ["notify-send", "--app-name=orc", "--", message.title, html.escape(message.text, quote=False)]
    return _run(argv, sending, {}, b"", "install it (Debian, Ubuntu: libnotify-bin)")


def _start_program(subscriber: Subscriber, sending: Sending) -> Response:
    message, run = sending.message, sending.run
    facts = {"NOTIFY_ID": message.id, "NOTIFY_KIND": message.kind, "NOTIFY_TITLE": message.title, "NOTIFY_TEXT": message.text}
    if run is not None:
        facts |= {
            "RUN_ID": run.id,
            "RUN_STATUS": run.summary.status,
            "RUN_REASON": run.summary.detail,
            "WORKFLOW_NAME": run.name,
            "STATE_FILE": state_file(run),
            "WAITING_STEPS": " ".join(run.summary.asks),
        }
    shell = subscriber.way is Way.SHELL
    given = b"" if shell else encode_body(message.data())
    return _run(subscriber.argv, sending, facts, given, "check its path", out=2 if shell else subprocess.DEVNULL)


def _run(
    argv: list[str], sending: Sending, facts: Mapping[str, str], given: bytes, help_: str, out: int = subprocess.DEVNULL
) -> Response:
    """Run a program of the person's to its end, for so long only; what it writes goes to our standard error or nowhere."""
    env = {**sending.environ, **{name: value.replace("\0", " ") for name, value in facts.items()}}
    home = sending.run.context.home if sending.run is not None else sending.home
    # The home of a queued run is on its worker's host, for as long as it is driven.
    where = {"cwd": home if Path(home).is_dir() else sending.home, "env": env}
    try:
        child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True, **where)  # type: ignore[call-overload]
    except OSError as error:
        return Response(ok=False, said=f"{argv[0]} could not be started: {error.strerror}; {help_}")
    try:
        with contextlib.suppress(BrokenPipeError):
            child.communicate(given, timeout=PROGRAM_S)
        code = child.wait(PROGRAM_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return Response(ok=False, said=f"was stopped after {PROGRAM_S:g} s")
    return Response(ok=code == 0, said=f"ended with exit code {code}")
