"""Secrets do not stay in what is stored."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from agent_orchestrator.core.limits import OUTPUT_LIMIT_BYTES
from agent_orchestrator.engine import redact
from agent_orchestrator.engine.redact import Redactor
from tests.counting import count_calls

SHAPED = [
    "sk-ant-api03-" + "aB3_" * 10,
    "sk-proj-" + "x1Y2" * 8,
    "ghp_" + "a1B2" * 9,
    "gho_" + "a1B2" * 9,
    "ghu_" + "a1B2" * 9,
    "ghs_" + "a1B2" * 9,
    "github_pat_" + "a1_B" * 10,
    "AKIA" + "ABCD1234" * 2,
    "AIza" + "a" * 35,
    "xoxb-" + "1234567890-abc",
    "Bearer " + "eyJ0.abc-_~+/=" * 3,
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----",
]


@pytest.mark.parametrize("secret", SHAPED)
def test_a_credential_is_recognised_by_its_shape(secret: str) -> None:
    assert Redactor().redact_text(f'before "{secret}" after') == 'before "[redacted]" after'


@pytest.mark.parametrize(
    "text", ["", "task-list and disk-usage", "sk-short", "Bearer of news", "AKIA", "ghp_x", "risk-" + "a" * 40, "é\ud800"]
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert Redactor(["long-enough-secret"]).redact_text(text) == text


def test_known_values_go_the_longest_first_and_short_ones_are_not_secrets() -> None:
    redactor = Redactor(["hunter22", "hunter22-and-more", "abc", "a.c+d(e)f"])
    assert redactor.redact_text("hunter22-and-more hunter22 abc a.c+d(e)f axc") == "[redacted] [redacted] abc [redacted] axc"


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_value_is_known_inside_json_too(ascii_only: bool) -> None:
    secret = '{"user": "zoë", "pass\\word": "hunter2"}\n'
    line = json.dumps({"said": f"it is {secret}."}, ensure_ascii=ascii_only)
    assert Redactor([secret]).redact_text(line) == '{"said": "it is [redacted]."}'


def test_redacting_again_changes_nothing() -> None:
    redactor = Redactor(["hunter22"])
    once = redactor.redact_text("hunter22 " + " ".join(SHAPED))
    assert "[redacted]" in once
    assert redactor.redact_text(once) == once


def test_a_file_is_rewritten_whole_with_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_text("a hunter22 b\n")
    file.chmod(0o600)
    redactor = Redactor(["hunter22"])
    assert redactor.redact_file(file)
    assert file.read_text() == "a [redacted] b\n"
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.stat()
    assert not redactor.redact_file(file)
    assert file.stat().st_ino == before.st_ino
    assert list(tmp_path.iterdir()) == [file]


def test_a_secret_across_the_border_of_two_chunks_does_not_escape(tmp_path: Path) -> None:
    file = tmp_path / "out"
    secret = "hunter22-" + "x" * 40
    for start in (redact._CHUNK_BYTES - 20, redact._CHUNK_BYTES - redact._OVERLAP_BYTES - 20, 2 * redact._CHUNK_BYTES - 1):
        content = b"." * start + secret.encode() + b"-" * redact._CHUNK_BYTES + SHAPED[0].encode()
        file.write_bytes(content)
        assert Redactor([secret]).redact_file(file)
        assert file.read_bytes() == b"." * start + b"[redacted]" + b"-" * redact._CHUNK_BYTES + b"[redacted]"


def test_what_is_no_plain_file_is_left_alone(tmp_path: Path) -> None:
    redactor = Redactor(["hunter22"])
    (tmp_path / "real").write_text("hunter22")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    for name in ("link", "pipe", "empty"):
        assert not redactor.redact_file(tmp_path / name)
    assert (tmp_path / "real").read_text() == "hunter22"
    with pytest.raises(FileNotFoundError):
        redactor.redact_file(tmp_path / "gone")


def test_a_temporary_left_by_a_crash_is_in_nobodys_way(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_text("hunter22")
    (tmp_path / ".out.redacting").write_text("half")
    assert Redactor(["hunter22"]).redact_file(file)
    assert file.read_text() == "[redacted]"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("before", ["", "x", "xy", "user:"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_value_in_base64_is_taken_out_wherever_it_begins(before: str, encode: Callable[[bytes], bytes]) -> None:
    secret = "hunter2?>~hunter2"
    text = f"Authorization: {encode((before + secret + ' and more').encode()).decode()}"
    shown = Redactor([secret]).redact_text(text)
    assert "[redacted]" in shown


@pytest.mark.parametrize("before", [0, 30, 50, 56, 57])
@pytest.mark.parametrize("size", [9, 20, 60, 300, 2000])
@pytest.mark.parametrize("spell", [str, json.dumps, lambda text: json.dumps(json.dumps(text))])
def test_a_value_in_lines_of_base64_is_taken_out(before: int, size: int, spell: Callable[[str], str]) -> None:
    secret = "".join(chr(33 + number * 7 % 90) for number in range(size))
    lines = base64.encodebytes(b"." * before + secret.encode() + b" and more").decode()
    shown = Redactor([secret]).redact_text(spell(lines))
    whole = base64.b64encode(b"." * before + secret.encode()).decode()
    assert "[redacted]" in shown
    assert not [
        one for one in shown.replace('"', "").replace("\\", "\n").split("\n") if len(one) > 9 and one in whole[before * 2 :]
    ]


def test_a_value_in_a_url_is_taken_out() -> None:
    secret = "hunter2/+&hunter2 ?"
    for spelt in (quote(secret, safe=""), quote_plus(secret)):
        assert Redactor([secret]).redact_text(f"https://anna:{spelt}@host/") == "https://anna:[redacted]@host/"


def test_a_value_in_json_in_json_is_taken_out() -> None:
    secret = 'se"cret\\value'
    twice = json.dumps({"line": json.dumps({"key": secret})})
    assert json.dumps(json.dumps(secret))[3:-3] in twice
    assert "cret" not in Redactor([secret]).redact_text(twice)


def test_a_terabyte_of_holes_is_not_read_and_what_lies_behind_them_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "out"
    with file.open("wb") as out:
        out.truncate(2**40)
    assert not Redactor(["correct-horse"]).redact_file(file)
    with file.open("r+b") as out:
        out.seek(-20, os.SEEK_END)
        out.write(b"correct-horse")
    Redactor(["correct-horse"]).redact_file(file)
    assert file.stat().st_size == OUTPUT_LIMIT_BYTES


def test_a_file_that_is_read_in_one_go_is_looked_through_once(tmp_path: Path) -> None:
    file = tmp_path / "launches" / "run" / "step" / "out"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"a line of an agent that says much\n" * 9_000)
    assert count_calls(lambda: Redactor().redact_file(file))["_split"] == 1
