"""The store that is meant: by a flag, a variable or a file, never with a password that others can read."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_orchestrator.config import Settings, choose_store, load_settings
from agent_orchestrator.config.store_address import find_store, hide_password, name_repository
from agent_orchestrator.errors import OrcError, Unavailable, UsageError

SHOP, OTHER = "postgresql://db.example.com/shop", "postgresql://db.example.com/other"


@pytest.fixture(autouse=True)
def nothing_chosen() -> Iterator[None]:
    yield
    choose_store(None)


def settings_of(repo: Path, **environ: str) -> Settings:
    return load_settings(str(repo), {"HOME": str(repo.parent), "PATH": "/usr/bin:/bin", **environ})


def agree(settings: Settings) -> Settings:
    return load_settings(str(settings.home), {**settings.environ, "ORC_TRUSTED_PATHS": str(settings.home)})


def test_without_a_word_the_repository_has_its_own_store(repo: Path) -> None:
    assert find_store(settings_of(repo)) is None


def test_a_flag_wins_over_a_variable_and_a_variable_over_files(repo: Path) -> None:
    (repo / ".orc.toml").write_text('[store]\nurl = "postgresql://file/shop"\nrepository = "ours"\n')
    said = agree(settings_of(repo))
    found = find_store(said)
    assert found is not None
    assert (found.url, found.repository) == ("postgresql://file/shop", "ours")
    found = find_store(agree(settings_of(repo, ORC_STORE=OTHER)))
    assert found is not None
    assert (found.url, found.repository) == (OTHER, "ours")
    choose_store(SHOP)
    found = find_store(agree(settings_of(repo, ORC_STORE=OTHER)))
    assert found is not None
    assert found.url == SHOP
    choose_store("sqlite")
    assert find_store(agree(settings_of(repo, ORC_STORE=OTHER))) is None


def test_a_repositorys_file_needs_the_users_word_and_theirs_does_not(repo: Path) -> None:
    own = repo.parent / ".config" / "orc" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f'[store]\nurl = "{SHOP}"\n')
    found = find_store(settings_of(repo))
    assert found is not None
    assert found.url == SHOP
    (repo / ".orc.toml").write_text(f'[store]\nurl = "{OTHER}"\n')
    with pytest.raises(UsageError, match=r"\.orc\.toml:2: store\.url .*`orc config trust`"):
        find_store(settings_of(repo))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("shop", "must be postgresql://"),
        ("postgresql://", "must be postgresql://"),
        ("mysql://db/shop", "must be postgresql://"),
        ("postgresql://db/a shop", "must be postgresql://"),
        ("postgresql://ada:swordfish@db/shop", "PGPASSWORD"),
        ("postgresql://db/shop?user=ada&password=swordfish", "PGPASSWORD"),
    ],
)
def test_a_flag_that_is_no_store_is_refused_in_one_sentence(url: str, says: str) -> None:
    with pytest.raises(OrcError, match=says) as refused:
        choose_store(url)
    assert "swordfish" not in str(refused.value)


def test_a_password_stands_in_a_variable_and_nowhere_else(repo: Path) -> None:
    url = "postgresql://ada:correct-horse@db/shop?sslmode=require"
    settings = settings_of(repo, ORC_STORE=url)
    found = find_store(settings)
    assert found is not None
    assert found.url == url
    assert "correct-horse" not in str(found)
    assert hide_password("postgresql://db/shop?password=correct-horse&user=ada") == "postgresql://db/shop?password=***&user=ada"
    assert "correct-horse" in settings.secrets()
    assert "ORC_STORE" not in settings.child_env()
    (repo / ".orc.toml").write_text(f'[store]\nurl = "{url}"\n')
    with pytest.raises(OrcError, match="has a password in it") as refused:
        find_store(agree(settings_of(repo)))
    assert "correct-horse" not in str(refused.value)


def test_a_service_file_may_say_everything(repo: Path) -> None:
    found = find_store(settings_of(repo, ORC_STORE="postgresql://?service=shop"))
    assert found is not None
    assert found.url == "postgresql://?service=shop"


def test_what_stands_in_the_way_of_the_kept_name_is_named(repo: Path) -> None:
    (repo / ".git" / "orc").write_text("in the way")
    with pytest.raises(
        Unavailable, match=r"\.git/orc/repository cannot be read \(Not a directory\): move away what stands there\."
    ):
        find_store(settings_of(repo, ORC_STORE=SHOP))


def test_a_repository_is_known_by_its_remote_and_else_by_its_place(repo: Path) -> None:
    assert name_repository(repo).endswith(f":{repo}")
    subprocess.run(["git", "remote", "add", "origin", "https://ada:token@github.com/ada/shop.git"], cwd=repo, check=True)
    assert name_repository(repo) == "github.com/ada/shop"
    subprocess.run(["git", "remote", "set-url", "origin", "git@github.com:ada/shop"], cwd=repo, check=True)
    assert name_repository(repo) == "github.com/ada/shop"
    found = find_store(settings_of(repo, ORC_STORE=SHOP, ORC_STORE_REPOSITORY="the shop"))
    assert found is not None
    assert found.repository == "the shop"
