"""`orc notify`, and what `orc status` and `orc config` say of subscribers."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from agent_orchestrator.config.documents import read_file
from agent_orchestrator.config.keys import config_schema
from agent_orchestrator.config.subscribers import Way, read_subscriber
from agent_orchestrator.errors import InvalidId, InvalidValue
from agent_orchestrator.runs.notify.message import Message
from agent_orchestrator.runs.notify.notices import Notice
from tests.acceptance.examples import FENCE
from tests.acceptance.rig import ROOT, WAIT_S, wait_until
from tests.certificates import make_certificate
from tests.notify.receiver import SECRET, Receiver
from tests.notify.rig import NotifyRig

PAGE = ROOT / "docs" / "notifications.md"


@pytest.mark.parametrize(
    ("url", "way", "target", "name"),
    [
        ("https://example.com/a?b=c", Way.WEBHOOK, "https://example.com/a?b=c", "example.com"),
        ("http://localhost:80/a", Way.WEBHOOK, "http://localhost:80/a", "localhost-80"),
        ("https://hooks.slack.com/services/T/B/x", Way.SLACK, "https://hooks.slack.com/services/T/B/x", "hooks.slack.com"),
        ("slack://chat.example.com/hooks/x", Way.SLACK, "https://chat.example.com/hooks/x", "chat.example.com"),
        ("ntfy://ntfy.example.com/runs", Way.NTFY, "https://ntfy.example.com/runs", "ntfy.example.com"),
        ("https://ntfy.sh/runs", Way.NTFY, "https://ntfy.sh/runs", "ntfy.sh"),
        ("ntfy://[::1]:8080/runs", Way.NTFY, "http://[::1]:8080/runs", "1-8080"),
        ("desktop:", Way.DESKTOP, "", "desktop"),
        ("command:/opt/tell me", Way.COMMAND, "/opt/tell me", "tell"),
    ],
)
def test_a_url_says_whom_to_tell_and_how(url: str, way: Way, target: str, name: str) -> None:
    found = read_subscriber({"url": url})
    assert (found.way, found.target, found.name) == (way, target, name)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "url is None: it must be https://…"),
        ({"url": "mail:me"}, "it must be https://…"),
        ({"url": "http://example.com/x"}, "plain http only reaches this machine"),
        ({"url": "https://me:secret@example.com"}, "without a user"),
        ({"url": "https://exa mple.com"}, "it must be https://…"),
        ({"url": "https://["}, "it must be https://…"),
        ({"url": "ntfy://ntfy.sh/a/b"}, "ntfy://HOST/TOPIC"),
        ({"url": "command:"}, "a program after command:"),
        ({"url": "command:'x"}, "No closing quotation"),
        ({"url": "desktop:", "on": ["done", "never"]}, "a list of person, budget, parked, failed, done"),
        ({"url": "desktop:", "secret_env": "X"}, "desktop takes no secret"),
        ({"url": "https://x.example", "secret_env": "whsec_abc="}, "the name of a variable, not the secret itself"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(table: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidValue) as error:
        read_subscriber(table)
    assert said in str(error.value)
    assert "secret@" not in str(error.value)
    with pytest.raises(InvalidId):
        read_subscriber({"url": "desktop:", "name": "../x"})


def test_faults_of_tables_have_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    tables = ('url = "desktop:"', 'urls = "x"', 'url = "x"', 'url = "desktop:"')
    file.write_text("\n".join(f"[[notify]]\n{table}\n" for table in tables))
    found = read_file(file)
    assert found is not None
    assert [(one.line, one.sentence.partition(":")[0]) for one in found.faults] == [
        (5, "[[notify]]"),
        (7, "[[notify]]"),
        (10, "two [[notify]] have the name desktop, see line 1; give one another name."),
    ]
    assert found.faults[0].suggestion == "url"
    file.write_text('[notify]\nurl = "desktop:"\n')
    again = read_file(file)
    assert again is not None
    assert [one.message for one in again.faults] == ["notify must be a list of tables, as in [[notify]]"]


def test_the_schema_knows_the_tables() -> None:
    schema = json.dumps(config_schema())
    assert all(f'"{one}"' in schema for one in ("notify", "secret_env", "person", "parked"))


def test_each_command_says_who_is_told_and_what_came_back(rig: NotifyRig) -> None:
    nobody = rig.orc("notify", "test")
    assert (nobody.code, "There is no [[notify]]" in nobody.err) == (2, True)
    assert "Nobody is told anything" in rig.orc("notify", "list").out
    with Receiver(204, 500) as receiver:
        told = rig.side / "told.json"
        rig.configure(
            f'name = "hook"\nurl = "{receiver.url}/secret-path"\nsecret_env = "HOOK_SECRET"',
            f'name = "prog"\nurl = "command:sh -c \'cat > {told}\'"\non = ["done"]',
        )
        assert rig.orc("config", "check").code == 0
        listed = rig.orc("notify", "list")
        assert f"hook  webhook  {receiver.url}/…" in listed.out
        assert f"on: done   from: {rig.home}/.config/orc/config.toml:5" in listed.out
        shown = [rig.orc("config", "show", "--json"), listed]
        assert not any("secret-path" in one.out for one in shown)
        tested = rig.orc("notify", "test", "--json")
        assert [(one["name"], one["ok"], one["said"]) for one in tested.json["sent"]] == [
            ("hook", True, "HTTP 204"),
            ("prog", True, "ended with exit code 0"),
        ]
        assert tested.code == 0
        assert receiver.received[0].verify()["data"]["title"] == "orc: test is a test"
        assert json.loads(told.read_text())["type"] == "run.done"
        failed = rig.orc("notify", "test", "hook")
        assert (failed.code, "not told" in failed.out, "HTTP 500" in failed.out) == (1, True, True)
        unknown = rig.orc("notify", "test", "nobody")
        assert (unknown.code, unknown.err) == (2, "orc: There is no subscriber 'nobody'; there are hook, prog.\n")


def test_a_webhook_goes_over_tls_to_a_certificate_that_the_person_trusts(rig: NotifyRig) -> None:
    certificate, tls = make_certificate(rig.side)
    with Receiver(tls=tls) as receiver:
        rig.configure(f'name = "hook"\nurl = "https://127.0.0.1:{receiver.port}/hook"\nsecret_env = "HOOK_SECRET"')
        refused = rig.orc("notify", "test", "--json")
        assert (refused.code, "certificate verify failed" in refused.out, receiver.received) == (1, True, [])
        assert rig.orc("notify", "test", env={"SSL_CERT_FILE": str(certificate)}).code == 0
        assert receiver.received[0].verify()["type"] == "run.done"


def test_what_was_given_up_is_a_warning_of_status(rig: NotifyRig) -> None:
    with Receiver(410) as receiver:
        rig.configure(f'name = "hook"\nurl = "{receiver.url}"\non = ["person"]')
        assert rig.run("--no-wait").code == 4
        status = rig.orc("status")
        assert "orc: hook could not be told 1 times: HTTP 410; see `orc notify list`." in status.err
        assert rig.orc("status", "--json").json["untold"] == [{"name": "hook", "count": 1, "problem": "HTTP 410"}]
        assert "1 given up (HTTP 410)" in rig.orc("notify", "list").out
        assert rig.orc("notify", "send").code == 0
        assert rig.orc("status").err == ""


def test_a_repository_may_tell_nobody_without_the_users_word(rig: NotifyRig) -> None:
    told = rig.side / "told"
    (rig.repo / ".orc.toml").write_text(f'[[notify]]\nname = "x"\nurl = "command:touch {told}"\n')
    env = {"ORC_TRUSTED_PATHS": ""}
    refused = rig.run("--no-wait", env=env)
    assert refused.code == 2
    assert ".orc.toml:1: notify.x names a program to start, and nobody has agreed to that" in refused.err
    assert rig.orc("notify", "test", env=env).code == 2
    assert "(not trusted)" in rig.orc("notify", "list", env=env).out
    assert not told.exists()
    assert rig.orc("config", "trust", env=env).code == 0
    assert rig.run("--no-wait", env=env).code == 4
    assert told.exists()
    (rig.repo / ".orc.toml").write_text('[[notify]]\nname = "x"\nurl = "https://example.invalid/x"\n')
    assert "notify.x sends what happens here to others" in rig.run("--no-wait", env=env).err


def blocks(kind: str) -> list[str]:
    return [text for found, text in FENCE.findall(PAGE.read_text("utf-8")) if found == kind]


def test_the_tables_of_the_page_are_sound(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("".join(blocks("toml")))
    found = read_file(file)
    assert found is not None
    assert found.faults == ()
    assert [read_subscriber(entry.value).way for entry in found.entries] == [one for one in Way if one is not Way.SHELL]


def test_the_receiver_of_the_page_verifies_a_message(rig: NotifyRig) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (rig.side / "receiver.py").write_text(blocks("python")[0])
    env = rig.environment({"ORC_HOOK_SECRET": SECRET, "PORT": str(port)})
    rig.configure(f'url = "http://127.0.0.1:{port}"\nsecret_env = "HOOK_SECRET"')
    with subprocess.Popen([sys.executable, rig.side / "receiver.py"], env=env, stdout=subprocess.PIPE, text=True) as receiver:
        wait_until(lambda: rig.orc("notify", "test").code == 0 or receiver.poll() is not None)
        said, _ = receiver.communicate(timeout=WAIT_S)
    assert said.startswith("orc-test-")
    assert said.endswith(" run.done orc: test is a test\n")


def test_the_payload_of_the_page_has_the_keys_of_a_real_one() -> None:
    notice = Notice(kind="failed", run="f8c1a491", name="example", system="workflow", words="failed", at_us=1)
    real = Message(id="x", kind="failed", notices=(notice,), count=1, repository="shop").data()
    [shown] = [json.loads(text) for text in blocks("json")]
    assert shown.keys() == real.keys()
    assert shown["data"].keys() == real["data"].keys()
    assert shown["data"]["facts"][0].keys() == real["data"]["facts"][0].keys()
    assert shown["data"]["title"] == real["data"]["title"]
