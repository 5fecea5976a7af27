"""The door of `orc mcp`: forged requests, and agents of a run that come to it in either way."""

from __future__ import annotations

import http.client
import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_orchestrator.core.events import DirectiveRefused
from tests.acceptance.rig import ORC, ROOT, wait_until
from tests.mcp.chat import HttpServer, Place
from tests.stores import TOLD
from tests.web.page import Reply, send

ASKS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
OWN = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

INTRUDER = """
import json, subprocess, sys, urllib.request
url, key, told = sys.argv[1:4]
streams = subprocess.run([*sys.argv[4:], "mcp"], input="", capture_output=True, text=True)
asked = urllib.request.Request(url, b"{}", {"Authorization": f"Bearer {key}", "Content-Type": "application/json"})
try:
    code, said = 200, urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked).read().decode()
except urllib.error.HTTPError as error:
    code, said = error.code, error.read().decode()
with open(told, "w") as file:
    json.dump({"streams": [streams.returncode, streams.stdout, streams.stderr], "http": [code, said]}, file)
"""


class Door:
    """A server, and requests to it with exactly the headers that a test gives."""

    def __init__(self, folder: Path) -> None:
        self.place = Place(folder, "true\n")
        self.server = HttpServer(self.place)
        self.address = f"127.0.0.1:{self.server.port}"

    def ask(self, path: str = "/mcp", **changed: str | None) -> Reply:
        """Send what a client would send, with some headers changed or, as None, left out."""
        own: dict[str, str | None] = {**OWN, "Host": self.address, "Authorization": f"Bearer {self.server.key}"}
        own |= {name.replace("_", "-"): value for name, value in changed.items()}
        headers = {name: value for name, value in own.items() if value is not None}
        return send(self.address, "POST", path, headers, json.dumps(ASKS).encode())


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    made = Door(tmp_path_factory.mktemp("door"))
    yield made
    made.server.stop()


def test_a_request_with_the_key_under_our_name_passes(door: Door) -> None:
    assert door.ask().status not in (401, 403, 404, 421)
    assert door.ask(Host=f"localhost:{door.server.port}").status not in (401, 403, 404, 421)
    assert door.ask(Origin=f"http://{door.address}").status not in (401, 403, 404, 421)


def test_a_name_that_was_rebound_to_this_machine_is_refused(door: Door) -> None:
    for host in (f"evil.example:{door.server.port}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.evil.example:{door.server.port}"):
        assert (door.ask(Host=host).status, host) == (421, host)


def test_two_hosts_are_refused(door: Door) -> None:
    connection = http.client.HTTPConnection(door.address, timeout=60)
    connection.putrequest("POST", "/mcp", skip_host=True)
    for name, value in (("Host", door.address), ("Host", "evil.example"), ("Authorization", f"Bearer {door.server.key}")):
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status in (400, 421)
    connection.close()


def test_a_page_of_somebody_else_is_refused(door: Door) -> None:
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", f"https://{door.address}"):
        assert (door.ask(Origin=origin).status, origin) == (403, origin)


def test_without_the_key_nothing_passes(door: Door) -> None:
    for given in (None, "", "Bearer ", "Bearer wrong", f"Basic {door.server.key}", door.server.key, f"Bearer {door.server.key}x"):
        refused = door.ask(Authorization=given)
        assert (refused.status, refused.code) == (401, "locked"), given
        assert refused.headers["www-authenticate"] == "Bearer"
    assert door.ask("/other").status == 404


def test_an_agent_of_a_run_can_use_neither_way_and_the_journal_says_so(tmp_path: Path, door: Door) -> None:
    place, told = door.place, tmp_path / "told.json"
    (tmp_path / "intruder.py").write_text(INTRUDER)
    words = [sys.executable, str(tmp_path / "intruder.py"), door.server.url, door.server.key, str(told), *ORC]
    (place.repo / "prompt.md").write_text(f"export PYTHONPATH={ROOT / 'src'}; {shlex.join(words)}\n")
    run = place.orc("run", "--workflow", "workflow.yaml", "--detach", *TOLD)["run_id"]
    wait_until(told.exists)
    wait_until(lambda: place.stands(run)[0] == "completed")
    said = json.loads(told.read_text())
    code, out, err = said["streams"]
    assert (code, out) == (2, "")
    assert f"`mcp` for run {run} comes from inside the launch {run}/work/" in err
    assert said["http"][0] == 403
    assert "agents may look at runs but not direct them" in said["http"][1]
    (refused,) = place.events(run, DirectiveRefused)
    assert refused.why.startswith("`mcp` came from inside the launch")


def test_what_only_http_has_is_refused_without_it(tmp_path: Path, door: Door) -> None:
    assert "--listen and --port are for --http" in door.place.orc("mcp", "--port", "1")["error"]["message"]
    taken = door.place.orc("mcp", "--http", "--port", str(door.server.port))["error"]["message"]
    assert taken == f"{door.address} cannot be listened at: Address already in use; give another --port."
