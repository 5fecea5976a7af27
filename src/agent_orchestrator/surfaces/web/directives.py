"""Directives of the page: checked, and sent as the commands send them. The inbox, the finish verbs, and nothing else."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NoReturn

import msgspec
from msgspec import Meta

from agent_orchestrator import typed
from agent_orchestrator.core.inputs import Answer, Instruct, Resume, Steer
from agent_orchestrator.errors import Refused
from agent_orchestrator.runs.directives import Sent, refuse_second_answer, send_and_wait, send_judgement
from agent_orchestrator.runs.hooks import hooks_of
from agent_orchestrator.runs.intruders import refuse_launch
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.runs.stop import abort_run, pause_run
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.surfaces.web.answers import PageFault
from agent_orchestrator.surfaces.web.repositories import find_run

TEXT_CHARS_MAX = 100_000
LINES_MAX = 200

_ID = re.compile(r"[0-9a-f]{32}\Z")

Text = Annotated[str, Meta(max_length=TEXT_CHARS_MAX)]
Name = Annotated[str, Meta(max_length=1_000)]
Verb = Literal[
    "approve", "reject", "answer", "pause", "resume", "abort", "steer", "retry", "skip", "merge", "discard", "fork", "rewind"
]


class LineComment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A comment on a line of a diff."""

    file: Name
    line: int
    text: Text
    side: Literal["new", "old"] = "new"
    code: Text = ""
    """The line itself."""


class Seen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The things that a person saw when deciding."""

    effect: Name


class PageDirective(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A directive as the page sends it; each verb has fields of its own."""

    id: str
    directive: Verb
    unit: Name | None = None
    comments: Text = ""
    lines: Annotated[tuple[LineComment, ...], Meta(max_length=LINES_MAX)] = ()
    text: Text = ""
    reason: Text = ""
    now: bool = False
    into: Name | None = None
    check: Text | None = None
    no_check: bool = False
    at: Name | int | None = None
    to: Name | int | None = None
    run_id: Name | None = None
    expect: Seen | None = None


_decode = typed.decoder(PageDirective)


def read_directive(body: bytes) -> PageDirective:
    """Read what a page sent; raise a PageFault for anything that it cannot be."""
    try:
        said = _decode(body)
        said.text.encode(), said.comments.encode(), said.reason.encode()
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise PageFault(400, "invalid", f"The directive cannot be read: {error}.") from None
    if not _ID.match(said.id):
        raise PageFault(400, "invalid", "The directive's id is not 32 hexadecimal digits.")
    return said


def write_comments(said: PageDirective) -> str:
    """Return a rejection's words with the comments on lines, as an agent reads them."""
    parts = [said.comments.strip()] if said.comments.strip() else []
    for one in said.lines:
        side = " (as it was before)" if one.side == "old" else ""
        code = f"\n    {one.code.strip()}" if one.code.strip() else ""
        parts.append(f"{one.file}:{one.line}{side}:{code}\n  {one.text.strip()}")
    return "\n\n".join(parts)


class PageSent(msgspec.Struct, frozen=True, kw_only=True):
    """A directive that was sent, or has to be done by a job."""

    message: str
    sent: Sent | None = None
    job: tuple[str, ...] | None = None
    """The command line of `orc` that does it."""


def refuse_agent(orchestrator: Orchestrator, run_id: str, said: PageDirective, launch: str) -> NoReturn:
    """Raise FromLaunch for what an agent says through the page, journaled as if it had used a command."""
    run = find_run(orchestrator, run_id)
    directive: Answer | Instruct = Instruct(id=said.id, what=said.directive)
    if said.directive in ("approve", "reject"):
        directive = Answer(id=said.id, approved=said.directive == "approve", unit=said.unit)
    signed = orchestrator.stamp(directive)
    assert signed.who is not None
    who = msgspec.structs.replace(signed.who, launch=launch)
    refuse_launch(orchestrator, run, msgspec.structs.replace(signed, who=who))


def send(orchestrator: Orchestrator, run_id: str, said: PageDirective) -> PageSent:
    """Send a directive, or say which job does it; raise Refused."""
    run = find_run(orchestrator, run_id)
    orchestrator.refuse_kept(run, here=False)
    taken = orchestrator.store.posted(run.id, said.id)
    if taken is not None:
        sent = Sent(directive=said.id, taken=taken, owner=orchestrator.owner(run))
        return PageSent(sent=sent, message=f"Run {run.id}: that was sent before.")
    match said.directive:
        case "approve" | "reject" | "answer":
            return _answer(orchestrator, run, said)
        case "pause":
            sent = pause_run(orchestrator, run, said.reason or "asked to pause", now=said.now, directive_id=said.id)
            return PageSent(sent=sent, message=f"Run {run.id} pauses: nothing new starts.")
        case "abort":
            sent = abort_run(orchestrator, run, said.reason or "aborted by a person", said.id)
            return PageSent(sent=sent, message=f"Run {run.id} is aborted.")
        case "resume":
            return _resume(orchestrator, run, said)
        case "steer":
            sent = send_and_wait(orchestrator, run, Steer(id=said.id, text=said.text, unit=said.unit, now=said.now))
            return PageSent(sent=sent, message=f"Run {run.id}: {said.unit or 'every unit'} is told with its next prompt.")
        case "retry" | "skip":
            return _again(orchestrator, run, said)
        case _:
            return _finish(orchestrator, run, said)


def _resume(orchestrator: Orchestrator, run: StoredRun, said: PageDirective) -> PageSent:
    if orchestrator.owner(run) is not None:
        sent = send_and_wait(orchestrator, run, Resume(id=said.id))
        if sent.owner is not None:
            return PageSent(sent=sent, message=f"Run {run.id} continues.")
    # Nobody drives it, or whoever did had drained it and left before it read this.
    return PageSent(message=f"Run {run.id} is continued in the background.", job=_resume_job(orchestrator, run))


def _answer(orchestrator: Orchestrator, run: StoredRun, said: PageDirective) -> PageSent:
    if said.expect is None or not said.unit:
        raise PageFault(400, "invalid", "An answer names its unit, and the question that was seen as expect.effect.")
    asked: Any = said.expect.effect
    spoken = orchestrator.fold(run).state.doing.spoken.get(said.unit)
    if said.directive == "answer" and spoken is not None and spoken.effect == asked:
        sent = send_and_wait(orchestrator, run, Steer(id=said.id, text=said.text, unit=said.unit))
    elif said.directive == "answer":
        refuse_second_answer(orchestrator, run, said.unit)
        values = {"text": said.text, "unit": said.unit}
        sent = send_and_wait(orchestrator, run, Instruct(id=said.id, what="answer", values=values, asked=asked))
    else:
        approved = said.directive == "approve"
        comments = said.comments if approved else write_comments(said)
        words = Answer(id=said.id, approved=approved, unit=said.unit, comments=comments, asked=asked)
        sent = send_judgement(orchestrator, run, words)
    past = {"approve": "approved", "reject": "rejected", "answer": "answered"}[said.directive]
    told = f"Run {run.id}: {said.unit} is {past}."
    return PageSent(sent=sent, message=told if sent.owner is not None else f"{told} Nothing is running it now: resume it.")


def _again(orchestrator: Orchestrator, run: StoredRun, said: PageDirective) -> PageSent:
    if not said.unit:
        raise PageFault(400, "invalid", f"Name the unit to {said.directive}.")
    if said.directive == "skip":
        values = {"task": said.unit, "why": said.reason}
        sent = send_and_wait(orchestrator, run, Instruct(id=said.id, what="skip", values=values))
        return PageSent(sent=sent, message=f"Run {run.id}: {said.unit} is skipped.")
    driven = orchestrator.owner(run) is not None
    directive = hooks_of(run.system).retry(run, said.unit, said.id)
    told = send_and_wait(orchestrator, run, directive) if directive is not None else None
    if directive is None and driven:
        raise Refused(why=f"Run {run.id} is running: it tries failed units again by itself, as often as it may.")
    job = None if driven else _resume_job(orchestrator, run)
    return PageSent(sent=told, message=f"Run {run.id} tries {said.unit} again.", job=job)


def _finish(orchestrator: Orchestrator, run: StoredRun, said: PageDirective) -> PageSent:
    """Return the command line of a verb that takes its time; what a person wrote can be no option of it."""
    unit = (said.unit,) if said.unit else ()
    match said.directive:
        case "merge":
            options = [f"--into={said.into}"] if said.into else []
            options += [f"--check={said.check}"] if said.check else []
            options += ["--no-check"] if said.no_check else []
            return PageSent(message=f"Run {run.id} is being merged.", job=_orc(orchestrator, run, "merge", *options, units=unit))
        case "discard":
            return PageSent(message=f"The work of run {run.id} is being discarded.", job=_orc(orchestrator, run, "discard"))
        case "fork":
            options = [f"--at={_point(said.at)}", *([f"--run-id={said.run_id}"] if said.run_id else [])]
            return PageSent(message=f"Run {run.id} is being forked.", job=_orc(orchestrator, run, "fork", *options))
        case _:
            options = [f"--to={_point(said.to)}", *(["--now"] if said.now else [])]
            return PageSent(message=f"Run {run.id} goes back.", job=_orc(orchestrator, run, "rewind", *options))


def _point(given: str | int | None) -> str:
    if given is None or given == "":
        raise PageFault(400, "invalid", "Name the point: a row of the journal, or one of its names.")
    return str(given)


def _resume_job(orchestrator: Orchestrator, run: StoredRun) -> tuple[str, ...]:
    """Return the command line that goes on with a run: here, or by a worker where it is theirs."""
    return _orc(orchestrator, run, "resume", "--queue" if run.context.remote else "--detach")


def _orc(orchestrator: Orchestrator, run: StoredRun, verb: str, *options: str, units: tuple[str, ...] = ()) -> tuple[str, ...]:
    home = (
        orchestrator.settings.home if run.context.remote else run.context.home
    )  # The home of workers' runs is on no host of ours.
    return (verb, "--json", f"--repo={home}", *options, "--", run.id, *units)
