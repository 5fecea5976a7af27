"""Teams of one repository: started one at a time, found again, asked and told."""

from __future__ import annotations

import msgspec

from agent_orchestrator.api.alone import alone
from agent_orchestrator.api.orchestrator import Orchestrator
from agent_orchestrator.api.places import claim
from agent_orchestrator.core.budget import Limits
from agent_orchestrator.core.system import Context
from agent_orchestrator.engine.ownership import Ownership
from agent_orchestrator.errors import Refused
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems.team import TEAM, TeamSpec
from agent_orchestrator.systems.team.spec import session_id


class StartedTeam(msgspec.Struct, frozen=True, kw_only=True):
    """A team that exists, owned by this process."""

    run: StoredRun
    owner: Ownership


def start_team(
    orchestrator: Orchestrator, spec: TeamSpec, *, pass_env: tuple[str, ...] = (), limits: Limits | None = None
) -> StartedTeam:
    """Creates a team; raises Refused while another one of the repository is unfinished."""
    home = orchestrator.settings.home
    with alone(orchestrator.settings.folder, "teams"):
        now_us = orchestrator.clock.now_us()
        run = _free(orchestrator, session_id(now_us))
        claim(orchestrator, TEAM.name, run)
        context = Context(run=run, home=str(home), workdir=str(home), created_us=now_us, pass_env=pass_env)
        owner = orchestrator.own(run)
        try:
            name = " ".join(spec.requirements.split())[:80]
            stored = orchestrator.create(TEAM, spec, name, context, limits=limits)
        except BaseException:
            owner.release()
            raise
    return StartedTeam(run=stored, owner=owner)


def _free(orchestrator: Orchestrator, wanted: str) -> str:
    """The session id, or the next one when somebody began in the same second."""
    launches = orchestrator.settings.folder / "launches"
    known = {run.id for run in orchestrator.runs()}
    run, number = wanted, 1
    while run in known or (launches / run).exists():
        number += 1
        run = f"{wanted}_{number}"
    return run


def find_team(orchestrator: Orchestrator, given: str | None) -> StoredRun:
    """The team that is meant; left out, the one that is unfinished, else the newest."""
    if given is not None:
        run = orchestrator.find(given)
        if run.system != TEAM.name:
            raise Refused(why=f"Run {run.id} is no team but a {run.system}; `orc status {run.id}` shows it.")
        return run
    teams = [run for run in orchestrator.runs() if run.system == TEAM.name]
    unfinished = [run for run in teams if not run.summary.ended]
    if not teams:
        raise Refused(why=f"There is no team in {orchestrator.settings.home}; `orc team run` starts one.")
    return (unfinished or teams)[0]
