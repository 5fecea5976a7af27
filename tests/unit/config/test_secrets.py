"""The values that are never stored: by the names of their variables, and because somebody passes them on."""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.config import Settings


def test_what_is_passed_on_is_a_secret_whatever_its_name_unless_it_is_a_place_or_short(tmp_path: Path) -> None:
    environ = {
        "DEPLOY": "xyzzy-xyzzy",
        "SLASHED": "/no/such/place+xyzzy",
        "PLACES": f"{tmp_path}:/no/such",
        "SHORT": "yes",
        "OTHER": "not passed on",
        "MY_TOKEN": "by its name",
    }
    settings = Settings(home=tmp_path, folder=tmp_path, environ=environ)
    assert settings.secrets() == ("by its name",)
    passed = ("DEPLOY", "SLASHED", "PLACES", "SHORT", "UNSET")
    assert set(settings.secrets(passed=passed)) == {"xyzzy-xyzzy", "/no/such/place+xyzzy", "by its name"}
