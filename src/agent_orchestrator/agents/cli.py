"""The base of the adapters of coding-agent CLIs: a prompt on standard input, JSON lines back, and one way to judge.

Success is never one signal: exit code, terminal event, error flag, denials and report must agree. An adapter adds how
its CLI is started and what its lines mean.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec

from agent_orchestrator.agents.adapter import AgentTask, Ending, Invocation, Verdict
from agent_orchestrator.agents.credentials import Vendor, names_of, names_to_pass
from agent_orchestrator.agents.environment import build_environment
from agent_orchestrator.agents.events import Denied, Finished, StreamEvent, Transcript
from agent_orchestrator.agents.options import BASICS, AgentSettings, settings_of
from agent_orchestrator.agents.output import plain, read_ends, read_last_line
from agent_orchestrator.agents.refusal import BAD_START, classify, is_unpaid
from agent_orchestrator.agents.report import ask_for_report, tell_of_report, unfold
from agent_orchestrator.agents.stream import ResultWatch, StreamMeter, decode_line, json_lines, read_transcript, text_at
from agent_orchestrator.agents.verdict import failed_exit, judge_report, read_report_file
from agent_orchestrator.beneath import write_plainly
from agent_orchestrator.bounded import store_of
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.failure import Failure, FailureKind
from agent_orchestrator.core.inputs import Denial, Usage
from agent_orchestrator.core.limits import CLI_IDLE_S
from agent_orchestrator.core.text import clip_line
from agent_orchestrator.core.units import say_count, was_or_were
from agent_orchestrator.errors import AgentMissing

CLI = BASICS | {"binary", "args", "denials", "pass_credentials"}
"""Settings that every CLI understands."""

UNAUTHORIZED = 401

GO_ON = "You were stopped in the middle of this task. Go on from where you were; do not start over. The task was:\n\n"

_BY_REASON = {
    "limit": FailureKind.AGENT_LIMIT,
    "budget": FailureKind.AGENT_LIMIT,
    "report": FailureKind.REPORT_INVALID,
}


class StatePlace(NamedTuple):
    """A place where a CLI keeps something: below the folder that a variable names, else below the user's home."""

    variable: str
    below_home: str
    name: str = ""


class CliAgent:
    """An adapter of a CLI; subclasses fill in the class variables, `argv` and `read`."""

    name: ClassVar[str]
    appends_feedback = True
    understood: ClassVar[frozenset[str]]
    """The settings that this CLI has a flag for."""
    structured: ClassVar[bool] = False
    """True for a CLI that reports by a schema; if not, the prompt asks for the report file."""
    cumulative: ClassVar[bool] = False
    """True for a CLI whose usage counts everything since the session began."""
    dead_session: ClassVar[str] = ""
    """The words on its error output when the session to go on with is gone."""
    abilities: ClassVar[frozenset[str]] = frozenset({"session", "tokens"})
    """It keeps sessions to go on with and says its tokens. Some say their `cost`; none lets its `temperature` be set."""
    idle_timeout_s: ClassVar[float] = CLI_IDLE_S
    """The time that it may be silent unless a run says otherwise."""
    chatter: ClassVar[re.Pattern[str] | None] = None
    """The beginning of lines of its error output that say nothing to a person."""
    kinds: ClassVar[frozenset[str]]
    """The kinds of lines that its stream is known to have, as `kind_of` names them."""
    defaults: ClassVar[dict[str, str]] = {}
    """Environment variables that it gets unless they are set otherwise."""
    modes: ClassVar[tuple[str, ...]]
    """The values of `permission_mode`; the first is the default."""
    widest: ClassVar[str]
    """The one of them in which it asks for nothing: for use behind a wall."""
    state: ClassVar[tuple[StatePlace, ...]] = ()
    """The places of its login and its sessions."""
    login: ClassVar[str]
    """The way to log it in, as a sentence says it to a person."""
    logins: ClassVar[tuple[tuple[str, str, str], ...]] = ()
    """Files that it keeps its own login in: the variable that names their folder, that folder below HOME, and the name."""

    own_vendor: ClassVar[Vendor]
    """The vendor whose variables it logs in with."""

    def vendor(self, choice: AgentChoice) -> Vendor:
        """Return the vendor whose variables it logs in with."""
        return self.own_vendor

    def mode(self, settings: AgentSettings) -> str:
        """Return the permission mode, as set or as it is by default."""
        return settings.permission_mode or self.modes[0]

    def credentials(
        self, choice: AgentChoice, asked: tuple[str, ...], see: Callable[[tuple[str, ...]], Mapping[str, str]]
    ) -> tuple[str, ...]:
        """Return the names of variables that it gets besides those `asked` for: `see` reads the environment, by name."""
        if choice.options.get("pass_credentials") is False:
            return ()
        vendor, own = self.vendor(choice), choice.options.get("env") or {}
        return names_to_pass(vendor, (*asked, *own), {**see(names_of(vendor)), **own})

    def argv(self, task: AgentTask, settings: AgentSettings) -> Iterable[str]:
        """Return the arguments after the program."""
        raise AssertionError("each CLI has its own flags")

    def interactive(self, task: AgentTask, settings: AgentSettings) -> Iterable[str]:
        """Return the arguments with which a person goes on with the session of the task."""
        raise AssertionError("each CLI has its own flags")

    def environment(self, task: AgentTask, settings: AgentSettings) -> dict[str, str]:
        """Return variables that it gets for this task, unless they are set otherwise."""
        return {}

    def read(self, document: dict[str, Any]) -> Iterable[StreamEvent]:
        """Turn one line of its stream into events."""
        raise AssertionError("each CLI has its own events")

    def read_log(self, line: bytes) -> Iterable[StreamEvent]:
        """Turn one line of its error output into events, where that tells more than the stream."""
        return ()

    def opens(self, document: dict[str, Any]) -> bool:
        """Return True for a line by which a stream is known as this CLI's."""
        raise AssertionError("each CLI has its own first line")

    def kind_of(self, document: dict[str, Any]) -> str:
        """Name a line by its type."""
        return text_at(document, "type")

    def classify_exit(self, exit_code: int, err: str) -> FailureKind | None:
        """Classify an end without a terminal event, if this CLI has exit codes of its own for it."""
        return None

    def transcript(self, ending: Ending) -> Transcript:
        """Read its whole output."""
        return read_transcript(ending.out, self.read)

    def find_end(self, seen: Transcript) -> Finished | None:
        """Return the end by its own account."""
        return seen.end

    def preflight(self, choice: AgentChoice) -> None:
        """Check the settings and that the program is there; one inside the working tree is checked where the tree is known."""
        program = settings_of(choice, self.understood).binary or self.name
        if "/" not in program:
            if shutil.which(program) is None:
                raise AgentMissing(agent=choice.name, why=f"{program} was not found on the PATH; install it or set `binary`")
        elif Path(program).is_absolute() and (not Path(program).is_file() or not os.access(program, os.X_OK)):
            raise AgentMissing(agent=choice.name, why=f"{program} is not an executable file")

    def ask_for_report(self, task: AgentTask) -> str:
        """Ask by the form's own words; without a schema, by file and with an example."""
        return tell_of_report(task) if self.structured else ask_for_report(task, self.report_file(task))

    def plan(self, task: AgentTask) -> Invocation:
        """Return the CLI with its flags, the prompt on its standard input."""
        return self._plan(task, self.argv, self._input(task))

    def plan_takeover(self, task: AgentTask) -> Invocation:
        """Return the CLI as a person uses it, on the session of the task, with the same rules and environment."""
        return self._plan(task, self.interactive, None)

    def _plan(self, task: AgentTask, argv: Callable[..., Iterable[str]], stdin: Path | None) -> Invocation:
        settings = settings_of(task.effect.agent, self.understood)
        own = {**self.defaults, **self.environment(task, settings)}
        env = {**own, **build_environment(task), **settings.env, **task.effect.env}
        words = (settings.binary or self.name, *argv(task, settings))
        return Invocation(argv=words, env=env, stdin=stdin, keeps=tuple(self._keeps(env)))

    def _keeps(self, env: Mapping[str, str]) -> Iterator[Path]:
        for place in self.state:
            folder = env.get(place.variable) or (f"{env['HOME']}/{place.below_home}" if env.get("HOME") else "")
            if folder:
                yield Path(folder, place.name)

    def watch_result(self, task: AgentTask, out: Path) -> ResultWatch:
        """Look for the terminal event while it runs."""
        return ResultWatch(out, self.read)

    def meter(self, task: AgentTask, out: Path, err: Path) -> StreamMeter:
        """Read what each call took; a total over a session comes only at the end and says nothing of a call."""
        return StreamMeter(out, json_lines(self.read), task.effect.agent, totals=not self.cumulative)

    def report_file(self, task: AgentTask) -> Path:
        """Return a file among the artifacts if there is no schema: launches lie under `.git`, where some CLIs never write."""
        return task.report if self.structured else task.artifacts_dir / f"report-{task.effect.unit}-{task.launch_dir.name}.json"

    def judge(self, task: AgentTask, ending: Ending) -> Verdict:
        """Judge the end, with the session and what was consumed, however it ended."""
        settings = settings_of(task.effect.agent, self.understood)
        seen = self.transcript(ending)
        verdict = self._verdict(task, ending, seen, settings)
        warnings = [*verdict.warnings]
        if seen.skipped:
            lines = say_count(seen.skipped, "line")
            warnings.append(f"{lines} of the agent's stream {was_or_were(seen.skipped)} too long to be read.")
        warnings += [f"The agent says: {_short(note)}" for note in seen.notes]
        if seen.denials and verdict.failure is None:
            warnings.append(f"The agent was refused {_tools(seen)}.")
        denials = tuple(self._denial(one, settings) for one in _distinct(seen))
        if ending.after_result:
            warnings.append("The agent did not exit after its result and was stopped.")
        usage = _usage(seen, task) if seen.session is not None or seen.usage is not None else None
        verdict = msgspec.structs.replace(verdict, said=_last_words(seen, verdict))
        if verdict.failure is not None and verdict.failure.kind is FailureKind.SESSION_LOST:
            return verdict
        return msgspec.structs.replace(
            verdict,
            session=seen.session,
            usage=usage,
            cumulative=self.cumulative and seen.total is not None,
            warnings=tuple(warnings),
            denials=denials,
        )

    def suggest_flags(self, denied: Denied, settings: AgentSettings) -> str:
        """Return the flags of orc that would have allowed it; empty where none would."""
        return ""

    def _denial(self, denied: Denied, settings: AgentSettings) -> Denial:
        asked = _short(denied.asked or denied.why)
        return Denial(tool=denied.tool, asked=asked, allow=self.suggest_flags(denied, settings))

    def _verdict(self, task: AgentTask, ending: Ending, seen: Transcript, settings: AgentSettings) -> Verdict:
        end = self.find_end(seen)
        if ending.cause is not None:
            return Verdict(failure=ending.cause)
        if end is None:
            failure = self._without_end(task, ending, seen)
            return Verdict(failure=self._explain_login(task, failure, settings) if failure.kind is FailureKind.AUTH else failure)
        if not end.ok:
            if end.reason == "budget" and task.budget_usd is not None:
                return Verdict(failure=Failure(kind=FailureKind.BUDGET, message=_short(end.message)))
            return Verdict(failure=self._lost_session(task, end.message) or self._explain_refusal(task, end, seen, settings))
        if not ending.after_result and ending.exit_code != 0:
            return Verdict(failure=failed_exit(ending.exit_code, read_last_line(ending.err, self.chatter)))
        if seen.denials and settings.denials == "fail":
            message = f'The agent was refused {_tools(seen)}; denials = "fail" in [agents.{task.effect.agent.name}]'
            return Verdict(failure=Failure(kind=FailureKind.DENIED, message=message))
        verdict = self._judge_answer(task, end)
        if seen.unwritten and verdict.failure is None:
            tried = say_count(len(seen.unwritten), "change")
            why = f"The agent says that it is done, and every change of a file that it tried failed ({tried})"
            failure = Failure(kind=FailureKind.UNWRITTEN, message=why + self.explain_unwritten(task))
            return Verdict(failure=failure, report=verdict.report)
        return verdict

    def explain_unwritten(self, task: AgentTask) -> str:
        """Say what may be the matter if it could write no file."""
        return ""

    def _judge_answer(self, task: AgentTask, end: Finished) -> Verdict:
        """Judge the report: in the result, else where the agent was asked to write it. The launch keeps it in its own place."""
        rule, asked = task.effect.report, self.report_file(task)
        answer = end.report
        raw = msgspec.json.encode({**rule.ids, **unfold(answer, task.form)}) if answer is not None else read_report_file(asked)
        if raw is None and asked != task.report:
            asked, raw = task.report, read_report_file(task.report)
        verdict = judge_report(0, raw, rule, where="its result" if end.report is not None else str(self.report_file(task)))
        if self.structured and raw is None and verdict.failure is None:
            message = f"The agent ended without the report that its schema asks for: {_short(end.message)}"
            return Verdict(failure=Failure(kind=FailureKind.REPORT_MISSING, message=message))
        if verdict.report is not None and isinstance(raw, bytes) and (end.report is not None or asked != task.report):
            _keep(task.report, raw)
        return verdict

    def _without_end(self, task: AgentTask, ending: Ending, seen: Transcript) -> Failure:
        """Classify an end without a terminal event: killed, started wrongly, or broken; the error output says which."""
        err, last = plain(read_ends(ending.err)), read_last_line(ending.err, self.chatter)
        code = ending.exit_code
        if code is None or code in (126, 127):
            return failed_exit(code, last)
        if code == 0 and seen.denials:
            return Failure(kind=FailureKind.DENIED, message=f"The agent gave up when it was refused {_tools(seen)}")
        if code == 0:
            return Failure(kind=FailureKind.EXIT, message=f"Agent process exited with code 0 but without a result{_after(last)}")
        if lost := self._lost_session(task, err):
            return lost
        kind, wrong = self.classify_exit(code, err), BAD_START.search(err)
        if kind is None and seen.session is None and wrong is not None:
            kind, last = FailureKind.LAUNCH, _line_at(err, wrong.start())
        failure = failed_exit(code, last or _short(_last_words(seen, Verdict())))
        return failure if kind is None else msgspec.structs.replace(failure, kind=kind)

    def _explain_refusal(self, task: AgentTask, end: Finished, seen: Transcript, settings: AgentSettings) -> Failure:
        failure = _failure_at(end, seen)
        unknown = failure.kind is FailureKind.AUTH and end.status in (None, UNAUTHORIZED) and not is_unpaid(end.message)
        return self._explain_login(task, failure, settings) if unknown else failure

    def _explain_login(self, task: AgentTask, failure: Failure, settings: AgentSettings) -> Failure:
        """Add to the failure what to do about a login that is missing or was refused."""
        vendor = self.vendor(task.effect.agent)
        env = {**task.inherited_env, **settings.env, **task.effect.env}
        given = [name for name in (*vendor.keys, *vendor.clouds) if env.get(name)]
        if given:
            return msgspec.structs.replace(failure, message=f"{failure.message} (it was given {', '.join(given)})")
        off = "" if settings.pass_credentials else f"; pass_credentials is off in [agents.{task.effect.agent.name}]"
        message = f"{self.name} is not logged in: {self.how_to_log_in(task.effect.agent)}{off}. It said: {failure.message}"
        return msgspec.structs.replace(failure, message=message)

    def how_to_log_in(self, choice: AgentChoice) -> str:
        """Say how a person logs it in."""
        return self.login

    def _lost_session(self, task: AgentTask, said: str) -> Failure | None:
        if task.effect.session is None or not self.dead_session or self.dead_session not in said:
            return None
        message = f"The session {task.effect.session} is gone; the attempt continues in a fresh one"
        return Failure(kind=FailureKind.SESSION_LOST, message=message)

    def _input(self, task: AgentTask) -> Path:
        """Return the prompt's file; a launch that goes on with a session is told so first."""
        if task.effect.session is None:
            return task.prompt
        file = task.launch_dir / "input.md"
        write_plainly(store_of(task.launch_dir), file, GO_ON.encode() + task.prompt.read_bytes())
        return file


def flag(name: str, value: str | int | None) -> tuple[str, ...]:
    """Return the words of a flag with its value; none where there is no value."""
    return () if value is None else (name, str(value))


def allow_tool(rule: str) -> str:
    """Return the option that allows a tool, as it is typed."""
    return f"--allow-tool {shlex.quote(rule)}"


def outside(task: AgentTask) -> list[str]:
    """Return the folders that the agent may need beside the working tree."""
    folder = task.artifacts_dir
    return [] if folder.is_relative_to(task.workdir) else [str(folder)]


def _keep(file: Path, raw: bytes) -> None:
    """Write the report in place of whatever the agent put there, which may be a link to somewhere else."""
    write_plainly(store_of(file.parent), file, raw)


def _failure_at(end: Finished, seen: Transcript) -> Failure:
    """Return the failure that a terminal event tells of."""
    kind = _BY_REASON.get(end.reason) or classify(end.status, end.message)
    if seen.limit is not None and kind in (FailureKind.EXIT, FailureKind.OVERLOADED):
        kind = FailureKind.RATE_LIMITED
    limited = kind is FailureKind.RATE_LIMITED and seen.limit is not None
    message = _short(end.message) or "The agent ended with an error and gave no reason"
    if not limited or seen.limit is None:
        return Failure(kind=kind, message=message)
    return Failure(kind=kind, message=message, retry_at_us=seen.limit.retry_at_us, window=seen.limit.window)


def _usage(seen: Transcript, task: AgentTask) -> Usage:
    usage = seen.usage or Usage()
    model = usage.model or seen.model or task.effect.agent.model
    return msgspec.structs.replace(usage, model=model, session=seen.session)


def _last_words(seen: Transcript, verdict: Verdict) -> str:
    """Return the last thing it said; if that was nothing but its report, or nothing at all, the report's summary."""
    if seen.text.strip() and decode_line(seen.text.encode()) is None:
        return seen.text
    return verdict.report.summary if verdict.report is not None else ""


def _distinct(seen: Transcript) -> list[Denied]:
    """Return the refusals, each once, however often it was tried."""
    return list({(one.tool, one.asked or one.why): one for one in seen.denials.values()}.values())


def _tools(seen: Transcript) -> str:
    names = ", ".join(list(dict.fromkeys(one.tool for one in seen.denials.values()))[:5])
    why = next((one.asked or one.why for one in seen.denials.values() if one.asked or one.why), "")
    return f"the tool {names}" + (f" ({_short(why)})" if why else "")


def _line_at(text: str, place: int) -> str:
    line = _short(text[text.rfind("\n", 0, place) + 1 :].partition("\n")[0])
    return "it was called with arguments that it does not know" if line.lower().startswith(("usage", "positionals")) else line


def _after(last: str) -> str:
    return f": {last}" if last else ""


def _short(text: str) -> str:
    return clip_line(plain(text))
