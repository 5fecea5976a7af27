"""The words, files and commands of a system, as plain data: known to everybody without loading it.

No msgspec here: `orc --help` reads these tables and must stay instant.
"""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """A command of a system at the top of `orc`."""

    name: str
    help: str
    """The first sentence of its own help; a test keeps them equal."""
    module: str = "group"
    """Its file in `surfaces/cli/<system>/`."""
    after: str = ""
    """The command that it follows in `orc --help`; without one it stands at the top."""


class Schema(NamedTuple):
    """A JSON Schema that `orc schema` prints."""

    name: str
    file: str
    """In `systems/<system>/schema/`."""
    describes: str


class SourceFile(NamedTuple):
    """A kind of file that runs are made of, and that `orc validate` checks."""

    kind: str
    suffix: str = ""
    """The end of its name; without one, it is any file that no other system takes."""


class ForeignState(NamedTuple):
    """State files that other tools leave, and that a run can be made of."""

    path: str
    """Below a home; `*` stands for the name of a run, or of what a file is about."""
    command: str
    """The command that imports it; `{folder}` stands for the folder of the file that was found."""
    named_by_run: bool = False
    """True if `*` stands for a run's id, by which ours are told from others."""


class About(NamedTuple):
    """A system in words and file names. Everything has a default that fits a run which is resumed with `orc resume`."""

    name: str
    state_file: str
    """The path at which a run's state file is printed below its home; `{run}` stands for its id."""
    commands: tuple[Command, ...]
    noun: str = "run"
    """The name of a run."""
    unit: str = "step"
    """The name of what a run counts."""
    iterates: bool = False
    """A run is one unit that works again and again: its total is a bound, and it has no units to show apart."""
    resume: str = "orc resume"
    """The command that goes on with a run."""
    explain: str = "orc show"
    """The command that shows why a run failed."""
    retry: str = "orc resume"
    """The command that tries a failed run again."""
    raise_limit: str = ""
    """The option that `retry` needs after a run has reached its limit."""
    answer: str = ""
    """The command that answers a question in words; its closing lines then say how each question is answered."""
    own_tree: str = ""
    """The advice that gives a new run a working tree of its own."""
    shares_tree: bool = False
    """Runs of it share a working tree: it sees itself that their units do not meet."""
    source: SourceFile | None = None
    """The file that a run is made of, if it is made of one."""
    importable: tuple[str, ...] = ()
    """The names of state files that `orc import` makes a run of."""
    foreign: tuple[ForeignState, ...] = ()
    """The state files of other tools that `orc status` points out as long as no run is made of them."""
    resume_imported: str = ""
    """The command that goes on with an imported run, if it is another than `resume`; `{run}` stands for its id."""
    schemas: tuple[Schema, ...] = ()
