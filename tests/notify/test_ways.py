"""Each way to tell somebody against a real counterpart: the receivers' own package, a server on loopback, a program."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from agent_orchestrator.config.subscribers import read_subscriber
from agent_orchestrator.engine.clock import SystemClock
from agent_orchestrator.runs.notify.message import Message
from agent_orchestrator.runs.notify.notices import Notice
from agent_orchestrator.runs.notify.requests import sign
from agent_orchestrator.runs.notify.response import Response, Sending
from agent_orchestrator.runs.notify.ways import send
from tests.notify.receiver import SECRET, Receiver

WORDS = "<!channel> *bold* <b>it</b> & `x` $(touch planted)"
NOTICE = Notice(kind="failed", run="f8c1", name="demo", system="s", words="failed", detail=WORDS, at_us=1)
MESSAGE = Message(id="orc-0-7-failed", kind="failed", notices=(NOTICE,), count=1, repository="repo")


def tell(table: dict[str, Any], folder: Path, **environ: str) -> Response:
    now_s = SystemClock().now_us() // 1_000_000
    return send(read_subscriber(table), Sending(message=MESSAGE, home=str(folder), environ=environ, now_s=now_s))


def test_the_official_package_verifies_a_webhook_and_refuses_a_forgery(tmp_path: Path) -> None:
    with Receiver() as receiver:
        reply = tell({"url": f"{receiver.url}/hook?a=1", "secret_env": "HOOK"}, tmp_path, HOOK=SECRET)
        assert reply == Response(ok=True, said="HTTP 204")
        [got] = receiver.received
    assert (got.path, got.id) == ("/hook?a=1", "orc-0-7-failed")
    said = got.verify()
    assert said["type"] == "run.failed"
    assert said["data"]["facts"][0]["detail"] == WORDS
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(got.body.replace(b"f8c1", b"f8c2"), dict(got.headers))
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + "A" * 32).verify(got.body, dict(got.headers))


def test_a_signature_is_that_of_the_official_package() -> None:
    from datetime import UTC, datetime

    body = json.dumps({"a": "ü"})
    theirs = Webhook(SECRET).sign("msg_1", datetime.fromtimestamp(1_700_000_000, UTC), body)
    assert sign(SECRET, "msg_1", 1_700_000_000, body.encode()) == theirs
    with pytest.raises(ValueError, match="not base64"):
        sign("whsec_!", "m", 1, b"")


@pytest.mark.parametrize(
    ("answer", "headers", "expected"),
    [
        (500, {}, Response(ok=False, said="HTTP 500")),
        (410, {}, Response(ok=False, said="HTTP 410", final=True)),
        (429, {"Retry-After": "120"}, Response(ok=False, said="HTTP 429", after_s=120.0)),
        (302, {"Location": "/elsewhere"}, Response(ok=False, said="HTTP 302")),
    ],
)
def test_only_a_yes_counts(answer: int, headers: dict[str, str], expected: Response, tmp_path: Path) -> None:
    with Receiver(answer, headers=headers) as receiver:
        assert tell({"url": receiver.url}, tmp_path) == expected
        assert len(receiver.received) == 1, "nobody is sent on to another place"
        assert "webhook-signature" not in receiver.received[0].headers, "without a secret nothing is signed"


def test_what_cannot_be_reached_says_why(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert tell({"url": f"http://127.0.0.1:{port}"}, tmp_path) == Response(ok=False, said="Connection refused")
    with Receiver(None) as receiver:
        assert "closed connection" in tell({"url": receiver.url}, tmp_path).said
    unset = tell({"url": "https://example.invalid", "secret_env": "NOT_SET"}, tmp_path)
    assert unset == Response(ok=False, said="the variable NOT_SET is not set")


def test_plain_text_on_a_tls_port_is_no_answer(tmp_path: Path) -> None:
    with Receiver() as receiver:
        reply = tell({"url": f"https://127.0.0.1:{receiver.port}"}, tmp_path)
    assert not reply.ok
    assert receiver.received == []


def test_slack_and_ntfy_get_agents_words_as_plain_text(tmp_path: Path) -> None:
    with Receiver() as receiver:
        assert tell({"url": receiver.url.replace("http", "slack") + "/services/T/B"}, tmp_path).ok
        assert tell({"url": receiver.url.replace("http", "ntfy") + "/my-runs", "secret_env": "T"}, tmp_path, T="tk_1").ok
        slack, ntfy = receiver.received
    assert slack.path == "/services/T/B"
    assert "&lt;!channel&gt; *bold* &lt;b&gt;" in slack.json["text"]
    assert slack.json["mrkdwn"] is False
    assert (ntfy.path, ntfy.json["topic"], ntfy.json["markdown"]) == ("/", "my-runs", False)
    assert WORDS in ntfy.json["message"]
    assert ntfy.headers["authorization"] == "Bearer tk_1"


def test_a_program_gets_facts_and_no_shell_reads_them(tmp_path: Path) -> None:
    program = tmp_path / "tell me.sh"
    program.write_text('#!/bin/sh\ncat > got.json\nprintf "%s|" "$@" "$NOTIFY_KIND" "$NOTIFY_TEXT" > got.txt\nexit ${EXIT:-0}\n')
    program.chmod(0o755)
    table = {"url": f"command:'{program}' --to '$HOME; x'"}
    assert tell(table, tmp_path, PATH="/usr/bin:/bin") == Response(ok=True, said="ended with exit code 0")
    assert (tmp_path / "got.txt").read_text() == f"--to|$HOME; x|failed|demo in repo: {WORDS}|"
    assert json.loads((tmp_path / "got.json").read_text())["type"] == "run.failed"
    assert not (tmp_path / "planted").exists()
    assert tell(table, tmp_path, PATH="/usr/bin:/bin", EXIT="3") == Response(ok=False, said="ended with exit code 3")
    missing = tell({"url": "command:no-such-program-here"}, tmp_path, PATH="/usr/bin:/bin")
    assert missing.said == "no-such-program-here could not be started: No such file or directory; check its path"
