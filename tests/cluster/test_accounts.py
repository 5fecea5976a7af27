"""At most so many agents of an account work at once, on all hosts together; whoever dies gives its place back."""

from __future__ import annotations

import signal

from tests.acceptance.rig import wait_until
from tests.cluster.rig import PATIENCE_S, Farm


def most_at_once(farm: Farm) -> int:
    """Return the most agents that worked at the same time, as they say themselves."""
    now = most = 0
    for line in farm.log():
        now += 1 if line[0] == "start" else -1
        most = max(most, now)
    return most


def working(farm: Farm) -> dict[str, int]:
    found: dict[str, int] = farm.ask_store("workers", "--json").json["accounts"]["command"]
    return found


def test_agents_of_an_account_wait_for_those_of_other_hosts(farm: Farm) -> None:
    limited = farm.ask_store("workers", "limit", "1", "--account", "command")
    assert "at most 1 agent of account command work at once" in limited.out, limited
    ada, bob = (farm.host(name, "--capacity", "2") for name in ("ada", "bob"))
    farm.hold("first")
    runs = [farm.submit() for _ in range(3)]
    farm.wait_for("first")
    wait_until(
        lambda: sum("as many agents of account command" in farm.ask_store("show", run).out for run in runs) == 2, PATIENCE_S
    )
    assert working(farm) == {"limit": 1, "working": 1}
    assert "account command: 1 at work, at most 1 at once" in farm.ask_store("workers").out
    assert farm.ask_store("workers", "limit", "2", "--account", "command").code == 0
    farm.wait_for("first", 2)
    farm.let_go("first")
    for run in runs:
        farm.wait_for_status(run, "completed")
    assert most_at_once(farm) == 2
    assert [ada.process.poll(), bob.process.poll()] == [None, None]
    wait_until(lambda: working(farm) == {"limit": 2, "working": 0}, PATIENCE_S)
    assert farm.ask_store("workers", "limit", "none", "--account", "command").code == 0
    assert farm.ask_store("workers", "--json").json["accounts"] == {}


def test_the_places_of_a_host_that_dies_are_free_again(farm: Farm) -> None:
    assert farm.ask_store("workers", "limit", "1", "--account", "command").code == 0
    ada = farm.host("ada")
    farm.hold("first")
    lost = farm.submit()
    farm.wait_for("first")
    farm.host("bob", "--capacity", "2")
    other = farm.submit()
    ada.kill(signal.SIGKILL)
    farm.wait_for("first", 2)
    farm.let_go("first")
    for run in (lost, other):
        farm.wait_for_status(run, "completed")
    assert most_at_once(farm) == 1


def test_a_limit_of_an_account_that_is_not_meant_is_said(farm: Farm) -> None:
    for words, text in (
        (("drain", "ada", "--account", "claude"), "--account goes with `orc workers limit N`"),
        (("limit", "some", "--account", "claude"), "The limit is 'some'"),
    ):
        refused = farm.ask_store("workers", *words)
        assert (refused.code, text in refused.err) == (2, True), refused
