"""Due times, in zones whose clocks are put forward and back."""

from __future__ import annotations

from datetime import datetime

import pytest

from agent_orchestrator.cluster.cron import check_cron, check_zone, find_latest_us, find_next_us, name_due, show_time
from agent_orchestrator.core.units import US
from agent_orchestrator.errors import InvalidValue

BERLIN = "Europe/Berlin"


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * US


@pytest.mark.parametrize(
    ("cron", "zone", "now", "latest", "then"),
    [
        ("0 3 * * *", "UTC", "2026-11-17T02:59:59Z", "2026-11-16 03:00", "2026-11-17 03:00"),
        ("0 3 * * *", "UTC", "2026-11-17T03:00:00Z", "2026-11-17 03:00", "2026-11-18 03:00"),
        ("*/5 9-17 * * 1-5", BERLIN, "2026-11-13T18:00:00Z", "2026-11-13 17:55", "2026-11-16 09:00"),
        ("30 2 * * *", BERLIN, "2026-03-29T06:00:00Z", "2026-03-29 03:00", "2026-03-30 02:30"),  # 2:30 is skipped that night
        ("30 2 * * *", BERLIN, "2026-10-25T06:00:00Z", "2026-10-25 02:30", "2026-10-26 02:30"),  # and comes twice in this one
    ],
)
def test_a_due_time_is_found_before_and_after_a_moment(cron: str, zone: str, now: str, latest: str, then: str) -> None:
    assert show_time(find_latest_us(cron, zone, at(now)), zone) == latest
    assert show_time(find_next_us(cron, zone, at(now)), zone) == then


@pytest.mark.parametrize("cron", ["0 3 * * *", "*/7 * * * *", "30 2 * * *", "0 0 29 2 *", "15 */3 * * 1-5"])
@pytest.mark.parametrize("zone", ["UTC", BERLIN, "America/New_York"])
def test_going_forward_and_looking_back_meet_the_same_due_times(cron: str, zone: str) -> None:
    now = at("2026-03-28T12:00:00Z")
    for _ in range(50):
        due = find_next_us(cron, zone, now)
        assert due > now
        assert find_latest_us(cron, zone, due) == due == find_latest_us(cron, zone, due + 59 * US)
        now = due


def test_the_run_of_a_due_time_has_one_name_in_every_zone() -> None:
    assert name_due("nightly", at("2026-11-17T04:00:00+01:00")) == "nightly-20261117T0300Z"


@pytest.mark.parametrize("given", ["", "daily", "@daily", "0 3 * *", "0 3 * * * *", "61 * * * *", "0 0 30 2 *"])
def test_what_cron_would_not_take_or_never_comes_round_is_refused(given: str) -> None:
    with pytest.raises(InvalidValue, match="minute, hour, day, month and weekday"):
        check_cron(given)


def test_spaces_do_not_matter_and_zones_are_known() -> None:
    assert check_cron(" 0  3 * *\t* ") == "0 3 * * *"
    assert check_zone(BERLIN) == BERLIN
    for bad in ("", "Berlin", "../etc/passwd", "Europe"):
        with pytest.raises(InvalidValue, match="a time zone that this machine knows"):
            check_zone(bad)
