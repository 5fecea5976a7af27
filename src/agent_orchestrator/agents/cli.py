"""What the adapters of coding-agent CLIs share: a prompt on standard input, JSON lines back, and one way to judge.

Success is never one signal: exit code, terminal event, error flag, denials and report must agree. An adapter adds how
its CLI is started and what its lines mean.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from agent_orchestrator.agents.adapter import Ending, Plan, Task, Verdict
from agent_orchestrator.agents.classify import BAD_START, is_unpaid, kind_of
from agent_orchestrator.agents.credentials import Vendor, names_of, names_to_pass
from agent_orchestrator.agents.environment import build_environment
from agent_orchestrator.agents.judging import failed_exit, read_report_file, verdict_of
from agent_orchestrator.agents.meter import StreamMeter
from agent_orchestrator.agents.options import BASICS, AgentSettings, settings_of
from agent_orchestrator.agents.output import plain, read_ends, read_last_line
from agent_orchestrator.agents.stream import (
    Denied,
    Ended,
    ResultWatch,
    StreamEvent,
    Transcript,
    decode_line,
    json_lines,
    read_transcript,
)
from agent_orchestrator.agents.structured import ask_for_report, tell_of_report, unfold
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


class CliAgent:
    """An adapter of a CLI; subclasses fill in the class variables, `argv` and `read`."""

    name: ClassVar[str]
    appends_feedback = True
    understood: ClassVar[frozenset[str]]
    """The settings that this CLI has a flag for."""
    structured: ClassVar[bool] = False
    """Whether it can be made to answer with a report by schema; if not, the prompt asks for the report file."""
    cumulative: ClassVar[bool] = False
    """Whether its usage counts everything since the session began."""
    dead_session: ClassVar[str] = ""
    """What it says on its error output when the session to go on with is gone."""
    abilities: ClassVar[frozenset[str]] = frozenset({"session", "tokens"})
    """It keeps sessions to go on with and says its tokens. Some say their `cost`; none lets its `temperature` be set."""
    idle_timeout_s: ClassVar[float] = CLI_IDLE_S
    """How long it may be silent where nobody has said."""
    chatter: ClassVar[re.Pattern[str] | None] = None
    """How lines of its error output begin that say nothing to a person."""
    defaults: ClassVar[dict[str, str]] = {}
    """Environment variables that it gets unless they are set otherwise."""
    modes: ClassVar[tuple[str, ...]]
    """What `permission_mode` may say; the first is what it gets where nobody says."""
    login: ClassVar[str]
    """What a person does so that it may ask its model."""

    def vendor(self, choice: AgentChoice) -> Vendor:
        """Whose variables it logs in with."""
        raise AssertionError("each CLI has its vendor")

    def credentials(
        self, choice: AgentChoice, asked: tuple[str, ...], see: Callable[[tuple[str, ...]], Mapping[str, str]]
    ) -> tuple[str, ...]:
        """Names of variables that it gets besides those `asked` for: `see` reads the environment, by name."""
        if choice.options.get("pass_credentials") is False:
            return ()
        vendor, own = self.vendor(choice), choice.options.get("env") or {}
        return names_to_pass(vendor, (*asked, *own), {**see(names_of(vendor)), **own})

    def argv(self, task: Task, settings: AgentSettings) -> Iterable[str]:
        """The arguments after the program."""
        raise AssertionError("each CLI has its own flags")

    def environment(self, task: Task, settings: AgentSettings) -> dict[str, str]:
        """What it is told by variables, unless they are set otherwise."""
        return {}

    def read(self, document: dict[str, Any]) -> Iterable[StreamEvent]:
        """What one line of its stream means."""
        raise AssertionError("each CLI has its own events")

    def unstarted(self, exit_code: int, err: str) -> FailureKind | None:
        """What an end without a terminal event means, where this CLI says it in its own way."""
        return None

    def transcript(self, ending: Ending) -> Transcript:
        """Everything that it said."""
        return read_transcript(ending.out, self.read)

    def ended(self, seen: Transcript) -> Ended | None:
        """How it ended by its own account."""
        return seen.end

    def preflight(self, choice: AgentChoice) -> None:
        """The settings must be understood and the program be there; who knows the working tree looks for one that is in it."""
        program = settings_of(choice, self.understood).binary or self.name
        if "/" not in program:
            if shutil.which(program) is None:
                raise AgentMissing(agent=choice.name, why=f"{program} was not found on the PATH; install it or set `binary`")
        elif Path(program).is_absolute() and (not Path(program).is_file() or not os.access(program, os.X_OK)):
            raise AgentMissing(agent=choice.name, why=f"{program} is not an executable file")

    def ask_for_report(self, task: Task) -> str:
        """In the words of the form; where there is no schema, by file and with an example."""
        return tell_of_report(task) if self.structured else ask_for_report(task, self.report_file(task))

    def plan(self, task: Task) -> Plan:
        """The CLI with its flags, the prompt on its standard input."""
        settings = settings_of(task.effect.agent, self.understood)
        own = {**self.defaults, **self.environment(task, settings)}
        env = {**own, **build_environment(task), **settings.env, **task.effect.env}
        words = (settings.binary or self.name, *self.argv(task, settings))
        return Plan(argv=words, env=env, stdin=self._input(task))

    def finished(self, task: Task, out: Path) -> ResultWatch:
        """Looks for the terminal event while it runs."""
        return ResultWatch(out, self.read)

    def meter(self, task: Task, out: Path, err: Path) -> StreamMeter:
        """Reads what each call took; a total over a session comes only at the end and says nothing of a call."""
        return StreamMeter(out, json_lines(self.read), task.effect.agent, totals=not self.cumulative)

    def report_file(self, task: Task) -> Path:
        """Beside the run's artifacts where there is no schema: launches lie under `.git`, where some CLIs never write."""
        return task.report if self.structured else task.artifacts_dir / f"report-{task.effect.unit}-{task.launch_dir.name}.json"

    def judge(self, task: Task, ending: Ending) -> Verdict:
        """The verdict, with the session and what was consumed, however it ended."""
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

    def allowing(self, denied: Denied, settings: AgentSettings) -> str:
        """The options of a command line that would have allowed it; empty where none would."""
        return ""

    def _denial(self, denied: Denied, settings: AgentSettings) -> Denial:
        asked = _short(denied.asked or denied.why)
        return Denial(tool=denied.tool, asked=asked, allow=self.allowing(denied, settings))

    def _verdict(self, task: Task, ending: Ending, seen: Transcript, settings: AgentSettings) -> Verdict:
        end = self.ended(seen)
        if ending.cause is not None:
            return Verdict(failure=ending.cause)
        if end is None:
            failure = self._without_end(task, ending, seen)
            return Verdict(failure=self._logged_out(task, failure, settings) if failure.kind is FailureKind.AUTH else failure)
        if not end.ok:
            if end.reason == "budget" and task.budget_usd is not None:
                return Verdict(failure=Failure(kind=FailureKind.BUDGET, message=_short(end.message)))
            return Verdict(failure=self._lost_session(task, end.message) or self._refused(task, end, seen, settings))
        if not ending.after_result and ending.exit_code != 0:
            return Verdict(failure=failed_exit(ending.exit_code, read_last_line(ending.err, self.chatter)))
        if seen.denials and settings.denials == "fail":
            message = f'The agent was refused {_tools(seen)}; denials = "fail" in [agents.{task.effect.agent.name}]'
            return Verdict(failure=Failure(kind=FailureKind.DENIED, message=message))
        verdict = self._reported(task, end)
        if seen.unwritten and verdict.failure is None:
            tried = say_count(len(seen.unwritten), "change")
            why = f"The agent says that it is done, and every change of a file that it tried failed ({tried})"
            failure = Failure(kind=FailureKind.UNWRITTEN, message=why + self.unwritable(task))
            return Verdict(failure=failure, report=verdict.report)
        return verdict

    def unwritable(self, task: Task) -> str:
        """What may be the matter where it can write no file."""
        return ""

    def _reported(self, task: Task, end: Ended) -> Verdict:
        """By the report: in the result, else where the agent was asked to write it. The launch keeps it in its own place."""
        rule, asked = task.effect.report, self.report_file(task)
        answer = end.report
        raw = msgspec.json.encode({**rule.ids, **unfold(answer, task.form)}) if answer is not None else read_report_file(asked)
        if raw is None and asked != task.report:
            asked, raw = task.report, read_report_file(task.report)
        verdict = verdict_of(0, raw, rule, where="its result" if end.report is not None else str(self.report_file(task)))
        if self.structured and raw is None and verdict.failure is None:
            message = f"The agent ended without the report that its schema asks for: {_short(end.message)}"
            return Verdict(failure=Failure(kind=FailureKind.REPORT_MISSING, message=message))
        if verdict.report is not None and isinstance(raw, bytes) and (end.report is not None or asked != task.report):
            _keep(task.report, raw)
        return verdict

    def _without_end(self, task: Task, ending: Ending, seen: Transcript) -> Failure:
        """No terminal event: killed, started wrongly, or broken; the error output says which."""
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
        kind, wrong = self.unstarted(code, err), BAD_START.search(err)
        if kind is None and seen.session is None and wrong is not None:
            kind, last = FailureKind.LAUNCH, _line_at(err, wrong.start())
        failure = failed_exit(code, last or _short(_last_words(seen, Verdict())))
        return failure if kind is None else msgspec.structs.replace(failure, kind=kind)

    def _refused(self, task: Task, end: Ended, seen: Transcript, settings: AgentSettings) -> Failure:
        failure = _refusal(end, seen)
        unknown = failure.kind is FailureKind.AUTH and end.status in (None, UNAUTHORIZED) and not is_unpaid(end.message)
        return self._logged_out(task, failure, settings) if unknown else failure

    def _logged_out(self, task: Task, failure: Failure, settings: AgentSettings) -> Failure:
        """What to do about a login that is missing or was refused."""
        vendor = self.vendor(task.effect.agent)
        env = {**task.inherited_env, **settings.env, **task.effect.env}
        given = [name for name in (*vendor.keys, *vendor.clouds) if env.get(name)]
        if given:
            return msgspec.structs.replace(failure, message=f"{failure.message} (it was given {', '.join(given)})")
        off = "" if settings.pass_credentials else f"; pass_credentials is off in [agents.{task.effect.agent.name}]"
        message = f"{self.name} is not logged in: {self.how_to_log_in(task.effect.agent)}{off}. It said: {failure.message}"
        return msgspec.structs.replace(failure, message=message)

    def how_to_log_in(self, choice: AgentChoice) -> str:
        """What a person does so that it may ask its model."""
        return self.login

    def _lost_session(self, task: Task, said: str) -> Failure | None:
        if task.effect.session is None or not self.dead_session or self.dead_session not in said:
            return None
        message = f"The session {task.effect.session} is gone; the attempt goes on in a fresh one"
        return Failure(kind=FailureKind.SESSION_LOST, message=message)

    def _input(self, task: Task) -> Path:
        """The prompt; one that goes on with a session is told so first."""
        if task.effect.session is None:
            return task.prompt
        file = task.launch_dir / "input.md"
        file.write_text(GO_ON + task.prompt.read_text("utf-8"), "utf-8")
        return file


def allow_tool(rule: str) -> str:
    """The option that allows a tool, as it is typed."""
    return f"--allow-tool {shlex.quote(rule)}"


def outside(task: Task) -> list[str]:
    """Folders that the agent may need beside the working tree."""
    folder = task.artifacts_dir
    return [] if folder.is_relative_to(task.workdir) else [str(folder)]


def _keep(file: Path, raw: bytes) -> None:
    """Whatever the agent put there goes first: it may be a link to somewhere else."""
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644), "wb") as kept:
        kept.write(raw)


def _refusal(end: Ended, seen: Transcript) -> Failure:
    """A terminal event that says no."""
    kind = _BY_REASON.get(end.reason) or kind_of(end.status, end.message)
    if seen.limit is not None and kind in (FailureKind.EXIT, FailureKind.OVERLOADED):
        kind = FailureKind.RATE_LIMITED
    limited = kind is FailureKind.RATE_LIMITED and seen.limit is not None
    message = _short(end.message) or "The agent ended with an error and gave no reason"
    if not limited or seen.limit is None:
        return Failure(kind=kind, message=message)
    return Failure(kind=kind, message=message, retry_at_us=seen.limit.retry_at_us, window=seen.limit.window)


def _usage(seen: Transcript, task: Task) -> Usage:
    usage = seen.usage or Usage()
    model = usage.model or seen.model or task.effect.agent.model
    return msgspec.structs.replace(usage, model=model, session=seen.session)


def _last_words(seen: Transcript, verdict: Verdict) -> str:
    """What it said last; where that was nothing but its report, or nothing at all, the report's summary."""
    if seen.text.strip() and decode_line(seen.text.encode()) is None:
        return seen.text
    return verdict.report.summary if verdict.report is not None else ""


def _distinct(seen: Transcript) -> list[Denied]:
    """What was refused, each once, however often it was tried."""
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
