"""The door of `orc web`: each rule about looking and deciding, with the forged request that it refuses."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.rig import HUMAN, Rig, wait_until
from tests.conftest import make_repo
from tests.web.page import PageSession, Reply, send
from tests.web.server import Server

ASKS = "/api/runs/waits/directives"

Changed = Mapping[str, str | None]
NOTHING: Changed = {}


class Place:
    """A server over a repository with a run that waits for a person, and a page that is open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rig = Rig(make_repo(folder / "repo"))
        self.rig.workflow(HUMAN)
        self.driver = self.rig.start_run("--run-id", "waits")
        self.server = Server(folder, self.rig.repo)
        self.page = PageSession(self.server.url)
        wait_until(lambda: self.questions() != [])

    def questions(self) -> Any:
        found = self.page.get("/api/runs/waits")
        return found.json["questions"] if found.status == 200 else []

    def body(self, directive: str = "approve") -> bytes:
        effect = self.questions()[0]["effect"]
        said = {"id": uuid.uuid4().hex, "directive": directive, "unit": "approval", "expect": {"effect": effect}}
        return json.dumps(said).encode()

    def ask(self, method: str, path: str, body: bytes | None = None, changed: Changed = NOTHING) -> Reply:
        """Send what the page would send, with some headers changed or, as None, left out."""
        own: dict[str, str | None] = {"Host": self.page.address, "Cookie": self.page.cookie}
        if body is not None:
            own |= {"X-Orc-Token": self.page.token, "Content-Type": "application/json"}
        own |= changed
        return send(self.page.address, method, path, {name: value for name, value in own.items() if value is not None}, body)

    def close(self) -> None:
        self.server.stop()
        self.driver.signal(signal.SIGTERM)
        self.driver.end()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("door"))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("changed", "status", "code"),
    [
        ({"Host": "evil.example:{port}"}, 421, "host"),
        ({"Host": "127.0.0.1:1"}, 421, "host"),
        ({"Host": "127.0.0.1"}, 421, "host"),
        ({"Host": "192.168.1.7:{port}"}, 421, "host"),
        ({"Origin": "http://evil.example"}, 403, "foreign"),
        ({"Origin": "null"}, 403, "foreign"),
        ({"Origin": "http://127.0.0.1:3000"}, 403, "foreign"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "foreign"),
        ({"Sec-Fetch-Site": "same-site"}, 403, "foreign"),
        ({"Cookie": None}, 401, "locked"),
        ({"Cookie": "orc-web-{port}=guessed"}, 401, "locked"),
    ],
)
@pytest.mark.parametrize("writes", [False, True])
def test_a_request_that_is_not_the_pages_own_is_refused(
    place: Place, changed: Changed, status: int, code: str, writes: bool
) -> None:
    given = {name: value and value.format(port=place.server.port) for name, value in changed.items()}
    reply = place.ask("POST", ASKS, place.body(), given) if writes else place.ask("GET", "/api/runs", changed=given)
    assert (reply.status, reply.code) == (status, code)
    assert place.questions(), "nothing was decided"


@pytest.mark.parametrize(
    ("changed", "status", "code"),
    [
        ({"X-Orc-Token": None}, 403, "token"),
        ({"X-Orc-Token": "guessed"}, 403, "token"),
        ({"Content-Type": "text/plain"}, 415, "not_json"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415, "not_json"),
        ({"Content-Type": None}, 415, "not_json"),
        ({"Content-Length": "300000"}, 413, "too_large"),
    ],
)
def test_a_write_needs_the_pages_token_and_json(place: Place, changed: Changed, status: int, code: str) -> None:
    reply = place.ask("POST", ASKS, place.body(), changed)
    assert (reply.status, reply.code) == (status, code)
    assert place.questions(), "nothing was decided"


def test_a_cookie_that_another_server_on_this_host_was_sent_decides_nothing(place: Place) -> None:
    # A browser sends cookies to every port of a host: an agent's own web server gets ours, and nothing else.
    stolen = place.page.cookie
    other = PageSession(place.page.post("/api/links", {}).json["url"])
    forged = place.ask("POST", ASKS, place.body(), {"Cookie": stolen, "X-Orc-Token": other.token})
    assert (forged.status, forged.code) == (403, "token")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_is_written_in_another_way(place: Place, method: str) -> None:
    assert place.ask(method, ASKS, place.body()).status == 405
    assert place.ask(method, "/", b"{}").status == 405


def test_a_key_opens_one_session_and_no_second(place: Place) -> None:
    url = place.page.post("/api/links", {}).json["url"]
    path = "/" + url.partition("/?")[2].join(("?", ""))
    first = send(place.page.address, "GET", path, {})
    assert first.status == 303
    cookie = first.headers["set-cookie"]
    assert {"HttpOnly", "Path=/"} < set(cookie.split("; "))
    assert "samesite=strict" in cookie.lower()
    second = send(place.page.address, "GET", path, {})
    assert (second.status, second.code) == (401, "locked")
    assert "set-cookie" not in second.headers
    assert send(place.page.address, "GET", "/?key=guessed", {}).status == 401


def test_a_key_leads_nowhere_else(place: Place) -> None:
    key = place.page.post("/api/links", {}).json["url"].partition("?key=")[2]
    led = send(place.page.address, "GET", f"//evil.example/x?key={key}", {})
    assert led.status == 303
    assert led.headers["location"].startswith("/evil.example/x#token=")


@pytest.mark.parametrize("path", ["/", "/run/waits", "/static/app.css", "/api/runs", "/api/nowhere", "/?key=wrong"])
def test_every_answer_binds_the_browser(place: Place, path: str) -> None:
    headers = place.page.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    assert headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2fserver.py",
        "/static//etc/passwd",
        "/api/runs/waits/launches/..%2f..%2f..%2fHEAD/raw",
        "/api/runs/waits/launches/waits%2f..%2f..%2fx",
        "/api/runs/waits/launches/waits%2fcoding%2f..%2f..%2forc.db",
        "/api/runs/..%2f..%2fwaits",
        "/api/runs/waits/jobs/..%2f..%2forc",
        "/api/runs/waits/units/..%2f..%2fsecret",
    ],
)
def test_no_path_leads_out(place: Place, path: str) -> None:
    reply = place.ask("GET", path)
    assert reply.status == 404
    assert b"root:" not in reply.body
    assert b"import" not in reply.body


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"id": "1", "directive": "approve"}',
        b'{"id": "%b", "directive": "explode"}' % (b"a" * 32),
        b'{"id": "%b", "directive": "approve", "who": {"surface": "cli"}}' % (b"a" * 32),
        b'{"id": "%b", "directive": "approve", "unit": "approval"}' % (b"a" * 32),
        b'{"id": "%b", "directive": "steer", "text": "\\ud800"}' % (b"a" * 32),
        b'{"id": "%b", "directive": "rewind"}' % (b"a" * 32),
    ],
)
def test_a_directive_that_is_none_is_refused_with_a_sentence(place: Place, body: bytes) -> None:
    reply = place.ask("POST", ASKS, body)
    assert (reply.status, reply.code) == (400, "invalid")
    assert reply.message.endswith(".")


def test_an_approval_of_another_question_than_the_one_that_was_seen_does_not_count(place: Place) -> None:
    said = {
        "id": uuid.uuid4().hex,
        "directive": "approve",
        "unit": "approval",
        "expect": {"effect": "waits/approval/i0.a1.l9.human"},
    }
    reply = place.page.post(ASKS, said)
    assert (reply.status, reply.code) == (409, "refused")
    assert place.questions(), "nothing was decided"


AGENT = """
import http.client, json, sys
address, cookie, token, path, body, out = sys.argv[1:]
connection = http.client.HTTPConnection(address)
connection.request("POST", path, body, {"Cookie": cookie, "X-Orc-Token": token, "Content-Type": "application/json"})
reply = connection.getresponse()
open(out, "w").write(json.dumps([reply.status, json.loads(reply.read())["error"]["code"]]))
"""


def test_an_agent_that_has_stolen_the_session_may_not_decide(place: Place, tmp_path: Path) -> None:
    # It finds the port, reads the browser's files for the cookie and the token, and says yes to its own work.
    script, out = tmp_path / "agent.py", tmp_path / "said.json"
    script.write_text(AGENT)
    page = place.page
    argv = [sys.executable, str(script), page.address, page.cookie, page.token, ASKS, place.body().decode(), str(out)]
    (place.rig.repo / "steal.yaml").write_text("name: steal\nsteps:\n  - {id: steal, agent: shell, prompt: steal.sh}\n")
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in argv)
    (place.rig.repo / "steal.sh").write_text(f"{quoted}\n")
    ran = place.rig.orc("run", "--workflow", "steal.yaml", "--shared-tree", "--run-id", "steals")
    assert ran.code == 0, ran
    assert json.loads(out.read_text()) == [403, "launch"]
    assert place.questions(), "nothing was decided"
    refused = [one["text"] for one in place.page.read("/api/runs/waits/messages")["messages"]]
    assert any("steals/steal/i0.a1.l1.agent" in text for text in refused), "the journal names the launch that tried"


def test_a_page_that_only_shows_changes_nothing(place: Place, tmp_path: Path) -> None:
    server = Server(tmp_path, place.rig.repo, arguments=("--read-only",))
    try:
        page = PageSession(server.url)
        assert page.read("/api/session")["read_only"] is True
        assert page.read("/api/runs/waits")["run"]["run_id"] == "waits"
        reply = page.post(ASKS, json.loads(place.body()))
        assert (reply.status, reply.code) == (403, "read_only")
        assert page.post("/api/links", {}).status == 403
    finally:
        server.stop()
    assert place.questions(), "nothing was decided"


def test_what_is_kept_of_sessions_opens_none(place: Place) -> None:
    (kept,) = (place.folder / ".local" / "share" / "orc" / "web").iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    text = kept.read_text()
    assert place.page.token not in text
    assert place.page.cookie.partition("=")[2] not in text
    for word in text.split():
        assert place.ask("GET", "/api/runs", changed={"Cookie": f"orc-web-{place.server.port}={word}"}).status == 401
        assert place.ask("GET", f"/?key={word}").status == 401


def test_the_key_stands_in_no_ones_sight(place: Place) -> None:
    arguments = Path(f"/proc/{place.server.process.pid}/cmdline").read_bytes()
    environ = Path(f"/proc/{place.server.process.pid}/environ").read_bytes()
    key = place.server.url.partition("?key=")[2].encode()
    assert key not in arguments + environ


def test_a_port_that_is_taken_is_said(place: Place) -> None:
    said = place.rig.orc("web", "--port", str(place.server.port))
    assert said.code == 3
    assert said.err == f"orc: 127.0.0.1:{place.server.port} cannot be listened at: Address already in use; give another --port.\n"


def test_a_place_that_is_not_this_machines_is_said(place: Place) -> None:
    assert "cannot be listened at" in place.rig.orc("web", "--listen", "192.0.2.1", "--port", "0").err
    assert "give an address of this machine" in place.rig.orc("web", "--listen", "no such host", "--port", "0").err


def test_without_its_packages_the_page_says_how_to_install_them(place: Place) -> None:
    code = "import sys; sys.modules['starlette'] = None\nfrom agent_orchestrator.cli import main\nsys.exit(main(['web']))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=place.rig.repo, env=place.rig.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr == "orc: The page needs starlette, which is not installed: pip install 'orc-agents[web]'.\n"
