"""Workers tell subscribers of the runs that they drive: each message once, by its id, whichever host dies in between."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_orchestrator.store.postgres import install
from tests.acceptance.rig import WRAPPER, wait_until
from tests.cluster.rig import PATIENCE_S, Farm
from tests.notify.receiver import SECRET, Receiver
from tests.postgres.server import shared_server
from tests.unit.git.test_repository import git

ASKS = """
name: asks
steps:
  - {id: first, agent: worker, prompt: first.md}
  - {id: second, agent: worker, prompt: second.md, needs: [first], human_in_the_loop: true}
"""


class ToldFarm(Farm):
    """A farm whose workers have a configuration of their own."""

    def environment(self, more: object = None) -> dict[str, str]:
        home = {"HOME": str(self.folder / "person"), "XDG_CONFIG_HOME": "", "HOOK_SECRET": SECRET}
        return {**super().environment(), **home}

    def subscribe(self, receiver: Receiver) -> None:
        file = self.folder / "person" / ".config" / "orc" / "config.toml"
        file.parent.mkdir(parents=True)
        file.write_text(f'[[notify]]\nname = "hook"\nurl = "{receiver.url}"\nsecret_env = "HOOK_SECRET"\n')


@pytest.fixture
def told(repo: Path) -> Iterator[ToldFarm]:
    url = shared_server().make_database()
    install(url)
    made = ToldFarm(repo, url)
    try:
        yield made
    finally:
        made.close()


def test_the_end_of_a_queued_run_is_told_by_its_worker(told: ToldFarm) -> None:
    with Receiver() as receiver:
        told.subscribe(receiver)
        ada = told.host("ada")
        run = told.submit()
        told.wait_for_status(run, "completed")
        wait_until(lambda: bool(receiver.received), PATIENCE_S)
        said = receiver.received[0].verify()
        assert (said["type"], said["data"]["facts"][0]["run_id"]) == ("run.done", run)
        assert said["data"]["repository"] == "remote", "not the place that the worker keeps it at"
        ada.kill(signal.SIGTERM)
        assert ada.process.wait(60) == 0
        assert len(receiver.received) == 1


def test_a_message_that_a_killed_host_was_sending_is_told_by_the_next_one_under_its_id(told: ToldFarm) -> None:
    with Receiver() as receiver:
        receiver.holds.clear()
        told.subscribe(receiver)
        (told.repo / "workflow.yaml").write_text(ASKS)
        git(told.repo, "commit", "--quiet", "--all", "--message", "Ask")
        (told.side / "wrapper.py").write_text(WRAPPER)
        told.play({})
        ada = told.host("ada")
        run = told.run("--queue").run
        wait_until(lambda: bool(receiver.received), PATIENCE_S)
        ada.kill(signal.SIGKILL)
        receiver.holds.set()
        told.host("bob")
        assert told.ask_store("approve", run).code == 0
        told.wait_for_status(run, "completed")
        wait_until(lambda: any(one.json["type"] == "run.done" for one in receiver.received), PATIENCE_S)
        asked = [one for one in receiver.received if one.json["type"] == "run.person"]
        done = [one for one in receiver.received if one.json["type"] == "run.done"]
        assert (len({one.id for one in asked}), len({one.body for one in asked}), len(done)) == (1, 1, 1)


def test_of_several_hosts_one_tells_a_subscriber_and_everything_is_told_once(told: ToldFarm) -> None:
    with Receiver() as receiver:
        told.subscribe(receiver)
        hosts = [told.host(name, "--capacity", "2") for name in ("ada", "bob")]
        runs = {told.submit() for _ in range(4)}
        for run in runs:
            told.wait_for_status(run, "completed")

        def facts() -> list[str]:
            return [fact["run_id"] for one in receiver.received for fact in one.json["data"]["facts"]]

        wait_until(lambda: {*facts()} == runs, PATIENCE_S)
        for host in hosts:
            host.kill(signal.SIGTERM)
            assert host.process.wait(60) == 0
        assert sorted(facts()) == sorted(runs)
        assert len({one.id for one in receiver.received}) == len(receiver.received)
