"""Due times: when a cron expression comes round in a time zone, as Debian's cron sees it when clocks are changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from agent_orchestrator.core.units import US
from agent_orchestrator.errors import InvalidValue

FIELDS = 5
EXPECTED = 'minute, hour, day, month and weekday as cron reads them, such as "0 3 * * *" for 3:00 each day'


def check_cron(expression: str) -> str:
    """Return an expression with single spaces; raise InvalidValue for one that cron would not take, or that never comes round."""
    fields = expression.split()
    try:
        if len(fields) != FIELDS:
            raise CronSimError(EXPECTED)
        next(CronSim(" ".join(fields), datetime(2000, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration):
        raise InvalidValue(what="The times of a schedule", value=expression, expected=EXPECTED) from None
    return " ".join(fields)


def check_zone(name: str) -> str:
    """Return the name of a time zone; raise InvalidValue for one that this machine does not know."""
    try:
        return ZoneInfo(name).key
    except (OSError, ValueError, ZoneInfoNotFoundError):
        expected = "a time zone that this machine knows, as in Europe/Berlin or UTC"
        raise InvalidValue(what="--zone", value=name, expected=expected) from None


def find_next_us(cron: str, zone: str, after_us: int) -> int:
    """Return the first due time after a time."""
    return _to_us(next(CronSim(cron, _at(after_us, zone))))


def find_latest_us(cron: str, zone: str, now_us: int) -> int:
    """Return the last due time that has come."""
    return _to_us(next(CronSim(cron, _at(now_us, zone) + timedelta(seconds=1), reverse=True)))


def show_time(at_us: int, zone: str) -> str:
    """Return a time for people, in its zone."""
    return _at(at_us, zone).strftime("%Y-%m-%d %H:%M")


def name_due(schedule: str, due_us: int) -> str:
    """Return the id of the run of a due time: the same for whoever makes it."""
    return f"{schedule}-{_at(due_us, 'UTC').strftime('%Y%m%dT%H%MZ')}"


def _at(at_us: int, zone: str) -> datetime:
    return datetime.fromtimestamp(at_us // US, UTC).astimezone(ZoneInfo(zone))


def _to_us(at: datetime) -> int:
    return int(at.timestamp()) * US
