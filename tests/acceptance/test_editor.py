"""The starter as an editor shows it: the real language server completes keys and marks unknown ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.rig import Rig
from tests.clients.conftest import missing

SERVER = Path(__file__).parents[2] / ".cache" / "node" / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"


class LanguageServer:
    """A client of the language server protocol, over pipes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin, process.stdout
        self._asked = 0

    def tell(self, method: str, **parameters: Any) -> None:
        self._send({"method": method, "params": parameters})

    def ask(self, method: str, **parameters: Any) -> Any:
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": parameters})
        return self._next(lambda one: one.get("id") == self._asked and "method" not in one)["result"]

    def diagnostics(self, uri: str) -> list[dict[str, Any]]:
        told = self._next(lambda one: one.get("method") == "textDocument/publishDiagnostics" and one["params"]["uri"] == uri)
        found: list[dict[str, Any]] = told["params"]["diagnostics"]
        return found

    def wait_for_mark(self, uri: str, message: str) -> None:
        """Of texts that follow each other at once the server tells the last, or all."""
        while message not in [one["message"] for one in self.diagnostics(uri)]:
            pass

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._to.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._to.flush()

    def _next(self, wanted: Any) -> dict[str, Any]:
        while True:
            length = 0
            while line := self._from.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            assert length, "the language server has ended"
            message: dict[str, Any] = json.loads(self._from.read(length))
            if wanted(message):
                return message
            if "id" in message and "method" in message:  # It asks for settings: there are none.
                asked = message.get("params", {}).get("items", [])
                self._send({"id": message["id"], "result": [None for _ in asked]})


@pytest.fixture
def server(rig: Rig) -> Iterator[LanguageServer]:
    if (why := missing()) is not None:
        pytest.skip(why)
    node = shutil.which("node")
    assert node is not None
    assert SERVER.exists(), "`make clients` installs it"
    environment = {"PATH": os.environ["PATH"], "HOME": str(rig.side)}
    with subprocess.Popen([node, SERVER, "--stdio"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        limit = threading.Timer(60, process.kill)  # A server that says nothing more is a failure, not a hang.
        limit.start()
        yield LanguageServer(process)
        limit.cancel()
        process.kill()


def test_an_editor_completes_keys_and_marks_unknown_ones_in_the_starter(rig: Rig, server: LanguageServer) -> None:
    (rig.repo / "workflow.yaml").unlink()
    assert rig.ask("init").code == 0
    file = rig.repo / "workflow.yaml"
    server.ask("initialize", processId=None, rootUri=rig.repo.as_uri(), capabilities={}, initializationOptions={})
    server.tell("initialized")
    text = file.read_text()
    document = {"uri": file.as_uri(), "languageId": "yaml", "version": 1}
    server.tell("textDocument/didOpen", textDocument={**document, "text": text})
    assert server.diagnostics(file.as_uri()) == []

    lines = [*text.rstrip("\n").splitlines(), "  - id: more", "    human_in", "    needed: [code]"]
    changed = {"uri": file.as_uri(), "version": 2}
    server.tell("textDocument/didChange", textDocument=changed, contentChanges=[{"text": "\n".join(lines) + "\n"}])
    place = {"line": len(lines) - 2, "character": len(lines[-2])}
    offered = server.ask("textDocument/completion", textDocument={"uri": file.as_uri()}, position=place)
    assert "human_in_the_loop" in [one["label"] for one in offered["items"]]

    del lines[-2]
    changes = [{"text": "\n".join(lines) + "\n"}]
    server.tell("textDocument/didChange", textDocument={**changed, "version": 3}, contentChanges=changes)
    server.wait_for_mark(file.as_uri(), "Property needed is not allowed.")
