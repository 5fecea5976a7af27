"""`orc doctor`: whether this machine and this repository's store are fit, and what was left behind."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.units import say_count
from agent_orchestrator.errors import GitFailed, OrcError, StoreCorrupt
from agent_orchestrator.runs.exits import ENVIRONMENT
from agent_orchestrator.surfaces.cli.options import command as make_command
from agent_orchestrator.surfaces.cli.options import open_orchestrator

if TYPE_CHECKING:
    from agent_orchestrator.agents.options import AgentSettings
    from agent_orchestrator.runs.orchestrator import Orchestrator

EXAMPLE = """
orc doctor
orc doctor --repo ~/projects/my-app --json
"""

AGENTS = ("claude", "codex", "gemini", "opencode")
PYTHON_MIN = (3, 11)
VERSION_TIMEOUT_S = 10.0


class Finding(NamedTuple):
    """One thing that was looked at: ok, note (worth knowing) or bad."""

    name: str
    verdict: str
    detail: str


@make_command("doctor", EXAMPLE)
def command(repo: str | None, as_json: bool) -> int:
    """Check this machine and the repository's store.

    Python, git, sh, the agents found with their versions and the names of the variables that they would log in with, the
    store's health, runs that stopped running, and agents that are still running without orc. Exits with 3 when something is bad.
    """
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json

    with open_orchestrator(repo) as orchestrator:
        findings = [*_machine(orchestrator), _walls(orchestrator), _leftovers(), *_agents(orchestrator)]
        try:
            findings += [*_store(orchestrator), *_runs(orchestrator)]
        except StoreCorrupt as error:
            findings.append(_damage(orchestrator.settings.folder / "orc.db", error))
        except OrcError as error:
            findings.append(Finding("store", "bad", str(error)))
        healthy = all(finding.verdict != "bad" for finding in findings)
        if as_json:
            print_json({"healthy": healthy, "findings": [finding._asdict() for finding in findings]})
        else:
            screen = Screen(orchestrator.settings.environ)
            colours = {"ok": "green", "note": "yellow", "bad": "red"}
            for finding in findings:
                screen.line(
                    f"{screen.paint(f'{finding.verdict:<5}', colours[finding.verdict])} {finding.name:<9} {finding.detail}"
                )
    return 0 if healthy else ENVIRONMENT


def _machine(orchestrator: Orchestrator) -> Iterator[Finding]:
    from agent_orchestrator.git.command import git
    from agent_orchestrator.git.repository import top_level

    version = ".".join(str(part) for part in sys.version_info[:3])
    fits = sys.version_info >= PYTHON_MIN
    yield Finding("python", "ok" if fits else "bad", f"{version} ({sys.executable}) on {platform.system()} {platform.release()}")
    try:
        home = orchestrator.settings.home
        if top_level(home) is not None:
            git(home, "rev-parse", "--git-dir")  # It refuses the repository of another user, say.
        yield Finding("git", "ok", git(home, "--version").removeprefix("git version "))
    except GitFailed as error:
        yield Finding("git", "bad", str(error))
    shell = shutil.which("sh", path=orchestrator.settings.environ.get("PATH"))
    yield Finding("sh", "ok" if shell else "bad", shell or "sh was not found on the PATH; checks and agents cannot be started")


def _walls(orchestrator: Orchestrator) -> Finding:
    from agent_orchestrator.engine.walls.machine import find_walls

    walls = find_walls(orchestrator.settings.environ.get("PATH"))
    standing = [wall for wall, fault in walls.items() if fault is None]
    faults = "; ".join(f"not {wall}: {fault}" for wall, fault in walls.items() if fault is not None)
    can = f"--sandbox uses {standing[0]}" if standing else "no wall can be built here, --sandbox protects nothing"
    return Finding("sandbox", "ok" if standing else "note", f"{can}; {faults}" if faults else can)


def _leftovers() -> Finding:
    from agent_orchestrator.engine.process.cgroups import own_cgroup

    ways = f"its mark, and in cgroups below {own_cgroup()}" if own_cgroup() else "its mark; no cgroup can be made here"
    return Finding("processes", "ok", f"what an agent leaves running is found by {ways}")


def _agents(orchestrator: Orchestrator) -> Iterator[Finding]:
    from agent_orchestrator.config.defaults import read_configuration
    from agent_orchestrator.config.trust import is_trusted

    environ, found = orchestrator.settings.environ, read_configuration(orchestrator.settings)
    trusted = is_trusted(orchestrator.settings, found.guarded)
    configured = found.agents if trusted and not found.faults else {}
    for fault in found.faults:
        yield Finding("config", "bad", fault.problem.located(fault.file))
    for file in found.files:
        yield Finding("config", "ok", str(file.path))
    if not trusted and found.repository is not None:
        asks = f"{found.repository.path} asks for what nobody has agreed to"
        yield Finding("config", "note", f"{asks}: read it, then run `orc config trust`")
    programs = dict.fromkeys(AGENTS, "")
    programs |= {name: _program(one) for name, one in configured.items() if _program(one)}
    there = {name: path for name, one in programs.items() if (path := shutil.which(one or name, path=environ.get("PATH")))}
    for name, path in there.items():
        version = _version_of(path, dict(environ)) if name in AGENTS else "as configured"
        yield Finding("agent", "ok", f"{name} {version} ({path}){_passes(orchestrator, name, configured)}")
        if (why := _broken_sandbox(name, path, orchestrator, configured.get(name))) is not None:
            yield Finding("sandbox", "note", why)
    missing = [name for name in programs if name not in there]
    if missing:
        yield Finding(
            "agent", "ok" if there else "note", f"not found: {', '.join(missing)}; any program works as --agent-command"
        )


def _program(settings: AgentSettings) -> str:
    """Return the program that is started for a configured agent, where that is not its own name."""
    return settings.binary or (settings.argv or [""])[0] or (settings.adapter if settings.adapter in AGENTS else "") or ""


def _passes(orchestrator: Orchestrator, name: str, configured: Mapping[str, AgentSettings]) -> str:
    """Which of the variables that are set it would get to log in with: names only."""
    from agent_orchestrator.agents import find_agent
    from agent_orchestrator.agents.cli import CliAgent
    from agent_orchestrator.agents.options import resolve_agent
    from agent_orchestrator.runs.clients import find_client

    try:
        choice = resolve_agent(AgentChoice(name=name), configured)
    except OrcError as error:
        return f"; {error}"
    agent = find_agent(choice.performer)
    if not isinstance(agent, CliAgent):
        return ""
    if choice.options.get("pass_credentials") is False:
        return "; gets no key or token (pass_credentials is off)"
    client = find_client(name, orchestrator.settings.environ, configured)
    if client is not None and client.login and not client.passed:
        return f"; logged in ({client.login})"
    see, asked = orchestrator.settings.child_env, tuple(choice.options.get("pass_env") or ())
    passed = [one for one in (*asked, *agent.credentials(choice, asked, see)) if orchestrator.settings.environ.get(one)]
    return f"; gets {', '.join(passed)}" if passed else f"; no key of its own is set: {agent.how_to_log_in(choice)}"


def _broken_sandbox(name: str, path: str, orchestrator: Orchestrator, settings: AgentSettings | None) -> str | None:
    """Say why codex's own sandbox runs nothing here, found by trying: then it can write no file, and says so to nobody."""
    adapter, mode = (settings.adapter, settings.permission_mode) if settings is not None else (None, None)
    if (adapter or name) != "codex" or mode not in (None, "workspace-write"):
        return None
    command = [path, "-c", 'sandbox_mode="workspace-write"', "sandbox", "--", "true"]
    home = orchestrator.settings.home
    environ = {**orchestrator.settings.environ, **(settings.env if settings is not None else {})}
    try:
        done = subprocess.run(
            command,
            env=environ,
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode == 0:
        return None
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    why = f" ({said[-1][:200]})" if said else ""
    ways = "install bubblewrap 0.9 or newer or none, keep CODEX_HOME out of the temporary folder, or"
    setting = f'set permission_mode = "danger-full-access" in [agents.{name}] where something else fences it in'
    return f"codex's sandbox runs nothing here{why}: it can change no file; {ways} {setting}"


def _version_of(path: str, environ: dict[str, str]) -> str:
    try:
        done = subprocess.run(
            [path, "--version"],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "of unknown version"
    said = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return said[0][:60] if said and not done.returncode else "of unknown version"


def _store(orchestrator: Orchestrator) -> Iterator[Finding]:
    from agent_orchestrator.config.store_address import name_repository
    from agent_orchestrator.runs.snapshots import drop_wrong_snapshots
    from agent_orchestrator.store.filesystem import filesystem_of

    folder, address = orchestrator.settings.folder, orchestrator.address
    if address is not None:
        version, faults = orchestrator.store.health()
        where = f"{address}, {orchestrator.store.kind}, schema {version}, {say_count(orchestrator.count().total, 'run')}"
        yield Finding("store", "bad" if faults else "ok", f"{where}, {'; '.join(faults) or 'intact'}")
        if not address.configured and (now := name_repository(orchestrator.settings.home)) != address.repository:
            detail = f"runs are kept under {address.repository}, as the first one here was; other clones of {now} do not see them"
            yield Finding("store", "note", f'{detail}: give all of them one name, as in [store] repository = "{now}"')
        return
    if not orchestrator.has_store:
        yield Finding("store", "ok", f"{folder} does not exist yet; the first run makes it")
        return
    version, faults = orchestrator.store.health()
    kind = filesystem_of(folder) or "a file system of unknown kind"
    size = (folder / "orc.db").stat().st_size
    where = f"{folder} on {kind}, schema {version}, {size / 1e6:.1f} MB, {say_count(orchestrator.count().total, 'run')}"
    if faults:
        raise StoreCorrupt(path=folder / "orc.db", detail=faults[0])
    yield Finding("store", "ok", f"{where}, intact")
    yield from (Finding("store", "note", dropped) for dropped in drop_wrong_snapshots(orchestrator))
    if (why := orchestrator.store.unwritable) is not None:
        yield Finding("store", "bad", str(why))


def _damage(path: Path, error: StoreCorrupt) -> Finding:
    """Tell a store whose pages are wrong from one that only looked so: the advice to move it away needs a check that failed."""
    from agent_orchestrator.store.database import examine

    try:
        faults = examine(path)
    except OrcError as failed:
        return Finding("store", "bad", f"{path} cannot be checked: {failed}")
    if not faults:
        detail = f"{path} was called damaged ({error.values['detail']}), and its pages are sound: leave it where it is, try again"
        return Finding("store", "bad", detail)
    way = 'move it aside as "A damaged store" in docs/operations.md says, or restore a copy'
    return Finding("store", "bad", f"{path} is damaged, a check of its pages found: {'; '.join(faults[:3])}; {way}")


def _runs(orchestrator: Orchestrator) -> Iterator[Finding]:
    from agent_orchestrator.engine.process.folder import is_locked
    from agent_orchestrator.store.port import Which

    launches = orchestrator.settings.folder / "launches"
    for run in orchestrator.runs(Which(ended=False)):
        if orchestrator.owner(run) is not None:
            continue
        alive = [place for place in _launch_folders(launches / run.id) if is_locked(place)]
        if run.summary.status in ("running", "aborting") and not run.context.remote:
            yield Finding("run", "note", f"{run.id} says {run.summary.status}, but nothing is running it: orc resume {run.id}")
        if alive:
            names = ", ".join(sorted({place.name.partition("~")[0] for place in alive})[:5])
            living = f"{say_count(len(alive), 'agent')} {'is' if len(alive) == 1 else 'are'} still running without orc ({names})"
            detail = f"{run.id}: {living}: orc resume or orc abort {run.id}"
            yield Finding("launches", "note", detail)


def _launch_folders(run: Path) -> list[Path]:
    return list(run.glob("*~*"))
