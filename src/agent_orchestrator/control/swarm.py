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
from agent_orchestrator.control.choosing import check_agent, read_agent, read_pairs, split_command
from agent_orchestrator.control.templates import Template, fill, read_template, unused
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.ids import checked_id
from agent_orchestrator.core.limits import SPEC_LIMIT_BYTES
from agent_orchestrator.core.units import read_count, read_duration_s
from agent_orchestrator.errors import InvalidValue, MissingPath, UsageError
from agent_orchestrator.git.locate import top_level
from agent_orchestrator.systems.swarm.spec import MAX_ATTEMPTS, TIMEOUT_S, BeadSpec
from agent_orchestrator.systems.swarm.tasks import Task, parse

_BRANCH = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock(?:/|\Z)|/\.))[A-Za-z0-9_][A-Za-z0-9_./+@=-]*(?<![./])\Z")


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
    return _Maker(options, home, configured).make(Task(id=bead, prompt=prompt))


def prepare_file(file: Path, options: BeadOptions, home: Path, configured: Mapping[str, AgentSettings]) -> PreparedBeads:
    """The beads of a file of tasks, or of a tracker's export."""
    parsed = parse(_read(file), str(file))
    maker = _Maker(options, home, configured)
    return PreparedBeads(beads=tuple(maker.make(task) for task in parsed.tasks), held=parsed.held, closed=parsed.closed)


def checked_branch(branch: str) -> str:
    """Returns the branch unchanged, or refuses it: git and folders are named after it."""
    if not _BRANCH.match(branch) or len(branch) > 200:
        expected = "a branch name such as fix/login: letters, digits and . _ / + @ = -"
        raise InvalidValue(what="--branch", value=branch, expected=expected)
    return branch


def with_branches(beads: tuple[BeadSpec, ...], prefix: str) -> tuple[BeadSpec, ...]:
    """The beads each on a branch of its own, unless it names one."""
    made = []
    for bead in beads:
        branch = bead.branch or checked_branch(f"{prefix.rstrip('/')}/{bead.id}")
        check_worktree(bead.repo, branch)
        made.append(msgspec.structs.replace(bead, branch=branch))
    return tuple(made)


def check_worktree(repo: str, branch: str) -> None:
    """Raises UsageError where there can be no worktree."""
    if top_level(Path(repo)) != Path(repo):
        raise UsageError(detail=f"--branch {branch} needs a git repository, and {repo} is none; run `git init` and commit.")


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

    def make(self, task: Task) -> BeadSpec:
        options = self._options
        repo = self._repo(task.repo if task.repo is not None else options.repo or ".")
        branch = task.branch if task.branch is not None else options.branch or ""
        if branch:
            check_worktree(repo, checked_branch(branch))
        name = task.template if task.template is not None else options.template
        template = self._template(name) if name is not None else None
        prompt = self._filled(task, template, repo, branch)
        verify = task.verify or options.verify or (template.verify if template is not None else None)
        timeout = task.timeout if task.timeout is not None else options.timeout
        tries = task.max_retries if task.max_retries is not None else options.max_retries
        return BeadSpec(
            id=task.id,
            prompt=prompt,
            agent=self._agent(task.agent or options.agent, task.id, repo),
            repo=repo,
            branch=branch,
            priority=read_count(task.priority, f"The priority of {task.id}", minimum=0),
            needs=task.depends_on,
            template=template.name if template is not None else None,
            verify=verify,
            max_attempts=MAX_ATTEMPTS if tries is None else read_count(tries, "--max-retries"),
            timeout_s=TIMEOUT_S if timeout is None else read_duration_s(timeout, "--timeout"),
        )

    def _filled(self, task: Task, template: Template | None, repo: str, branch: str) -> str:
        given = self._given | task.vars
        if template is None:
            if given:
                raise UsageError(detail=f"--var {next(iter(given))} needs a template to fill in.")
            return task.prompt
        if left := unused(template, given):
            raise UsageError(detail=f"The template {template.name} has no {{{left[0]}}}; leave --var {left[0]} out.")
        facts = {"prompt": task.prompt, "bead": task.id, "repo": repo, "branch": branch}
        return fill(template, {**facts, **given})

    def _agent(self, given: str | None, bead: str, repo: str) -> AgentChoice:
        if given is None:
            if self._options.agent_command is None and self._options.rehearse is None:
                raise UsageError(detail=f"Nobody would work on {bead}: name its agent, or give --agent.")
            given = "command" if self._options.agent_command is not None else "scripted"
        if given not in self._agents:
            self._agents[given] = self._performed(read_agent(given))
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
