"""Schedules as people give and see them: made of a command line, as lines, as plain data, and changed by name."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from agent_orchestrator.cluster.cron import check_cron, check_zone, find_next_us, show_time
from agent_orchestrator.cluster.due import add_words, show_words
from agent_orchestrator.cluster.submission import find_url
from agent_orchestrator.config.store_address import StoreAddress
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.core.units import US
from agent_orchestrator.errors import Refused, UsageError
from agent_orchestrator.git.fences import RunRemote, find_head_branch, list_refs
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.stores import require_shared
from agent_orchestrator.store.postgres.cluster import Cluster
from agent_orchestrator.store.postgres.schedules import Schedule
from agent_orchestrator.surfaces.cli.options import open_orchestrator
from agent_orchestrator.surfaces.cli.queue import ALONE, read_queued
from agent_orchestrator.surfaces.cli.screen import Screen, plain, print_json

NAME_LENGTH_MAX = 60
OWN = ("run_id", "firing", "repo", "store", "as_json", "plan", *ALONE)
"""Options that a worker gives itself, or that are for somebody who looks."""


def make_schedule(
    orchestrator: Orchestrator,
    address: StoreAddress,
    name: str,
    times: tuple[str, str],
    words: Sequence[str],
    branch: str,
    overlap: str,
) -> Schedule:
    """Return a new schedule of a repository; raise a UsageError for what could never queue a run."""
    if len(checked_id(name, "The name of a schedule")) > NAME_LENGTH_MAX:
        raise UsageError(detail=f"The name of a schedule has at most {NAME_LENGTH_MAX} characters.")
    cron, zone = check_cron(times[0]), check_zone(times[1])
    filled, pool = read_words(words)
    top = top_level(orchestrator.settings.home)
    if top is None:
        raise Refused(why=f"Workers clone a repository, and {orchestrator.settings.home} is in none.")
    remote = RunRemote(where=top, url=find_url(top), environ=orchestrator.settings.environ)
    # Asked now, while somebody is there to read the answer.
    begins = branch or find_head_branch(remote)
    if not begins or not list_refs(remote, f"refs/heads/{begins}"):
        named = f"no branch {begins}" if begins else "no branch of its own"
        raise UsageError(
            detail=f"{remote.shown} has {named}, which runs would begin at; push one, or give another with --branch NAME."
        )
    here = Path.cwd().resolve()
    inside = here.is_relative_to(top.resolve())
    return Schedule(
        key=0,
        repository=address.repository,
        name=name,
        cron=cron,
        zone=zone,
        words=filled,
        remote=remote.url,
        branch=branch,
        folder=str(here.relative_to(top.resolve())) if inside else ".",
        pool=pool,
        overlap=overlap,
        paused=False,
        next_us=find_next_us(cron, zone, orchestrator.clock.now_us()),
        begun_us=None,
        last_us=None,
        last_run="",
        failure="",
    )


def read_words(words: Sequence[str]) -> tuple[list[str], str]:
    """Return the words of a command that queues a run, with room for what a worker adds, and its pool; raise a UsageError."""
    from agent_orchestrator.surfaces.cli.main import orc

    found: click.Command | None = orc
    path: list[str] = []
    rest = list(words[1:] if words[:1] == ("orc",) else words)
    while isinstance(found, click.Group) and rest:
        path.append(rest.pop(0))
        found = found.get_command(click.Context(found), path[-1])
    options = {option.name: option for option in found.params} if found is not None else {}
    if found is None or "queue" not in options or "run_id" not in options:
        raise UsageError(detail=f"`orc {' '.join(path)}` queues no run; a schedule gives a command that does, such as run.")
    with found.make_context(f"orc {' '.join(path)}", list(rest)) as given:
        for name in OWN:
            if name in options and given.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise UsageError(detail=f"{options[name].opts[0]} is not for the command of a schedule, which a worker gives.")
        pool = read_queued(given.params).pool
    return add_words(path, options["run_id"].opts[0], rest), pool


def change_schedule(repo: str | None, name: str, verb: str, *, as_json: bool) -> int:
    """Pause, resume or remove a schedule of the repository, and say how it stands."""
    with open_orchestrator(repo) as orchestrator:
        address = require_shared(orchestrator)
        cluster = Cluster(address.url)
        try:
            known = {one.name: one for one in cluster.schedules.list(address.repository)}
            if name not in known:
                raise UsageError(detail=f"{address.repository} has no schedule {name}; `orc schedule list` lists them.")
            if verb == "remove":
                cluster.schedules.remove(address.repository, name)
            else:
                next_us = find_next_us(known[name].cron, known[name].zone, cluster.read_clock_us())
                cluster.schedules.pause(address.repository, name, paused=verb == "pause", next_us=next_us)
            after = next((one for one in cluster.schedules.list(address.repository) if one.name == name), None)
        finally:
            cluster.close()
        if as_json:
            print_json({"schedule": schedule_facts(after) if after is not None else None})
            return 0
        screen = Screen(orchestrator.settings.environ)
        for line in schedule_lines(after) if after is not None else [f"{name} is removed; runs that it queued stay."]:
            screen.line(line)
    return 0


def schedule_facts(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as plain data."""
    one = schedule
    return {
        "name": one.name,
        "cron": one.cron,
        "zone": one.zone,
        "command": show_words(one.words),
        "branch": one.branch or None,
        "folder": one.folder,
        "pool": one.pool,
        "overlap": one.overlap,
        "paused": one.paused,
        "next": None if one.paused else _iso(one.next_us),
        "last": _iso(one.last_us) if one.last_us is not None else None,
        "last_run": one.last_run or None,
        "failure": one.failure or None,
    }


def _iso(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / US, UTC).isoformat().replace("+00:00", "Z")


def schedule_lines(schedule: Schedule) -> list[str]:
    """Return a schedule as lines."""
    one = schedule
    when = "paused" if one.paused else f"next {show_time(one.next_us, one.zone)}"
    last = f"; last {show_time(one.last_us, one.zone)}: {one.last_run or 'no run'}" if one.last_us is not None else ""
    branch = f" at {one.branch}" if one.branch else ""
    more = [f"orc {shlex.join(show_words(one.words))}{branch}", *([one.failure] if one.failure else [])]
    rule = f"{one.cron} ({one.zone}), overlap {one.overlap}"
    return [plain(f"{one.name}: {rule}, {when}{last}"), *(f"  {plain(line)}" for line in more)]
