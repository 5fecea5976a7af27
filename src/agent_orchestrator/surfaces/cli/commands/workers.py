"""`orc workers`: who takes runs from queues, what each drives, and asking one to leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

if TYPE_CHECKING:
    from agent_orchestrator.store.postgres.cluster import Cluster, KnownAccount, KnownWorker, QueueLength

EXAMPLE = """
orc workers
orc workers --json
orc workers drain build-3
orc workers limit 3
orc workers limit 8 --account claude
"""

_LATER, _ANY = "; those at work go on, and others wait.", " as are wanted."


@make_command("workers", EXAMPLE)
@click.argument("action", required=False, type=click.Choice(["drain", "limit"]))
@click.argument("given", metavar="NAME|N", required=False)
@click.option("--account", metavar="NAME", help="With limit: agents of this account instead of runs of the repository.")
def command(repo: str | None, as_json: bool, action: str | None, given: str | None, account: str | None) -> int:
    """List the workers of the store, drain one, or limit a repository.

    Who and where they are, for how long their lease holds, and the runs that each drives; then the queues. `drain NAME` asks a
    worker to take nothing new and to leave when what it drives has ended or rests. `limit N` lets workers drive at most N runs of
    this repository at once, `limit none` as many as there is room for. With --account, at most N agents of an account work at
    once, on all hosts and for all repositories: an agent's configured `account`, else its adapter (`claude`), else its name.
    """
    from agent_orchestrator.runs.stores import require_shared
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    if action is not None and given is None:
        missing = "the worker to drain; `orc workers` lists them" if action == "drain" else "the number of runs, or none"
        raise click.UsageError(f"Name {missing}.")
    if account is not None and action != "limit":
        raise click.UsageError("--account goes with `orc workers limit N`.")
    with open_orchestrator(repo) as orchestrator:
        address = require_shared(orchestrator)
        from agent_orchestrator.store.postgres.cluster import Cluster

        cluster = Cluster(address.url)
        screen = Screen(orchestrator.settings.environ)
        try:
            said = _act(cluster, action, given, address.repository, account) if action is not None and given is not None else ""
            workers, queues, limits = cluster.list_workers(), cluster.list_queues(), cluster.list_limits()
            accounts = cluster.list_accounts()
            placing = cluster.read_placing()
        finally:
            cluster.close()
        if as_json:
            lengths = [queue._asdict() for queue in queues]
            known = {one.name: {"limit": one.limit, "working": one.working} for one in accounts}
            facts = {
                "workers": [worker_facts(one) for one in workers],
                "queues": lengths,
                "limits": limits,
                "accounts": known,
                "placing": placing,
            }
            print_json(facts)
            return 0
        for line in [said] if said else worker_lines(workers, queues, limits, accounts):
            screen.line(line)
        if not said and placing != "table":
            screen.line(f"runs are placed by {placing}")
    return 0


def _act(cluster: Cluster, action: str, given: str, repository: str, account: str | None) -> str:
    """Do what is asked, and return what is said about it."""
    from agent_orchestrator.core.units import read_count, say_count
    from agent_orchestrator.errors import UsageError

    if action == "limit":
        most = read_count(given, "The limit", minimum=0) if given != "none" else None
        if account is not None:
            cluster.limit_account(account, most)
            many = "as many agents" if most is None else f"at most {say_count(most, 'agent')}"
            return f"On all hosts together, {many} of account {account} work at once{_LATER if most is not None else _ANY}"
        cluster.limit(repository, most)
        if most is None:
            return f"Workers drive as many runs of {repository} at once as they have room for."
        return f"Workers drive at most {say_count(most, 'run')} of {repository} at once; those that are driven go on."
    if not cluster.drain(given, wanted=True):
        raise UsageError(detail=f"There is no worker {given}; `orc workers` lists them.")
    return f"Worker {given} takes nothing new, and leaves when what it drives has ended or rests."


def worker_facts(worker: KnownWorker) -> dict[str, Any]:
    """Return a worker as plain data."""
    facts = {**worker._asdict(), "lease_s": round(worker.lease_s, 1), "joined_s": round(worker.joined_s, 1)}
    pairs = [run.rpartition(" ") for run in worker.runs]
    return {
        **facts,
        "alive": worker.lease_s > 0,
        "runs": [{"repository": repository, "run": run} for repository, _, run in pairs],
    }


def worker_lines(
    workers: list[KnownWorker], queues: list[QueueLength], limits: dict[str, int], accounts: list[KnownAccount]
) -> list[str]:
    """Return the workers, the queues and the limits as lines."""
    from agent_orchestrator.core.units import say_duration
    from agent_orchestrator.surfaces.cli.screen import plain

    lines = []
    for one in workers:
        lease = (
            f"lease {say_duration(one.lease_s)}" if one.lease_s > 0 else f"silent, lease over for {say_duration(-one.lease_s)}"
        )
        pool = f"pool {one.pool}, {len(one.runs)} of {one.capacity}" if one.pool else "drives what was started with it"
        drains = ", draining" if one.drain else ""
        lines.append(plain(f"{one.name} on {one.host} (process {one.pid}): {pool}, {lease}{drains}"))
        lines += [plain(f"  {run.rpartition(' ')[2]}  {run.rpartition(' ')[0]}") for run in one.runs]
    for queue in queues:
        lines.append(plain(f"pool {queue.pool}: {queue.queued} queued, {queue.driven} driven, {queue.resting} at rest"))
    for one_account in accounts:
        most = f", at most {one_account.limit} at once" if one_account.limit is not None else ""
        lines.append(plain(f"account {one_account.name}: {one_account.working} at work{most}"))
    lines += [plain(f"repository {name}: at most {most} at once") for name, most in limits.items()]
    return lines or ["There are no workers and no queued runs; `orc worker` starts one, `orc run --queue` queues a run."]
