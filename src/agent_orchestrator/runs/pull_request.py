"""Opens a pull request for the work of a run: its branch pushed, its text with evidence and cost, once however often asked.

The verb itself is the consent to publish. The order is push, look, create, journal: whoever is killed in between leaves
something that the next call finds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from agent_orchestrator.core.inputs import Publish
from agent_orchestrator.core.units import say_cost, say_count, say_duration
from agent_orchestrator.errors import GitFailed, Refused, Shortage, Unavailable
from agent_orchestrator.git.command import hold_lock
from agent_orchestrator.git.diffs import list_changed
from agent_orchestrator.git.forge import CommitStatus, Forge, NewPullRequest
from agent_orchestrator.git.remotes import push_branch
from agent_orchestrator.git.results import commit_left
from agent_orchestrator.git.snapshots import find_commit, find_snapshot
from agent_orchestrator.runs.brought import bring_run
from agent_orchestrator.runs.changes import ChangeSize, find_difference
from agent_orchestrator.runs.details import show_facts
from agent_orchestrator.runs.directives import new_id
from agent_orchestrator.runs.interrupted import finish_interrupted
from agent_orchestrator.runs.remote import find_forge, pick_remote
from agent_orchestrator.runs.secrets import make_redactor
from agent_orchestrator.runs.stop import direct
from agent_orchestrator.runs.works import make_wanted, pick_works, target_of

if TYPE_CHECKING:
    from agent_orchestrator.engine.journal import Folded
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.runs.work import Work
    from agent_orchestrator.store.port import StoredRun

FILES_SHOWN = 30
TITLE_CHARS = 120
STATUSES_MAX = 20
DESCRIPTION_CHARS = 140
"""As much as the server takes."""


class PullRequestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a pull request, as given."""

    unit: str | None = None
    base: str | None = None
    title: str | None = None
    draft: bool = False
    remote: str | None = None
    upstream: str | None = None


class PublishedWork(msgspec.Struct, frozen=True, kw_only=True):
    """A work and its pull request."""

    unit: str
    branch: str
    base: str
    url: str
    made: bool
    """False where there was one already."""
    statuses: int = 0
    """The checks that the server shows at the pushed commit."""
    note: str = ""
    """The reason why it shows none."""


def publish_works(orchestrator: Orchestrator, run: StoredRun, options: PullRequestOptions) -> list[PublishedWork]:
    """Push what is meant of a run and open its pull requests; raises Refused without a branch, Unavailable where it fails."""
    orchestrator, run = bring_run(orchestrator, run)
    orchestrator.refuse_kept(run)
    orchestrator.sign(run, Publish(id=new_id(), branch="", url=""))  # an agent that publishes decides for a person
    run = finish_interrupted(orchestrator, run)
    folded = orchestrator.fold(run)
    works = [one for one in pick_works(orchestrator, run, options.unit, folded) if one.branch]
    if not works:
        raise Refused(why=f"Run {run.id} made its changes in your own checkout: commit them on a branch and push that.")
    for one in works:
        make_wanted(one, folded.state.doing.finish)
    ready = [one for one in works if not one.unready and find_commit(Path(one.repo), f"refs/heads/{one.branch}") is not None]
    if not ready:
        why = works[0].unready or f"its branch {works[0].branch} is gone; it was merged or discarded"
        raise Refused(why=f"Nothing of run {run.id} can be published: {why}.")
    return [_publish(orchestrator, run, work, options, folded) for work in ready]


def mark_of(run: str, unit: str) -> str:
    """Return the mark that makes a pull request ours."""
    return f"<!-- orc:run={run}{f' unit={unit}' if unit else ''} -->"


def _publish(
    orchestrator: Orchestrator, run: StoredRun, work: Work, options: PullRequestOptions, folded: Folded
) -> PublishedWork:
    repo, environ = Path(work.repo), orchestrator.settings.environ
    base = options.base or target_of(work)
    remote = pick_remote(repo, options.remote)
    forge = find_forge(repo, remote, environ, pick_remote(repo, options.upstream or remote))
    mark = mark_of(run.id, work.unit)
    with hold_lock(repo, f"publishing~{run.id}"):
        commit_left(repo, work.branch)
        push_branch(repo, remote, work.branch, environ)
        known = forge.find(work.branch, mark)
        if known is not None and known.merged_at is not None:
            raise Refused(why=f"The pull request of {work.branch} is merged already: {known.html_url}")
        made = known is None or known.state != "open"
        if known is None or made:
            name = work.title or run.name
            named = make_redactor(orchestrator, run).redact_text(f"{work.unit}: {name}" if work.unit else name)
            title = (options.title or named).partition("\n")[0][:TITLE_CHARS]
            plan = run.context.pull_request
            closes = f"\nFixes #{plan.closes}\n" if plan is not None and plan.closes else ""
            body = f"{_body(orchestrator, run, work, folded)}\n{closes}{mark}\n"
            known = forge.create(NewPullRequest(title=title, head=work.branch, base=base, body=body, draft=options.draft))
    if folded.state.doing.finish.published.get(work.unit) != known.html_url:
        direct(orchestrator, run, Publish(id=new_id(), unit=work.unit, branch=work.branch, url=known.html_url))
    statuses, note = _show_checks(orchestrator, run, work, folded, forge)
    return PublishedWork(
        unit=work.unit, branch=work.branch, base=base, url=known.html_url, made=made, statuses=statuses, note=note
    )


def open_wanted(orchestrator: Orchestrator, run: StoredRun) -> None:
    """Open the pull request of a run that has just completed; a failure is said, and the run is complete all the same."""
    try:
        published = publish_works(orchestrator, run, PullRequestOptions())
    except (Refused, Unavailable, GitFailed, Shortage) as error:
        orchestrator.say(f"The pull request of run {run.id} is not opened: {error} Try again with: orc pr {run.id}")
        return
    for one in published:
        orchestrator.say(f"pull request: {one.url} ({one.branch} into {one.base})")
        if one.note:
            orchestrator.say(one.note)


def _show_checks(orchestrator: Orchestrator, run: StoredRun, work: Work, folded: Folded, forge: Forge) -> tuple[int, str]:
    """Have the server show what the checks said about exactly the commit that was pushed; they are no condition of anything.

    A check that looked at another tree says nothing about this one, and is left out.
    """
    repo, tip = Path(work.repo), find_commit(Path(work.repo), f"refs/heads/{work.branch}")
    if tip is None:
        return 0, ""
    tree, redactor = find_snapshot(repo, tip).tree, make_redactor(orchestrator, run)
    found = _newest_evidence(show_facts(orchestrator, run, folded)["details"], work.unit)
    shown = [(name, last) for name, last in found if last["tree"] == tree and not last["void"]][:STATUSES_MAX]
    try:
        for name, last in shown:
            state = "success" if last["exit_code"] == 0 else "failure"
            told = redactor.redact_text(f"{' '.join(last['command'].split())} {_verdict(last)}")
            forge.set_status(tip, CommitStatus(state=state, context=f"orc/{name}", description=told[:DESCRIPTION_CHARS]))
    except Unavailable as error:
        return 0, f"The checks could not be shown at the commit: {error}"
    return len(shown), ""


def _body(orchestrator: Orchestrator, run: StoredRun, work: Work, folded: Folded) -> str:
    """Write the text: what changed, what shows that it is good, what it cost. No word of an agent's stands in it."""
    files = list_changed(find_difference(orchestrator, run, work, folded))
    size = ChangeSize.of(files)
    lines = [f"{say_count(size.files, 'file')} changed, +{size.added} -{size.removed}.", ""]
    lines += [f"- `{one.path}` ({one.status})" for one in files[:FILES_SHOWN]]
    lines += [f"- and {len(files) - FILES_SHOWN} more"] if len(files) > FILES_SHOWN else []
    facts = show_facts(orchestrator, run, folded)
    lines += ["", "### Checks", "", *(_evidence(facts["details"], work.unit) or ["None was run."])]
    lines += ["", "### Cost", "", _cost(facts["usage"], work.unit)]
    lines += ["", f"Made by run `{run.id}` ({run.system}, {run.summary.status})."]
    return make_redactor(orchestrator, run).redact_text("\n".join(lines))


def _newest_evidence(details: dict[str, Any], unit: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the newest check of each unit that is meant."""
    steps = details.get("steps") or {}
    kept = {name: step.get("evidence") for name, step in steps.items() if isinstance(step, dict) and unit in ("", name)}
    return [(name, found[-1]) for name, found in kept.items() if found]


def _verdict(last: dict[str, Any]) -> str:
    said = "void" if last["void"] else "passed" if last["exit_code"] == 0 else f"failed with exit code {last['exit_code']}"
    return f"{said} in {say_duration(last['duration_s'])}"


def _evidence(details: dict[str, Any], unit: str) -> list[str]:
    """Say what the newest check of each unit showed."""
    found = _newest_evidence(details, unit)
    return [f"- {name}: `{' '.join(last['command'].split())}` {_verdict(last)}" for name, last in found]


def _cost(usage: list[dict[str, Any]], unit: str) -> str:
    rows = [row for row in usage if unit in ("", row["unit"])]
    costs = [row["usage"].get("cost_usd") for row in rows]
    known = [cost for cost in costs if cost is not None]
    cost = say_cost(sum(known) if known else None, partly=len(known) < len(costs))
    agents = ", ".join(dict.fromkeys(row["agent"] for row in rows))
    return f"{cost} in {say_count(len(rows), 'launch')}{f' of {agents}' if agents else ''}."
