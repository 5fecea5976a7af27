"""The process edge of `orc`: which commands there are, and how every error becomes one sentence and an exit code.

`orc --help` must stay instant: this module imports click and nothing else that costs; a command's file is imported
when the command is used.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys
from collections.abc import Sequence

import click

from agent_orchestrator.beneath import LinkInTheWay, NotRegular
from agent_orchestrator.core.ids import checked_text
from agent_orchestrator.core.text import clip_line
from agent_orchestrator.errors import InvalidSpec, OrcError, is_shortage
from agent_orchestrator.runs.exits import COMPLETED, ENVIRONMENT, EXIT_CODES, FAILED, INTERRUPTED, USAGE
from agent_orchestrator.surfaces.cli.groups import LazyGroup
from agent_orchestrator.systems import SYSTEMS, about
from agent_orchestrator.version import __version__

GENERAL = {
    "list": "List the runs of a repository.",
    "status": "Show all runs, or one run's steps.",
    "show": "Show everything known about a run or a step.",
    "logs": "Show what a step's agent said and did.",
    "watch": "Follow a run until it ends.",
    "web": "Show runs on a page in the browser.",
    "mcp": "Let a chat drive runs, as an MCP server.",
    "history": "Print a run's journal in words.",
    "diff": "Show the changes that a run made.",
    "open": "Open a shell in a run's working tree.",
    "merge": "Merge the work of a run, tested before it lands.",
    "pr": "Push the branch of a run and open a pull request.",
    "github": "Make runs of issues on GitHub, with your own `gh`.",
    "discard": "Discard the work of a run, kept under a ref.",
    "report": "Tell what happened while you were away.",
    "usage": "Show what agents consumed: tokens and cost.",
    "worker": "Take runs from a queue and drive them.",
    "workers": "List the workers of the store, drain one, or limit a repository.",
    "schedule": "Queue runs by the clock, for workers.",
    "pause": "Pause a run: nothing new starts.",
    "resume": "Continue a run.",
    "abort": "Stop a run for good.",
    "steer": "Tell a run's agents something.",
    "attach": "Take over an agent's session at your terminal.",
    "rewind": "Take a run back to an earlier point.",
    "fork": "Make a new run of an earlier point of a run.",
    "approve": "Approve the step that is waiting for approval.",
    "reject": "Reject the step that is waiting for approval.",
    "validate": "Check a workflow file, a task document or a state file.",
    "import": "Make a run of a state file without a journal.",
    "notify": "Show, test and send notifications.",
    "telemetry": "Export spans to a collector.",
    "config": "Show, check and trust the configuration.",
    "store": "Prepare, check, migrate and copy the store of runs.",
    "doctor": "Check this machine and the repository's store.",
    "schema": "Print a JSON Schema.",
    "prune": "Delete ended runs.",
    "help": "Show a page of the documentation, or the help of a command.",
    "version": "Print the version.",
    "completion": "Print a shell's completion script.",
}
"""The commands for runs of every system; a test keeps the one-line helps equal to the commands' own first sentences."""


def _all_commands() -> tuple[dict[str, str], dict[str, str]]:
    """Return every command in the order of `--help` with its one-line help, and the modules of those that systems have."""
    found = [(system, command) for system in SYSTEMS for command in about(system).commands]
    order = [*(command.name for _, command in found if not command.after), *GENERAL]
    for _, command in found:
        if command.after:
            order.insert(order.index(command.after) + 1, command.name)
    helps = GENERAL | {command.name: command.help for _, command in found}
    modules = {name: f"{name}.group" for name in ("config", "github", "notify", "schedule", "store", "telemetry")}
    modules |= {command.name: f"{system}.{command.module}" for system, command in found}
    return {name: helps[name] for name in order}, modules


COMMANDS, ELSEWHERE = _all_commands()

DISK_ERRORS = (errno.EIO, errno.EROFS, errno.ESTALE, errno.ENODEV)
"""Errors of the system that no path and no program of ours is to blame for."""

PATH_SHOWN_CHARS = 80
COLLECTED_AFTER = 10_000
"""New objects before the garbage collector looks: loading a command makes a few thousand, and hardly any is rubbish. An engine
that drives runs lets it look less often still."""

EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"orc {__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    helps=COMMANDS,
    folder="commands",
    elsewhere=ELSEWHERE,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Print the version.")
@click.pass_context
def orc(ctx: click.Context) -> None:
    """Run AI coding agents durably: every fact is journaled before anything acts on it.

    Start with `orc init`, then `orc run --workflow workflow.yaml …`; `orc COMMAND --help` has examples, `orc help` the
    documentation. `orc` alone shows what is running in this repository and what needs you.
    """
    if ctx.invoked_subcommand is None:
        from agent_orchestrator.surfaces.cli.home import show_home

        if not show_home():
            click.echo(ctx.get_help())


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code; nothing escapes from here."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None:  # in a process of its own
        gc.set_threshold(COLLECTED_AFTER, *gc.get_threshold()[1:])
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a name the terminal cannot show must not end a command
    code = _run(arguments)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # The reader has seen enough. What Python still holds back goes nowhere, quietly.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if argv is None:
        gc.freeze()  # the process ends now: the interpreter need not look through all that it is about to drop
    return code


def _open_streams() -> None:
    """Whoever starts us may close what we write to (`>&-`): it goes nowhere then, and no file of ours gets its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))


def _run(arguments: list[str]) -> int:
    wants_json = "--json" in arguments
    try:
        for given in arguments:
            checked_text(given, "An argument")
        code = orc.main(arguments, prog_name="orc", standalone_mode=False, obj=arguments)
    except OrcError as error:
        problems = error.problems if isinstance(error, InvalidSpec) else []
        found = [{"line": one.line, "column": one.column, "message": one.message} for one in problems]
        return _fail(str(error), error.exit_code, type(error).__name__, wants_json, {"problems": found} if found else {})
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx is not None else "orc"
        return _fail(f"{_sentence(error)} See `{path} --help`.", USAGE, "UsageError", wants_json)
    except click.ClickException as error:
        return _fail(_sentence(error), USAGE, "UsageError", wants_json)
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted", INTERRUPTED, "Interrupted", wants_json)
    except (BrokenPipeError, SystemExit):
        return COMPLETED  # the reader has seen enough, which click says by SystemExit
    except Exception as error:
        kind, text, code = _explain(error)
        return _fail(text, code, kind, wants_json) if text else _internal(error, wants_json)
    return code if isinstance(code, int) else 0


def _explain(error: Exception) -> tuple[str, str, int]:
    """Return what the system's error is called, what it means, and its exit code; no text for what is a bug of ours."""
    reason = error.errno if isinstance(error, OSError) else None
    if reason in (errno.ENOSPC, errno.EDQUOT):
        return "DiskFull", f"nothing more can be written: {os.strerror(reason)}; free some space.", ENVIRONMENT
    if isinstance(error, LinkInTheWay | NotRegular):
        return "Planted", f"{error.filename} is none of ours: {error.strerror}; remove it.", ENVIRONMENT
    if reason in DISK_ERRORS:
        return "DiskFailing", f"the disk failed: {error}; check it, then try again.", ENVIRONMENT
    if reason == errno.ENAMETOOLONG:
        return "UsageError", f"a path is too long: {clip_line(str(getattr(error, 'filename', '')), PATH_SHOWN_CHARS)}.", USAGE
    if is_shortage(error):
        return "Shortage", f"the machine is short of something: {error}; try again later.", ENVIRONMENT
    return "", "", FAILED


def _sentence(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption) and error.option_name.endswith(" "):
        return "A text that begins with '-' was taken for an option: give it last, after `--`."
    text = " ".join(error.format_message().split())
    return text if text.endswith((".", "?", "!")) else text + "."


def _internal(error: Exception, wants_json: bool) -> int:
    """A bug of ours: one sentence, and the traceback for those who ask."""
    try:
        from agent_orchestrator.config import is_debugging

        debugging = is_debugging()
    except Exception:  # an installation so broken that even this cannot be read
        debugging = False
    if debugging:
        raise error
    said = " ".join(str(error).split()) or "no more is known"
    text = f"internal error: {type(error).__name__}: {said}; run with ORC_DEBUG=1 for the traceback"
    return _fail(text, FAILED, "InternalError", wants_json)


def _fail(text: str, code: int, kind: str, wants_json: bool, more: dict[str, object] | None = None) -> int:
    with contextlib.suppress(OSError):
        for line in text.splitlines():
            sys.stderr.write(f"orc: {line}\n")
        if wants_json:
            import json

            error = {"kind": kind, "message": text, "exit_code": code, **(more or {})}
            sys.stdout.write(json.dumps({"error": error}, indent=2) + "\n")
    return code
