"""Turns the options of `orc swarm dispatch` and `orc swarm run` into beads that can be started.

Everything that could never work is refused here, before a run exists: an unknown agent, a bad number, a repository that is
not there, a template with a hole in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_orchestrator.agents.options import AgentSettings, resolve_agent
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.core.limits import SPEC_LIMIT_BYTES
from agent_orchestrator.core.units import read_count, read_duration_s
from agent_orchestrator.errors import InvalidSpec, InvalidValue, MissingPath, Problem, UsageError
from agent_orchestrator.git.branches import find_branch
from agent_orchestrator.git.repository import top_level
from agent_orchestrator.git.snapshots import find_head
from agent_orchestrator.runs.choices import Permissions, check_agent, read_agent, read_pairs, split_command
from agent_orchestrator.runs.swarm.templates import Template, fill, read_template, unused
from agent_orchestrator.systems.swarm.spec import MAX_ATTEMPTS, TIMEOUT_S, BeadSpec
from agent_orchestrator.systems.swarm.tasks import TaskLine, parse

_BRANCH = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock(?:/|\Z)|/\.))[A-Za-z0-9_][A-Za-z0-9_./+@=-]*(?<![./])\Z")


PROBLEMS_MAX = 20
"""Faults of a file that are told at once: one on the command line may be in every line."""


class BeadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a bead may be given on the command line; None means not given."""

    agent: str | None = None
    agent_command: str | None = None
    rehearse: str | None = None
    repo: str | None = None
    branch: str | None = None
    template: str | None = None
    verify: str | None = None
    timeout: str | None = None
    max_retries: str | None = None
    variables: tuple[str, ...] = ()
    """K=V"""
    allow_tools: tuple[str, ...] = ()
    permission_mode: str | None = None

    @property
    def permissions(self) -> Permissions:
        """What agents may do besides."""
        return Permissions(allow_tools=self.allow_tools, mode=self.permission_mode)


class PreparedBeads(msgspec.Struct, frozen=True, kw_only=True):
    """The beads of a file that can run, and why others cannot."""

    beads: tuple[BeadSpec, ...]
    held: dict[str, str]
    closed: int


def prepare_bead(bead: str, prompt: str, options: BeadOptions, home: Path, configured: Mapping[str, AgentSettings]) -> BeadSpec:
    """The bead of a dispatch."""
    checked_id(bead, "The bead")
    if not prompt.strip():
        raise UsageError(detail="The prompt is empty: say what is to be done.")
    made = _Maker(options, home, configured).make(TaskLine(id=bead, prompt=prompt))
    options.permissions.check((made.agent,))
    return made


def prepare_file(file: Path, options: BeadOptions, home: Path, configured: Mapping[str, AgentSettings]) -> PreparedBeads:
    """The beads of a file of tasks, or of a tracker's export."""
    parsed = parse(_read(file), str(file))
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
    return PreparedBeads(beads=tuple(beads), held=parsed.held, closed=parsed.closed)


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
    """Where beads may have worktrees of their own; every repository is asked once."""

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
        if options.agent_command is not None and options.rehearse is not None:
            raise UsageError(detail="--agent-command and --rehearse exclude each other; give one.")
        self._options, self._home, self._configured = options, home, configured
        self._given = read_pairs(options.variables, "--var")
        self._agents: dict[str, AgentChoice] = {}
        self._startable: set[tuple[str, str]] = set()
        """Agents that were looked for, and the repositories they would work in."""
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
        """What the command line says for all beads, so that no line of a file is blamed for it."""
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
        given, what = task.agent or self._options.agent, "agent" if task.agent else "--agent"
        if given is None:
            if self._options.agent_command is None and self._options.rehearse is None:
                raise UsageError(detail=f"Nobody would work on {task.id}: name its agent, or give --agent.")
            given = "command" if self._options.agent_command is not None else "scripted"
        if given not in self._agents:
            self._agents[given] = self._options.permissions.given_to(self._performed(read_agent(given, what)))
        if (given, repo) not in self._startable:
            check_agent(self._agents[given], Path(repo))
            self._startable.add((given, repo))
        return self._agents[given]

    def _performed(self, choice: AgentChoice) -> AgentChoice:
        """The agent by its name, or whoever stands in for it."""
        options = self._options
        if options.agent_command is not None:
            argv = split_command(options.agent_command)
            return AgentChoice(name=choice.name, model=choice.model, adapter="command", options={"argv": argv})
        if options.rehearse is not None:
            script = str(Path(options.rehearse).expanduser().absolute())
            return AgentChoice(name=choice.name, model=choice.model, adapter="scripted", options={"script": script})
        return resolve_agent(choice, self._configured)

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


def _read(file: Path) -> str:
    try:
        if file.stat().st_size > SPEC_LIMIT_BYTES:
            raise UsageError(detail=f"The file {file} is larger than {SPEC_LIMIT_BYTES} bytes; split it.")
        return file.read_text("utf-8")
    except FileNotFoundError:
        raise MissingPath(what="The file", path=file) from None
    except OSError as error:
        raise UsageError(detail=f"The file {file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise UsageError(detail=f"The file {file} is not UTF-8 text: {error.reason}.") from None
