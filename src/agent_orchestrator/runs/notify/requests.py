"""Messages by HTTP: signed webhooks, Slack and ntfy. Loaded by whoever is told that way: TLS costs as much as an interpreter."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import html
import ssl
from collections.abc import Mapping
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from agent_orchestrator.config.subscribers import Subscriber, Way
from agent_orchestrator.runs.notify.notices import plain_line
from agent_orchestrator.runs.notify.response import Response, Sending, encode_body
from agent_orchestrator.version import __version__

REQUEST_S = 10.0
SECRET_MARK = "whsec_"
ANSWER_SHOWN_BYTES = 200
GONE = 410


def send_request(subscriber: Subscriber, sending: Sending) -> Response:
    """Send a message to the URL of a subscriber once."""
    secret = sending.environ.get(subscriber.secret_env, "") if subscriber.secret_env is not None else None
    if secret == "":
        return Response(ok=False, said=f"the variable {subscriber.secret_env} is not set")
    try:
        return _post(_request(subscriber, sending, secret), sending.environ)
    except ValueError as error:
        return Response(ok=False, said=str(error))


def sign(secret: str, message: str, now_s: int, body: bytes) -> str:
    """Return the signature of Standard Webhooks; raise ValueError for what is no secret of theirs."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_MARK), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the secret is not base64, with or without whsec_ before it") from None
    digest = hmac.new(key, f"{message}.{now_s}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def _request(subscriber: Subscriber, sending: Sending, secret: str | None) -> Request:
    message, url = sending.message, subscriber.target
    headers = {"Content-Type": "application/json", "User-Agent": f"orc/{__version__}"}
    if subscriber.way is Way.SLACK:
        # Escaped, because <!channel> and links are read even where formatting is off.
        text = html.escape(f"{message.title}\n{message.text}", quote=False)
        body = {"text": text, "mrkdwn": False, "parse": "none", "link_names": False, "unfurl_links": False, "unfurl_media": False}
        return Request(url, encode_body(body), headers, method="POST")
    if subscriber.way is Way.NTFY:
        parts = urlsplit(url)
        headers |= {"Authorization": f"Bearer {secret}"} if secret is not None else {}
        body = {"topic": parts.path.strip("/"), "title": message.title, "message": message.text, "markdown": False}
        return Request(parts._replace(path="/", query="").geturl(), encode_body(body), headers, method="POST")
    raw = encode_body(message.data())
    headers |= {"webhook-id": message.id, "webhook-timestamp": str(sending.now_s)}
    headers |= {"webhook-signature": sign(secret, message.id, sending.now_s, raw)} if secret is not None else {}
    return Request(url, raw, headers, method="POST")


def _post(request: Request, environ: Mapping[str, str]) -> Response:
    # Nothing that follows a redirection: what is meant for one receiver is not handed on to another.
    opener = OpenerDirector()
    handlers = (ProxyHandler(_proxies(request.host, environ)), HTTPHandler(), HTTPSHandler())
    for one in (*handlers, HTTPErrorProcessor(), HTTPDefaultErrorHandler()):
        opener.add_handler(one)
    try:
        with opener.open(request, timeout=REQUEST_S) as answer:
            return Response(ok=True, said=_said(answer.status, answer.read(ANSWER_SHOWN_BYTES)))
    except HTTPError as error:
        with error:
            said = _said(error.code, error.read(ANSWER_SHOWN_BYTES))
            wait = error.headers.get("Retry-After", "")
        return Response(ok=False, said=said, final=error.code == GONE, after_s=float(wait) if wait.isdecimal() else 0.0)
    except (OSError, HTTPException, ssl.SSLError) as error:
        reason = getattr(error, "reason", error)
        return Response(ok=False, said=plain_line(str(getattr(reason, "strerror", None) or reason) or type(error).__name__))


def _proxies(host: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the proxies of the person's environment for a host, as every program reads them."""
    found = {name: environ.get(f"{name}_proxy") or environ.get(f"{name.upper()}_PROXY", "") for name in ("http", "https", "no")}
    name = urlsplit(f"//{host}").hostname or ""
    spared = [one.strip().lstrip(".") for one in found["no"].split(",") if one.strip()]
    if name in ("localhost", "::1") or name.startswith("127.") or "*" in spared:
        return {}
    if any(name == one or name.endswith(f".{one}") for one in spared):
        return {}
    return {scheme: proxy for scheme, proxy in found.items() if proxy and scheme != "no"}


def _said(status: int, body: bytes) -> str:
    text = plain_line(body.decode("utf-8", "replace"))
    return f"HTTP {status}" + (f": {text}" if text else "")
