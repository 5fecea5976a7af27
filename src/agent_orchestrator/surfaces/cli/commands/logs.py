"""`orc logs`: what a step's programs wrote, also while they write."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from agent_orchestrator.errors import Refused, UnknownUnit
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator, pick, run_argument, step_argument

if TYPE_CHECKING:
    from agent_orchestrator.surfaces.cli.follow import Follower

EXAMPLE = """
orc logs f8c1 coding
orc logs f8c1 coding --err --attempt 1
orc logs f8c1 -f
"""

JSON_TAIL_BYTES = 1024 * 1024
_LAUNCH = re.compile(r"i(\d+)\.a(\d+)\.l(\d+)\.(\w+)\Z")


@make_command("logs", EXAMPLE)
@run_argument()
@step_argument()
@click.option("--follow", "-f", is_flag=True, help="Go on printing until the run ends.")
@click.option("--err", is_flag=True, help="The error output instead of the output.")
@click.option("--attempt", metavar="N", help="Of this attempt; the newest without it.")
def command(
    run: str | None, step: str | None, repo: str | None, as_json: bool, follow: bool, err: bool, attempt: str | None
) -> int:
    """Print what a step's agent wrote.

    Without STEP, of every step, in the order they started. The newest attempt of each, unless --attempt names one.
    """
    from agent_orchestrator.core.units import read_count
    from agent_orchestrator.surfaces.cli.follow import Follower
    from agent_orchestrator.surfaces.cli.screen import print_json, warn

    wanted = read_count(attempt, "--attempt") if attempt is not None else None
    with open_orchestrator(repo) as orchestrator:
        found = pick(orchestrator, run)
        follower = Follower(orchestrator, found)
        if step is not None and step not in follower.state.steps:
            raise UnknownUnit(run=found.id, unit=step, known=", ".join(list(follower.state.steps)[:20]))
        root = orchestrator.settings.folder / "launches"
        if as_json:
            print_json({"run_id": found.id, "launches": [_facts(root, one) for one in _launches(follower, step, wanted)]})
            return 0
        printer = _Printer(root, "err" if err else "out", headed=step is None)
        printed = _print_all(printer, follower, step, wanted, follow=follow)
        if not printed:
            what = f"step {step!r}" if step is not None else "it"
            raise Refused(why=f"Run {found.id} has no output of {what} yet.")
        if not printer.wrote and not err:
            warn(f"nothing was written to the output; the error output: orc logs {found.id} {step or ''} --err")
    return 0


def _print_all(printer: _Printer, follower: Follower, step: str | None, wanted: int | None, *, follow: bool) -> bool:
    from agent_orchestrator.surfaces.cli.follow import pause

    seen: dict[str, None] = {}
    while True:
        over = follower.is_over() or not follow
        newest = _launches(follower, step, wanted)
        seen.update(dict.fromkeys(launch["effect"] for launch in newest))
        for effect in seen:
            printer.print_new(effect)
        if over:
            return bool(seen)
        pause()
        follower.read()


def _launches(follower: Follower, step: str | None, wanted: int | None) -> list[dict[str, Any]]:
    """The launches that are meant, in the order they started."""
    chosen: list[dict[str, Any]] = []
    details = follower.system.details(follower.state)["steps"]
    for unit in details if step is None else [step]:
        launches = [(launch, _LAUNCH.search(launch["effect"])) for launch in details[unit]["launches"]]
        named = [(launch, match) for launch, match in launches if match is not None]
        if wanted is not None:
            named = [(launch, match) for launch, match in named if int(match[2]) == wanted]
        if named:
            last = named[-1][1]
            chosen += [launch for launch, match in named if (match[1], match[2]) == (last[1], last[2])]
    return sorted(chosen, key=lambda launch: (launch["started_us"], launch["effect"]))


def _folder(root: Path, effect: str) -> Path:
    return root.joinpath(*effect.split("/"))


def _facts(root: Path, launch: dict[str, Any]) -> dict[str, Any]:
    _, unit, name = launch["effect"].split("/")
    match = _LAUNCH.search(name)
    assert match is not None
    folder = _folder(root, launch["effect"])
    texts = {stream: _tail(folder / stream) for stream in ("out", "err")}
    numbers = {"iteration": int(match[1]), "attempt": int(match[2]), "launch": int(match[3]), "kind": match[4]}
    return {**launch, "step": unit, **numbers, "folder": str(folder), **texts}


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - JSON_TAIL_BYTES))
            return file.read(JSON_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


class _Printer:
    """Copies launches' files to the output, each from where it stopped."""

    def __init__(self, root: Path, stream: str, *, headed: bool) -> None:
        self._root, self._stream, self._headed = root, stream, headed
        self._positions: dict[str, int] = {}
        self._current = ""
        self.wrote = False

    def print_new(self, effect: str) -> None:
        """What was written since the last call."""
        try:
            file: BinaryIO = (_folder(self._root, effect) / self._stream).open("rb")
        except OSError:
            return
        with file:
            file.seek(self._positions.get(effect, 0))
            while block := file.read(64 * 1024):
                self._head(effect)
                sys.stdout.buffer.write(block)
                self.wrote = True
            self._positions[effect] = file.tell()
        sys.stdout.flush()

    def _head(self, effect: str) -> None:
        if self._headed and effect != self._current:
            _, unit, name = effect.split("/")
            sys.stdout.write(f"{chr(10) if self._current else ''}==> {unit} {name} <==\n")
            sys.stdout.flush()
        self._current = effect
