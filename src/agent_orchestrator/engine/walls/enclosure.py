"""Puts the wall of a run around a program: an order in, the same order with a longer command line out.

Signals: TERM goes to the whole group. The program gets it, as without a wall; bubblewrap must not die of it before the
program has cleaned up, so it is started with TERM ignored, and `confine.py` undoes that for the program.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from agent_orchestrator.beneath import open_folder, write_plainly
from agent_orchestrator.bounded import store_of
from agent_orchestrator.core.sandbox import Sandbox, Wall
from agent_orchestrator.engine.launches import CannotStart, Order
from agent_orchestrator.engine.walls import confine
from agent_orchestrator.engine.walls.machine import AS_IT_IS, BWRAP, find_fault
from agent_orchestrator.engine.walls.places import CACHE, SCRATCH, Access, Places, Surroundings, child_env, find_places
from agent_orchestrator.git.worktree import reach_tree

UNDISTURBED = ("/bin/sh", "-c", 'trap "" TERM INT HUP; exec "$@"', "orc")
KERNEL_FILES = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
"""Root may write to these whatever its capabilities are."""
INTERNET = (socket.AF_INET, socket.AF_INET6)
DEFAULT_PORTS = {"http": 80, "https": 443}


def enclose(order: Order, sandbox: Sandbox, around: Surroundings, *, online: bool, passed: Iterable[str] = ()) -> Order:
    """Return the order behind its wall; `online` is for a program that may use the network. Raise CannotStart without a wall."""
    if (fault := find_fault(sandbox, around.env.get("PATH"))) is not None:
        raise CannotStart(fault)
    for folder in (around.launch / SCRATCH, around.launch.parent / CACHE):
        with open_folder(around.store, folder, make=True):
            pass  # It is there, and no link leads to it.
    around = msgspec.structs.replace(around, programs=(*around.programs, order.argv[0]), tree=reach_tree(around.tree))
    places = find_places(sandbox, around)
    env = child_env(order.env, places, sandbox, passed)
    if sandbox.wall is Wall.LANDLOCK:
        if (hole := places.find_hole()) is not None:
            raise CannotStart(
                f"Landlock cannot keep {hole} from being written to while the tree around it may be: "
                "give the run a worktree of its own (--git-worktree), or install bubblewrap"
            )
        env |= {"TMPDIR": places.scratch, "CLAUDE_CODE_TMPDIR": places.scratch}
        return msgspec.structs.replace(order, argv=_landlock(order.argv, sandbox, places, online=online), env=env)
    if sandbox.wall is Wall.BWRAP:
        env.pop("TMPDIR", None)
        return msgspec.structs.replace(order, argv=tuple(_bwrap(order, sandbox, places, online=online)), env=env)
    return msgspec.structs.replace(order, argv=tuple(_fill(order, sandbox, around, env, places)), env=env)


def _landlock(argv: tuple[str, ...], sandbox: Sandbox, places: Places, *, online: bool) -> tuple[str, ...]:
    """Sockets in the file system are not Landlock's business, and a server behind one would act outside: none is opened."""
    refused = [socket.AF_UNIX, *(() if online else INTERNET)]
    return _confined(argv, {**_network_rules(sandbox), "paths": places.rules, "refused_families": refused})


def _bwrap(order: Order, sandbox: Sandbox, places: Places, *, online: bool) -> Iterator[str]:
    yield from (*UNDISTURBED, BWRAP, *AS_IT_IS)
    if not online:
        yield "--unshare-net"
    for path in KERNEL_FILES:
        yield from ("--ro-bind-try", path, path)
    for access, path in places.rules[1:]:  # The first is about the whole system and stands above.
        if access is Access.HIDE:
            yield from _hide(path)
        else:
            yield from ("--ro-bind-try" if access is Access.READ else "--bind-try", path, path)
    yield from ("--chdir", str(order.cwd), "--")
    yield from _confined(order.argv, _network_rules(sandbox))


def _hide(path: str) -> tuple[str, ...]:
    if os.path.isdir(path):
        return ("--tmpfs", path)
    return ("--ro-bind", "/dev/null", path) if os.path.lexists(path) else ()


def _confined(argv: tuple[str, ...], rules: dict[str, object]) -> tuple[str, ...]:
    return (sys.executable, "-I", confine.__file__, json.dumps(rules), "--", *argv)


def _network_rules(sandbox: Sandbox) -> dict[str, object]:
    if not sandbox.proxy:
        return {}
    address = urlsplit(sandbox.proxy)
    return {"port": address.port or DEFAULT_PORTS[address.scheme]}


def _fill(order: Order, sandbox: Sandbox, around: Surroundings, env: dict[str, str], places: Places) -> Iterator[str]:
    """The user's own program, told where what lies.

    The file for `--env-file` has the names of the launch's variables alone: docker and podman take the values from their own
    environment, which is the launch's, and no secret is written anywhere.
    """
    listed, launch = f"{places.scratch}/env", os.path.dirname(places.scratch)
    write_plainly(store_of(Path(launch)), Path(listed), "".join(f"{name}\n" for name in env).encode())
    words = {"{tree}": str(order.cwd), "{launch}": launch, "{env}": listed, "{name}": _name(order), "{repo}": str(around.repo)}
    words["{artifacts}"] = str(around.more[0]) if around.more else launch
    for word in sandbox.command:
        for mark, value in words.items():
            word = word.replace(mark, value)
        yield word
    yield from order.argv


def _name(order: Order) -> str:
    """A name for a container: the effect's, in the letters that names may have."""
    return "orc-" + "".join(letter if letter.isalnum() else "-" for letter in order.effect)
