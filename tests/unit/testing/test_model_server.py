"""The scripted model's books: whoever has an answer finds it counted."""

from __future__ import annotations

import json
from http.client import HTTPConnection, IncompleteRead
from urllib.parse import urlsplit

import pytest

from agent_orchestrator.core.inputs import Usage
from agent_orchestrator.testing.model_server import Lane, ModelServer, Say

LAST = {"/v1/messages": b"message_delta", "/responses": b"response.completed"}
"""The event that says what a call took."""


class Closed(Lane):
    """Books that take nothing."""

    def charge(self, usage: Usage, *, back: bool = False) -> None:
        raise RuntimeError("the books are closed")


def ask(url: str, path: str) -> bytes:
    """Return all that comes back to a streaming request, also where it breaks off."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port)
    tools = [{"type": "function", "name": "Write", "parameters": {}}]
    body = json.dumps({"stream": True, "model": "m", "tools": tools, "messages": [], "input": []})
    connection.request("POST", f"{parts.path}{path}", body)
    try:
        return connection.getresponse().read()
    except IncompleteRead as broken:
        return broken.partial
    finally:
        connection.close()


@pytest.mark.parametrize("path", LAST)
def test_an_answer_is_counted_before_anybody_can_know_what_it_took(path: str) -> None:
    with ModelServer() as model:
        open_books = Lane([Say("hello")])
        assert LAST[path] in ask(model.add("open", open_books), path)
        assert open_books.charged.input_tokens == 1007
        said = ask(model.add("closed", Closed([Say("hello")])), path)
        assert b"hello" in said
        assert LAST[path] not in said
