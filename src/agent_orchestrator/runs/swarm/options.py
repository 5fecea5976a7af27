"""Turns the options of `orc swarm dispatch` and `orc swarm run` into beads that can be started.

Everything that could never work is refused here, before a run exists: an unknown agent, a bad number, a repository that is
not there, a template with a hole in it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import msgspec

from agent_orchestrator.agents.options import AgentSettings, resolve_agent
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.core.limits import OUTPUT_LIMIT_BYTES
from agent_orchestrator.core.units import read_count, read_duration_s
from agent_orchestrator.errors import InvalidSpec, InvalidValue, MissingPath, Problem, Unavailable, UsageError
from agent_orchestrator.git.branches import find_branch
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.git.snapshots import find_head
from agent_orchestrator.runs.choices import (
    NOBODY,
    AgentOptions,
    check_agent,
    choose_stand_in,
    read_agent,
    read_env,
    read_idle_s,
    read_pairs,
    stand_in,
)
from agent_orchestrator.runs.inputs import read_given_count, read_text
from agent_orchestrator.runs.start import Prepared
from agent_orchestrator.runs.swarm.templates import Template, fill, read_template, unused
from agent_orchestrator.systems.swarm.spec import MAX_ATTEMPTS, TIMEOUT_S, BeadSpec, SwarmSpec
from agent_orchestrator.systems.swarm.tasks import TaskLine, parse

_BRANCH = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock(?:/|\Z)|/\.))[A-Za-z0-9_][A-Za-z0-9_./+@=-]*(?<![./])\Z")

HELD_SHOWN = 10
MIB = 1024 * 1024
PROBLEMS_MAX = 20
"""Faults of a file that are told at once: one on the command line may be in every line."""


class BeadOptions(AgentOptions, frozen=True, kw_only=True):
    """The options that `orc swarm dispatch` and `orc swarm run` share, as given: None means not given."""

    system: ClassVar[str] = "swarm"
    repo: str | None = None
    branch: str | None = None
    prefix: str | None = None
    """Of the branches that beads get which name none."""
    template: str | None = None
    verify: str | None = None
    timeout: str | None = None
    max_retries: str | int | None = None
    variables: tuple[str, ...] = ()
    """K=V"""
    max_agents: str | int | None = None
    stop_after_failures: str | int | None = None
    output_limit: str | int | None = None
    """In MiB."""
    tmux: bool = False
    bd_close: bool = False
    bd_close_epics: bool = False


class DispatchOptions(BeadOptions, frozen=True, kw_only=True):
    """The options of `orc swarm dispatch`, as given: None means not given."""

    bead: str
    prompt: str


class SwarmOptions(BeadOptions, frozen=True, kw_only=True):
    """The options of `orc swarm run`, as given: None means not given."""

    file: str


def prepare_bead(options: DispatchOptions, home: Path, configured: Mapping[str, AgentSettings] = NOBODY) -> Prepared[SwarmSpec]:
    """Return the specification of a dispatch, which has one bead."""
    checked_id(options.bead, "The bead")
    if not options.prompt.strip():
        raise UsageError(detail="The prompt is empty: say what is to be done.")
    made = _Maker(options, home, configured).make(TaskLine(id=options.bead, prompt=options.prompt))
    options.permissions.check((made.agent,))
    return Prepared(spec=msgspec.structs.replace(_make_spec(options), beads=(made,)))


def prepare_file(
    options: SwarmOptions, home: Path, now_us: int, configured: Mapping[str, AgentSettings] = NOBODY
) -> Prepared[SwarmSpec]:
    """Return the specification of the beads of a file of tasks, or of a tracker's export, and say which are held back."""
    spec, file = _make_spec(options), Path(options.file).expanduser()
    parsed = parse(read_text(file, "The file"), str(file), now_us)
    maker = _Maker(options, home, configured)
    beads: list[BeadSpec] = []
    problems: list[Problem] = []
    for task in parsed.tasks:
        try:
            beads.append(maker.make(task))
        except UsageError as error:
            problems.append(Problem(f"bead {task.id}: {str(error).rstrip('.')}", parsed.lines[task.id]))
    if problems:
        raise InvalidSpec(str(file), problems[:PROBLEMS_MAX])
    if beads:
        options.permissions.check(bead.agent for bead in beads)
    made = with_branches(tuple(beads), options.prefix) if options.prefix is not None else tuple(beads)
    held = [f"{bead} is held back: {why}." for bead, why in parsed.held.items()]
    more = [f"… and {len(held) - HELD_SHOWN} more are held back."] if len(held) > HELD_SHOWN else []
    return Prepared(spec=msgspec.structs.replace(spec, beads=made), warnings=(*held[:HELD_SHOWN], *more))


def _make_spec(options: BeadOptions) -> SwarmSpec:
    """Return a specification without beads: what is the same for all of them."""
    limit = read_given_count(options.output_limit, "--output-limit")
    return SwarmSpec(
        beads=(),
        tmux=_possible(options.tmux, "--tmux", "tmux"),
        bd_close=_possible(options.bd_close, "--bd-close", "bd") or options.bd_close_epics,
        bd_close_epics=_possible(options.bd_close_epics, "--bd-close-epics", "bd"),
        env=read_env(options.env),
        idle_timeout_s=read_idle_s(options.idle_timeout),
        output_limit_bytes=limit * MIB if limit is not None else OUTPUT_LIMIT_BYTES,
        max_agents=read_given_count(options.max_agents, "--max-agents") or 1,
        stop_after_failures=read_given_count(options.stop_after_failures, "--stop-after-failures"),
    )


def _possible(wanted: bool, flag: str, program: str) -> bool:
    """Return whether it is wanted; raises Unavailable where the program that it needs is missing."""
    if wanted and shutil.which(program) is None:
        raise Unavailable(detail=f"{flag} needs {program}, and it was not found on the PATH; install it, or leave {flag} out.")
    return wanted


def checked_branch(branch: str, what: str = "--branch") -> str:
    """Returns the branch unchanged, or refuses it: git and folders are named after it."""
    if not _BRANCH.match(branch) or len(branch) > 200:
        expected = "a branch name such as fix/login: letters, digits and . _ / + @ = -"
        raise InvalidValue(what=what, value=branch, expected=expected)
    return branch


def with_branches(beads: tuple[BeadSpec, ...], prefix: str) -> tuple[BeadSpec, ...]:
    """The beads each on a branch of its own, unless it names one."""
    made, worktrees = [], _Worktrees()
    checked_branch(prefix.rstrip("/"))
    for bead in beads:
        branch = bead.branch or checked_branch(f"{prefix.rstrip('/')}/{bead.id}")
        worktrees.check(bead.repo, branch)
        made.append(msgspec.structs.replace(bead, branch=branch))
    return tuple(made)


class _Worktrees:
    """The repositories in which beads may have worktrees of their own; each is asked once."""

    def __init__(self) -> None:
        self._current: dict[str, str | None] = {}

    def check(self, repo: str, branch: str, what: str = "--branch") -> None:
        """Raises UsageError where there can be no worktree on that branch."""
        if repo not in self._current:
            if top_level(Path(repo)) != Path(repo):
                raise UsageError(detail=f"{what} {branch} needs a git repository, and {repo} is none; run `git init` and commit.")
            if find_head(Path(repo)) is None:
                raise UsageError(detail=f"{what} {branch} needs a commit to start from, and {repo} has none; commit first.")
            self._current[repo] = find_branch(Path(repo))
        if self._current[repo] == branch:
            raise UsageError(detail=f"{what} {branch} is the branch that {repo} is on itself; name another, or none.")


class _Maker:
    """Makes beads: what a task does not say comes from the options. Agents and templates are looked up once."""

    def __init__(self, options: BeadOptions, home: Path, configured: Mapping[str, AgentSettings]) -> None:
        options.refuse_both("agent_command", "rehearse")
        self._options, self._home, self._configured = options, home, configured
        self._given = read_pairs(options.variables, "--var")
        self._agents: dict[tuple[str, str], AgentChoice] = {}
        """By what was given, and the repository that they would work in."""
        self._templates: dict[str, Template] = {}
        self._repos: dict[str, str] = {}
        self._worktrees = _Worktrees()
        self._check_options()

    def make(self, task: TaskLine) -> BeadSpec:
        options = self._options
        repo = self._repo(task.repo if task.repo is not None else options.repo or ".")
        branch = task.branch or options.branch or ""
        if branch:
            what = "branch" if task.branch else "--branch"
            self._worktrees.check(repo, checked_branch(branch, what), what)
        name = task.template if task.template is not None else options.template
        template = self._template(name) if name is not None else None
        prompt = self._filled(task, template, repo, branch)
        verify = task.verify or options.verify or (template.verify if template is not None else None)
        if verify is None and repo == str(self._home):  # The check of this repository says nothing about another.
            verify = options.usual.check
        return BeadSpec(
            id=task.id,
            prompt=prompt,
            task=task.prompt if template is not None else "",
            agent=self._agent(task, repo),
            repo=repo,
            branch=branch,
            priority=read_count(task.priority, "priority", minimum=0),
            needs=task.depends_on,
            template=template.name if template is not None else None,
            verify=verify,
            max_attempts=self._max_attempts if task.max_retries is None else read_count(task.max_retries, "max_retries"),
            timeout_s=self._timeout_s if task.timeout is None else read_duration_s(task.timeout, "timeout"),
        )

    def _check_options(self) -> None:
        """Read what the command line says for all beads, so that no line of a file is blamed for it."""
        options = self._options
        self._max_attempts = MAX_ATTEMPTS if options.max_retries is None else read_count(options.max_retries, "--max-retries")
        self._timeout_s = TIMEOUT_S if options.timeout is None else read_duration_s(options.timeout, "--timeout")
        if options.branch is not None:
            checked_branch(options.branch)
        if options.template is not None:
            self._template(options.template)
        if options.repo is not None:
            self._repo(options.repo)

    def _filled(self, task: TaskLine, template: Template | None, repo: str, branch: str) -> str:
        given = self._given | task.vars
        if template is None:
            if given:
                raise UsageError(detail=f"--var {next(iter(given))} needs a template to fill in.")
            return task.prompt
        facts = {"prompt": task.prompt, "bead": task.id, "repo": repo, "branch": branch}
        if taken := [name for name in given if name in facts]:
            raise UsageError(detail=f"{{{taken[0]}}} of a template is the bead's own; choose another name than --var {taken[0]}.")
        if left := unused(template, given):
            raise UsageError(detail=f"The template {template.name} has no {{{left[0]}}}; leave --var {left[0]} out.")
        return fill(template, {**facts, **given})

    def _agent(self, task: TaskLine, repo: str) -> AgentChoice:
        options = self._options
        given, what = task.agent or options.agent, "agent" if task.agent else "--agent"
        if given is None and not options.names_somebody:
            given, what = options.usual.agent, "run.agent"
        if given is None:
            if self._options.agent_command is None and self._options.rehearse is None:
                raise UsageError(detail=f"Nobody would work on {task.id}: name its agent, or give --agent.")
            given = "command" if self._options.agent_command is not None else "scripted"
        if (given, repo) not in self._agents:
            choice = self._options.permissions.given_to(self._performed(read_agent(given, what), Path(repo)))
            check_agent(choice, Path(repo))
            self._agents[given, repo] = choice
        return self._agents[given, repo]

    def _performed(self, choice: AgentChoice, repo: Path) -> AgentChoice:
        """Return the agent by its name, or whoever stands in for it."""
        other = choose_stand_in(self._options, repo)
        return stand_in(choice, other) if other is not None else resolve_agent(choice, self._configured)

    def _template(self, name: str) -> Template:
        if name not in self._templates:
            self._templates[name] = read_template(name, self._home)
        return self._templates[name]

    def _repo(self, given: str) -> str:
        if given not in self._repos:
            folder = (self._home / Path(given).expanduser()).resolve()
            if not folder.exists():
                raise MissingPath(what="The repository", path=folder)
            if not folder.is_dir():
                raise UsageError(detail=f"The repository {folder} is not a directory; give the folder that holds the project.")
            self._repos[given] = str(folder)
        return self._repos[given]
