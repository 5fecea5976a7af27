"""`orc` on a real PostgreSQL, as a user runs it: prepared, shared by two clones, copied to and from, and named wrongly."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.rig import HUMAN, Rig, wait_until
from tests.postgres.server import GUARDED_PASSWORD, GUARDED_USER, find_free_port, shared_server
from tests.stores import OWN_STORE

RUN = ("run", "--workflow", "workflow.yaml", "--run-id")
PRICED = """
- {step: planning, report: {status: COMPLETED}, cost_usd: 0.5, tokens: {input: 1200, output: 30}}
- {step: "*", report: {status: COMPLETED}, cost_usd: 0.25, tokens: {input: 800, output: 20}}
"""


def clone(rig: Rig, name: str) -> Rig:
    """A second clone of the repository, with the same remote."""
    bare = rig.repo.parent / "shop.git"
    if not bare.exists():
        subprocess.run(["git", "clone", "--quiet", "--bare", rig.repo, bare], check=True)
        subprocess.run(["git", "remote", "add", "origin", bare], cwd=rig.repo, check=True)
    subprocess.run(["git", "clone", "--quiet", bare, rig.repo.parent / name], check=True)
    return Rig(rig.repo.parent / name)


def test_a_database_is_prepared_once_and_said_to_be(rig: Rig, empty: str) -> None:
    told = rig.orc("status", "--store", empty)
    assert (told.code, told.out) == (3, "")
    assert re.fullmatch(
        r"orc: The database at 127\.0\.0\.1:\d+/test_\w+ holds no store yet; run `orc store init`\.\n", told.err
    ), told
    first = rig.orc("store", "init", "--store", empty)
    assert (first.code, first.err) == (0, ""), first
    assert "is prepared" in first.out
    again = rig.orc("store", "init", "--store", empty, "--json").json
    assert again["changed"] is False
    assert rig.orc("store", "migrate", "--store", empty, "--json").json == again
    checked = rig.orc("store", "check", "--store", empty)
    assert (checked.code, checked.err) == (0, ""), checked
    assert "PostgreSQL" in checked.out
    assert rig.orc("status", "--store", empty).code == 0


def test_two_clones_share_runs_and_either_can_answer(rig: Rig, database: str) -> None:
    there = clone(rig, "other")
    env = {"ORC_STORE": database}
    rig.workflow(HUMAN)
    asked = rig.run("--run-id", "one", "--no-wait", env=env)
    assert asked.code == 4, asked
    assert not (rig.repo / ".git" / "orc" / "orc.db").exists(), "the repository's own store is not touched"
    (seen,) = there.orc("list", "--json", env=env).json["runs"]
    assert (seen["run_id"], seen["status"]) == ("one", "waiting")
    refused = there.orc("resume", "one", env=env)
    assert refused.code != 0
    assert str(rig.repo) in refused.err
    assert there.orc("approve", "one", env=env).code == 0
    assert rig.orc("resume", "one", env=env).code == 0
    assert there.orc("status", "one", "--json", env=env).json["status"] == "completed"
    assert rig.launches("coding") == ["one coding 0 1"]
    assert there.orc("list", "--json").json["runs"] == [], "without the store there is nothing"


def test_runs_stay_where_they_are_when_a_repository_gets_a_remote(rig: Rig, database: str) -> None:
    env = {"ORC_STORE": database}
    assert rig.orc("list", env=env).code == 0
    name = rig.repo / ".git" / "orc" / "repository"
    assert not name.exists(), "looking keeps no name"
    assert rig.run("--run-id", "one", env=env).code == 0
    before = name.read_text()
    assert before.endswith(f":{rig.repo}\n")
    there = clone(rig, "other")
    assert [run["run_id"] for run in rig.orc("list", "--json", env=env).json["runs"]] == ["one"]
    assert rig.run("--run-id", "two", env=env).code == 0
    assert name.read_text() == before
    bare = rig.repo.parent / "shop.git"
    said = " ".join(rig.orc("doctor", env=env).out.split())
    assert f"runs are kept under {before.strip()}, as the first one here was; other clones of {bare}" in said
    assert there.orc("list", "--json", env=env).json["runs"] == []
    named = {**env, "ORC_STORE_REPOSITORY": before.strip()}
    assert [run["run_id"] for run in there.orc("list", "--json", env=named).json["runs"]] == ["two", "one"]
    name.write_text("\x1b[2J")
    refused = rig.orc("list", env=env)
    assert refused.code == 2, refused
    assert f"The name in {name}" in refused.err


@OWN_STORE
def test_runs_are_copied_to_a_server_and_back(rig: Rig, database: str) -> None:
    (rig.side / "script.yaml").write_text(PRICED)
    rehearsed = ("--rehearse", str(rig.side / "script.yaml"))
    assert rig.orc(*RUN, "gone", *rehearsed).code == 0
    assert rig.orc("prune", "--older-than", "0", "--yes").code == 0
    assert rig.orc(*RUN, "done", *rehearsed).code == 0
    rig.workflow(HUMAN)
    assert rig.run("--run-id", "asks", "--no-wait").code == 4
    assert rig.orc("approve", "asks").code == 0, "an answer that waits in the inbox"
    before = {run: rig.orc("show", run, "--json").json for run in ("done", "asks")}
    spent = rig.orc("usage", "--json").json

    copied = rig.orc("store", "copy", database)
    assert (copied.code, copied.err) == (0, ""), copied
    assert "run asks: " in copied.out
    assert "kept here as asks~1, to read" in copied.out
    env = {"ORC_STORE": database}
    assert rig.orc("usage", "--json", env=env).json == spent
    assert rig.orc("show", "done", "--json", env=env).json == before["done"]
    refused = rig.orc("resume", "asks~1")
    assert refused.code != 0
    assert "it can be read, but not resumed" in refused.err

    again = rig.orc("store", "copy", database, "--json").json
    assert {one["run"]: one["was_there"] for one in again["runs"]}["done"] is True
    assert rig.orc("usage", "--json", env=env).json == spent, "copied again, it counts once"

    back = rig.orc("store", "copy", "sqlite", "--store", database)
    assert (back.code, back.err) == (0, ""), back
    assert rig.orc("resume", "asks").code == 0
    assert rig.orc("status", "asks", "--json").json["status"] == "completed"
    assert rig.launches("coding") == ["asks coding 0 1"], "nothing ran twice"


def test_a_copy_that_is_killed_is_repeated_and_goes_on(rig: Rig, database: str) -> None:
    (rig.side / "script.yaml").write_text(PRICED)
    for name in ("one", "two", "three"):
        assert rig.orc(*RUN, name, "--rehearse", str(rig.side / "script.yaml")).code == 0
    spent = rig.orc("usage", "--json").json
    running = rig.start("store", "copy", database)
    running.wait_for("run one: ")
    running.signal(signal.SIGKILL)
    running.end()
    done = rig.orc("store", "copy", database, "--json").json
    assert [one["run"] for one in done["runs"]] == ["one", "two", "three"]
    assert done["runs"][0]["was_there"] is True
    env = {"ORC_STORE": database}
    assert rig.orc("usage", "--json", env=env).json == spent
    assert rig.orc("store", "check", "--json", env=env).json["faults"] == []


def test_a_run_that_is_at_work_is_not_copied(rig: Rig, database: str) -> None:
    rig.play({"planning": {"until": "go"}})
    running = rig.start_run("--run-id", "one")
    wait_until(lambda: bool(rig.launches("planning")))
    refused = rig.orc("store", "copy", database)
    assert refused.code == 3
    assert "Run one is already running in another process" in refused.err
    rig.open("go")
    assert running.end().code == 0


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://127.0.0.1:{free}/orc", "Connection refused"),
        ("postgresql://orc@127.0.0.1:{port}/nowhere", 'database "nowhere" does not exist'),
        ("postgresql://guarded@127.0.0.1:{port}/postgres", "password"),
        ("postgresql://nobody@127.0.0.1:{port}/postgres", 'role "nobody" does not exist'),
        ("postgresql://?service=nowhere", "nowhere"),
    ],
)
def test_a_store_that_cannot_be_had_is_one_sentence(rig: Rig, url: str, says: str) -> None:
    named = url.format(free=find_free_port(), port=shared_server().port)
    for command in (
        ("status",),
        ("store", "init"),
        ("store", "check"),
        ("run", "--workflow", "workflow.yaml", "--wrapper", str(rig.side / "wrapper.py")),
    ):
        told = rig.ask(*command, "--store", named)
        assert told.code in (2, 3), told
        assert told.out == ""
        assert told.err.startswith("orc: ")
        assert told.err.count("\n") == 1, told
        assert says in told.err, told
    assert rig.launches() == []


def test_a_password_comes_from_the_environment_and_is_never_shown(rig: Rig, database: str) -> None:
    plain = database.replace("orc@", f"{GUARDED_USER}@")
    assert rig.orc("status", "--store", plain, env={"PGPASSWORD": GUARDED_PASSWORD}).code == 0
    wrong = rig.orc("status", "--store", plain, env={"PGPASSWORD": "wrong-horse-battery"})
    assert wrong.code == 3
    assert "horse" not in wrong.err
    secret = database.replace("orc@", f"{GUARDED_USER}:{GUARDED_PASSWORD}@")
    env = {"ORC_STORE": secret}
    done = rig.run("--run-id", "one", env=env)
    assert done.code == 0, done
    for command in (("config", "show"), ("doctor",), ("history", "one", "--json"), ("store", "check")):
        told = rig.orc(*command, env=env)
        assert told.code in (0, 3), told
        assert GUARDED_PASSWORD not in told.out + told.err, told
    assert not [path for path in Path(rig.repo).rglob("*") if path.is_file() and GUARDED_PASSWORD.encode() in path.read_bytes()]
