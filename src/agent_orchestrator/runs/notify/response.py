"""A message on its way: all that it takes to tell it, and the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from agent_orchestrator.runs.notify.message import Message
from agent_orchestrator.store.port import StoredRun


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one try."""

    ok: bool
    said: str
    final: bool = False
    """True where another try is not wanted."""
    after_s: float = 0.0
    """The receiver wants to be left alone for so long."""


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """A message with all that it takes to tell it."""

    message: Message
    home: str
    environ: Mapping[str, str]
    now_s: int
    run: StoredRun | None = None
    """The run that the message is about, the last of several."""


def encode_body(body: Mapping[str, object]) -> bytes:
    """Encode a body as every receiver reads it: JSON in ASCII."""
    return json.dumps(body).encode()
