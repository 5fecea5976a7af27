"""Runs that are handed to workers: what cannot be handed over is said in one sentence, and nothing is left behind."""

from __future__ import annotations

import os

import psycopg

from agent_orchestrator.engine.leases import this_worker
from agent_orchestrator.store.postgres.cluster import Cluster
from tests.cluster.rig import Farm
from tests.unit.git.test_repository import git


def queue(farm: Farm, *more: str) -> tuple[int, str]:
    """Ask for a run by workers; return the exit code and what was said."""
    words = ("run", "--workflow", "workflow.yaml", "--agent-command", "true", "--queue")
    done = farm.orc(*words, *more)
    return done.code, done.err + done.out


def test_a_pool_that_nobody_serves_is_said_and_the_run_waits(farm: Farm) -> None:
    code, said = queue(farm, "--pool", "gpu", "--priority", "5")
    assert code == 0
    assert "no worker serves pool gpu now; the run waits until `orc worker --pool gpu` does." in said
    assert farm.ask_store("workers", "--json").json == {
        "workers": [],
        "queues": [{"pool": "gpu", "queued": 1, "driven": 0, "resting": 0}],
        "limits": {},
        "accounts": {},
        "placing": "table",
    }
    assert "gpu: 1 queued" in farm.ask_store("workers").out
    run = farm.ask_store("list", "--json").json["runs"][0]["run_id"]
    assert f"refs/orc/runs/{run}/start" in git(farm.bare, "for-each-ref")
    assert "waits for a worker" in farm.ask_store("list").out
    aborted = farm.ask_store("abort", run)
    assert "the next worker that takes it up does so" in aborted.out


def test_what_is_not_committed_is_said_and_a_file_that_no_worker_would_have_is_refused(farm: Farm) -> None:
    (farm.repo / "first.md").write_text("changed")
    code, said = queue(farm)
    assert code == 0
    assert "not committed, so no worker gets it: first.md." in said
    (farm.repo / "new.yaml").write_text((farm.repo / "workflow.yaml").read_text())
    done = farm.orc("run", "--workflow", "new.yaml", "--agent-command", "true", "--queue")
    assert (done.code, done.out) == (2, "")
    assert "new.yaml does not exist; check the path. Note: not committed, so no worker gets it: first.md, new.yaml." in done.err
    unchecked = farm.orc("run", "a task", "--agent-command", "true", "--queue")
    assert (unchecked.code, f"none was recognised in {farm.repo};" in unchecked.err) == (2, True), unchecked
    assert len(farm.ask_store("list", "--json").json["runs"]) == 1


def test_without_a_shared_store_a_remote_or_a_commit_there_is_nothing_to_hand_over(farm: Farm) -> None:
    words = ("run", "--workflow", "workflow.yaml", "--agent-command", "true", "--queue")
    for command in (words, ("worker",), ("workers",)):
        alone = farm.ask(*command, "--store", "sqlite")
        assert alone.code == 2
        assert "give --store postgresql://HOST/DATABASE" in alone.err
    git(farm.repo, "remote", "set-url", "origin", "https://ada:secret-of-hers@example.org/thing.git")
    code, said = queue(farm)
    assert code == 2
    assert "let a credential helper know them" in said
    assert "secret-of-hers" not in said
    git(farm.repo, "remote", "set-url", "origin", str(farm.folder / "nowhere.git"))
    code, said = queue(farm)
    assert code == 3
    assert "nowhere.git" in said
    git(farm.repo, "remote", "remove", "origin")
    code, said = queue(farm)
    assert code == 3
    assert "has no remote" in said
    git(farm.repo, "update-ref", "-d", "HEAD")
    code, said = queue(farm)
    assert code == 2
    assert "commit first" in said
    assert farm.ask_store("list", "--json").json["runs"] == []


def test_options_that_do_not_go_together_are_said(farm: Farm) -> None:
    for more, text in (
        (("--detach",), "--detach is for one that is driven here"),
        (("--on-end", "true"), "--on-end is for one that is driven here"),
        (("--priority", "high"), "--priority is 'high': it must be a whole number"),
        (("--pool", "a/b"), "--pool 'a/b' is not a valid id"),
    ):
        code, said = queue(farm, *more)
        assert (code, text in said) == (2, True), said
    alone = farm.ask("run", "x", "--pool", "gpu", "--store", farm.url)
    assert (alone.code, "--pool goes with --queue" in alone.err) == (2, True)
    nobody = farm.ask_store("workers", "drain", "nobody")
    assert (nobody.code, "There is no worker nobody" in nobody.err) == (2, True)
    unnamed = farm.ask_store("workers", "drain")
    assert (unnamed.code, "Name the worker" in unnamed.err) == (2, True)


def test_a_worker_that_could_never_work_says_why(farm: Farm) -> None:
    for more, text in (
        (("--lease", "1s"), "--lease is '1s': it must be at least 3s"),
        (("--root", "homes"), "--root is 'homes': it must be an absolute path"),
        (("--capacity", "0"), "--capacity"),
        (("--once", "nope"), "There is no run 'nope' in the queue"),
        (("--root", "/proc/orc"), "cannot be written"),
    ):
        done = farm.orc("worker", "--root", str(farm.root), *more)
        assert done.code in (2, 3), done
        assert text in done.err, done
    farm.host("ada")
    second = farm.orc("worker", "--root", str(farm.root), "--name", "bob", "--root", str(farm.folder / "elsewhere"))
    assert (second.code, f"give --root {farm.root}" in second.err) == (2, True), second


def test_a_worker_whose_clock_is_off_is_refused(farm: Farm) -> None:
    name = farm.url.rpartition("/")[2]
    with psycopg.connect(farm.url, autocommit=True) as made:
        made.execute("CREATE SCHEMA ahead")
        made.execute(
            """CREATE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
            $$ SELECT pg_catalog.clock_timestamp() + interval '60 s' $$"""
        )
        made.execute(f"ALTER DATABASE {name} SET search_path = ahead, pg_catalog, public".encode())
    refused = farm.orc("worker", "--root", str(farm.root))
    assert refused.code == 3, refused
    assert "The clock of this host is -60 s off the store's; set it, then start the worker." in refused.err
    assert farm.workers() == []


def test_one_run_is_driven_by_a_worker_that_leaves_with_its_exit_code(farm: Farm) -> None:
    farm.host("ada", "--pool", "other")
    code, _ = queue(farm, "--pool", "other-pool")
    assert code == 0
    run = farm.ask_store("list", "--json").json["runs"][0]["run_id"]
    home = farm.ask_store("show", run, "--json").json["repo_dir"]
    root = home.split("/homes/")[0]
    done = farm.orc("worker", "--once", run, "--root", root, "--name", f"once-{os.getpid()}")
    assert done.code == 0, done
    assert f"run {run}: completed" in done.out


def test_a_run_gets_its_home_where_the_workers_that_live_keep_theirs(farm: Farm) -> None:
    gone = Cluster(farm.url)
    gone.leases.join(this_worker(name="zoe", pool="default", root="/elsewhere"), -60.0)
    gone.close()
    farm.host("ada")
    run = farm.submit()
    farm.wait_for_status(run, "completed")
    assert [line[:2] for line in farm.log()] == [[what, step] for step in ("first", "second") for what in ("start", "end")]
