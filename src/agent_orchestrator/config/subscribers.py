"""Subscribers: whom `[[notify]]` tables tell what happens in runs, and how each is reached.

A URL names both: https://… is a webhook, slack://… and ntfy://… are those, desktop: is this screen, command:… a program.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.errors import InvalidValue


class NoticeKind(StrEnum):
    """The kinds of facts that people are told."""

    PERSON = "person"
    BUDGET = "budget"
    PARKED = "parked"
    FAILED = "failed"
    DONE = "done"


class Way(StrEnum):
    """The ways to reach a subscriber."""

    WEBHOOK = "webhook"
    SLACK = "slack"
    NTFY = "ntfy"
    DESKTOP = "desktop"
    COMMAND = "command"
    SHELL = "shell"
    """A command line of `--on-wait` or `--on-end`."""


EVERY_KIND = tuple(kind.value for kind in NoticeKind)
SLACK_HOSTS, NTFY_HOST = ("hooks.slack.com", "hooks.slack-gov.com"), "ntfy.sh"
EXPECTED_URL = "https://…, slack://HOST/…, ntfy://HOST/TOPIC, desktop: or command:PROGRAM"

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class NotifyTable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`[[notify]]`: somebody who is told what happens in runs."""

    url: Annotated[str, Meta(description=f"Whom to tell: {EXPECTED_URL}; http:// only to this machine.")]
    name: Annotated[str | None, Meta(description="Its name in messages; without it the host, or desktop, or the program.")] = None
    on: Annotated[tuple[NoticeKind, ...], Meta(description="The kinds of facts; without it all.", min_length=1)] = tuple(
        NoticeKind
    )
    secret_env: Annotated[
        str | None, Meta(description="The variable with the secret: whsec_… that signs a webhook, or the token of ntfy.")
    ] = None


class Subscriber(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who is told what happens in runs."""

    name: str
    way: Way
    target: str
    """The URL to ask, or the command line."""
    kinds: frozenset[str] = frozenset(EVERY_KIND)
    secret_env: str | None = None
    run: str | None = None
    """The only run that it is told of; None for all."""
    ends_only: bool = False
    """True if it is told of ends alone, and of no budget that is only low."""
    origin: str = ""

    @property
    def argv(self) -> list[str]:
        """The words of its command."""
        return ["sh", "-c", self.target] if self.way is Way.SHELL else shlex.split(self.target)

    @property
    def shown(self) -> str:
        """The target as people may see it: paths of URLs are secrets more often than not."""
        return hide_path(self.target) if "://" in self.target else self.target


def read_subscriber(table: Mapping[str, Any], what: str = "[[notify]]") -> Subscriber:
    """Read a `[[notify]]` table; raise InvalidValue for what it cannot be."""
    url = table.get("url")
    if not isinstance(url, str) or not url.strip() or "\0" in url:
        raise InvalidValue(what=f"{what}: url", value=url, expected=EXPECTED_URL)
    way, target, usual = _read_url(url.strip(), f"{what}: url")
    kinds = table.get("on", list(EVERY_KIND))
    if not isinstance(kinds, list) or not kinds or not all(one in EVERY_KIND for one in kinds):
        raise InvalidValue(what=f"{what}: on", value=kinds, expected=f"a list of {', '.join(EVERY_KIND)}")
    secret = table.get("secret_env")
    if secret is not None and (not isinstance(secret, str) or not _VARIABLE.match(secret)):
        raise InvalidValue(what=f"{what}: secret_env", value=secret, expected="the name of a variable, not the secret itself")
    if secret is not None and way not in (Way.WEBHOOK, Way.NTFY):
        raise InvalidValue(what=f"{what}: secret_env", value=secret, expected=f"left out: {way.value} takes no secret")
    name = checked_id(table.get("name", usual), f"{what}: name")
    return Subscriber(name=name, way=way, target=target, kinds=frozenset(kinds), secret_env=secret)


def hide_path(url: str) -> str:
    """Return a URL for people: its host, and nothing that could be a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/…" if parts.netloc else url


def _read_url(url: str, what: str) -> tuple[Way, str, str]:
    """Return the way, the target and the usual name of a URL."""
    scheme, _, rest = url.partition(":")
    if scheme == "desktop" and not rest:
        return Way.DESKTOP, "", "desktop"
    if scheme == "command":
        try:
            words = shlex.split(rest)
        except ValueError as error:
            raise InvalidValue(what=what, value=url, expected=f"a command line that can be read ({error})") from None
        if not words:
            raise InvalidValue(what=what, value=url, expected="a program after command:")
        return Way.COMMAND, rest.strip(), re.sub(r"[^A-Za-z0-9._-]", "-", words[0].rpartition("/")[2]).lstrip("._-") or "command"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if not host or not url.isascii() or any(one <= " " for one in url):
        raise InvalidValue(what=what, value=url, expected=EXPECTED_URL)
    if parts.username is not None or parts.password is not None:
        raise InvalidValue(what=what, value=hide_path(f"{parts.scheme}://{host}"), expected="without a user: use secret_env")
    if parts.scheme not in ("https", "http", "slack", "ntfy"):
        raise InvalidValue(what=what, value=hide_path(url), expected=EXPECTED_URL)
    if parts.scheme == "http" and not _is_here(host):
        raise InvalidValue(what=what, value=hide_path(url), expected="https://: plain http only reaches this machine")
    plain = parts.scheme == "http" or (parts.scheme in ("slack", "ntfy") and _is_here(host))
    target = parts._replace(scheme="http" if plain else "https", fragment="").geturl()
    usual = re.sub(r"[^A-Za-z0-9._-]", "-", host if port is None else f"{host}-{port}").lstrip("._-")
    if parts.scheme == "ntfy" or host == NTFY_HOST:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", parts.path.strip("/")):
            raise InvalidValue(
                what=what, value=hide_path(url), expected="ntfy://HOST/TOPIC, the topic of letters, digits, _ and -"
            )
        return Way.NTFY, target, usual
    return (Way.SLACK if parts.scheme == "slack" or host in SLACK_HOSTS else Way.WEBHOOK), target, usual


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
