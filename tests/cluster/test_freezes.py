"""Workers that freeze, or are cut off, before or after they append, renew, claim, start or push: they change nothing any more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.relay import Fault, Relay
from tests.postgres.server import shared_server

FAULTS = {
    "frozen": [Fault("append/before", 2, "alone"), Fault("launch/before", 1, "alone"), Fault("claim/after", 1, "alone")],
    "frozen with its host": [
        Fault("append/before", 3, "whole"),
        Fault("push/before", 2, "whole"),
        Fault("lease/before", 1, "whole"),
    ],
    "cut off": [Fault("push/after", 1, "cut"), Fault("append/after", 2, "cut")],
}


@pytest.fixture
def relay(repo: Path) -> Iterator[Relay]:
    made = Relay(repo, shared_server())
    yield made
    made.close()


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
def test_whoever_comes_back_after_others_have_gone_on_appends_starts_and_pushes_nothing(
    relay: Relay, faults: list[Fault]
) -> None:
    assert relay.pass_on(faults) == len(faults)
