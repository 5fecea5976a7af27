"""The wall that a command line asks for, as this machine can build it; and whether the wall of a stored run still stands."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from agent_orchestrator.config import Settings
from agent_orchestrator.config.defaults import RunDefaults
from agent_orchestrator.core.sandbox import AUTO, NONE, WALLS, Sandbox, Wall, read_network
from agent_orchestrator.engine.walls.machine import choose_wall, find_fault, find_walls
from agent_orchestrator.errors import InvalidValue, MissingPath, NoSandbox, UsageError
from agent_orchestrator.store.port import StoredRun


class SandboxOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options about the wall, as given: None means not given."""

    sandbox: str | None = None
    sandbox_network: str | None = None
    sandbox_write: tuple[str, ...] = ()
    sandbox_read: tuple[str, ...] = ()
    yolo: bool = False

    def complete(self, usual: RunDefaults) -> SandboxOptions:
        """Return the options with the configured ones for what is not given; who says that there is no wall gets none of it."""
        if self.sandbox == NONE:
            return self
        return SandboxOptions(
            sandbox=self.sandbox if self.sandbox is not None else usual.sandbox,
            sandbox_network=self.sandbox_network if self.sandbox_network is not None else usual.sandbox_network,
            sandbox_write=self.sandbox_write or usual.sandbox_write,
            sandbox_read=self.sandbox_read or usual.sandbox_read,
            yolo=self.yolo or bool(usual.yolo),
        )


def choose_sandbox(given: SandboxOptions, settings: Settings) -> tuple[Sandbox | None, tuple[str, ...]]:
    """Return the wall to build, None without one, and what a person should know; raise where it cannot be had."""
    if given.sandbox is None or given.sandbox == NONE:
        _refuse_without(given)
        return None, ()
    network, proxy = read_network(given.sandbox_network)
    write, read = (_read_paths(paths, settings.home) for paths in (given.sandbox_write, given.sandbox_read))
    wall, command = _read_wall(given.sandbox, settings)
    if wall is None:
        why = f"no wall can be built on this machine ({_faults(settings)})"
        if given.yolo or given.sandbox_network is not None:
            raise NoSandbox(why=why)
        return None, (f"There is no sandbox: {why}; agents and checks run as you do.",)
    sandbox = Sandbox(wall=wall, network=network, proxy=proxy, write=write, read=read, command=command)
    if wall is Wall.COMMAND and (network != "on" or proxy or write or read):
        raise UsageError(detail="--sandbox with a command of your own: say there what is open, not with --sandbox-… options.")
    if (fault := find_fault(sandbox, settings.environ.get("PATH"))) is not None:
        raise NoSandbox(why=fault)
    return sandbox, ()


def refuse_fallen(run: StoredRun, settings: Settings) -> None:
    """Raise NoSandbox when the wall of a stored run cannot stand here: nothing of it may start without."""
    sandbox = run.context.sandbox
    if sandbox is not None and (fault := find_fault(sandbox, settings.environ.get("PATH"))) is not None:
        raise NoSandbox(why=f"run {run.id} was started behind a wall, and {fault}")


def _refuse_without(given: SandboxOptions) -> None:
    if given.yolo and given.sandbox is None:
        raise UsageError(
            detail="--yolo (run.yolo) lets agents use all their tools without asking: "
            "add --sandbox, or --sandbox none if you mean it."
        )
    for name in ("sandbox_network", "sandbox_write", "sandbox_read"):
        if getattr(given, name):
            raise UsageError(detail=f"--{name.replace('_', '-')} needs --sandbox (run.{name} needs run.sandbox).")


def _faults(settings: Settings) -> str:
    return "; ".join(f"{wall}: {fault}" for wall, fault in find_walls(settings.environ.get("PATH")).items())


def _read_wall(text: str, settings: Settings) -> tuple[Wall | None, tuple[str, ...]]:
    if text == AUTO:
        return choose_wall(settings.environ.get("PATH")), ()
    if text in (Wall.BWRAP, Wall.LANDLOCK):
        return Wall(text), ()
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        words = ()
    if len(words) < 2:
        raise InvalidValue(what="--sandbox", value=text, expected=f"{', '.join(WALLS)}, or a command line as in 'podman run …'")
    return Wall.COMMAND, words


def _read_paths(given: tuple[str, ...], home: Path) -> tuple[str, ...]:
    paths = []
    for text in given:
        path = (home / Path(text).expanduser()).resolve()  # A relative one is meant in the repository.
        if not path.exists():
            raise MissingPath(what="A path of the sandbox", path=path)
        paths.append(str(path))
    return tuple(paths)
