"""Answers as JSON: compressed where the browser takes it, every error as one sentence with a status."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from agent_orchestrator.errors import (
    AmbiguousRun,
    FromLaunch,
    OrcError,
    Refused,
    RunBusy,
    Unavailable,
    UnknownRun,
    UnknownUnit,
    UsageError,
)

API = 1
COMPRESSED_FROM_BYTES = 1024
_GZIP_WINDOW = 16 + zlib.MAX_WBITS

_encode = msgspec.json.Encoder(enc_hook=str).encode

STATUSES: tuple[tuple[type[OrcError], int, str], ...] = (
    (UnknownRun, 404, "unknown"),
    (UnknownUnit, 404, "unknown"),
    (AmbiguousRun, 404, "unknown"),
    (FromLaunch, 403, "launch"),
    (Refused, 409, "refused"),
    (RunBusy, 409, "refused"),
    (UsageError, 400, "invalid"),
    (Unavailable, 503, "unavailable"),
)
"""The statuses of errors, the first that fits."""


class PageFault(Exception):
    """An answer other than the one that was asked for."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def answer(request: Request, facts: Mapping[str, Any], status: int = 200) -> Response:
    """Return plain data as an answer."""
    body = _encode({"api": API, **facts})
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
    if len(body) >= COMPRESSED_FROM_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        packer = zlib.compressobj(5, zlib.DEFLATED, _GZIP_WINDOW)
        body = packer.compress(body) + packer.flush()
        headers["Content-Encoding"] = "gzip"
    return Response(body, status, headers, "application/json")


def refuse(status: int, code: str, message: str) -> Response:
    """Return an error as an answer."""
    body = _encode({"api": API, "error": {"code": code, "message": message}})
    return Response(body, status, {"Cache-Control": "no-store"}, "application/json")


def answer_fault(_: Request, error: Exception) -> Response:
    """Return the answer to a request that cannot be answered as asked."""
    assert isinstance(error, PageFault)
    return refuse(error.status, error.code, error.message)


def answer_error(_: Request, error: Exception) -> Response:
    """Return an error of ours in its own words."""
    status, code = next(((status, code) for kind, status, code in STATUSES if isinstance(error, kind)), (500, "internal"))
    return refuse(status, code, str(error))


def answer_bug(_: Request, error: Exception) -> Response:
    """Return a bug of ours in one sentence; `ORC_DEBUG=1 orc web` prints its traceback."""
    said = " ".join(str(error).split())
    return refuse(
        500, "internal", f"internal error: {type(error).__name__}: {said}; start orc web with ORC_DEBUG=1 for the traceback"
    )
