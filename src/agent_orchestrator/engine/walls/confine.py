"""The program that stands between a wall and what it encloses: it takes its own rights away, then becomes the other.

Started as `python -I confine.py RULES -- PROGRAM …`; RULES is JSON. It imports nothing of ours, so that it starts quickly.
Landlock for paths, TCP ports, signals and abstract sockets; a filter of system calls for the sockets that Landlock does not
know. Both are inherited by every child and can never be taken back. What the kernel refuses ends it with 126 and a sentence.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import signal
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG = 1
PATH_BENEATH, NET_PORT = 1, 2
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
CONNECT_TCP = 1 << 1
RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All rights about files that a version of the interface knows."""
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
NET_ABI, SCOPE_ABI, NEWEST_ABI = 4, 6, 5
SCOPES = 0b11
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_CAP_AMBIENT = 22, 38, 24, 47
LAST_CAPABILITY_FILE = "/proc/sys/kernel/cap_last_cap"
ARCHITECTURES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""The kernel's name of a machine, and its number of `socket`."""
IO_URING_SETUP, X32 = 425, 0x40000000
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 13
LOAD, AND, EQUAL, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
KIND_BITS = 0xF
FAILED = 126

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> NoReturn:
    """Confine this process by the rules given, and become the program given."""
    rules: dict[str, Any] = json.loads(sys.argv[1])
    argv = sys.argv[3:]
    try:
        _call("no_new_privs", _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _restrict(rules)
        families, no_datagrams = rules.get("refused_families", []), bool(rules.get("port"))
        if families or no_datagrams:
            _filter(families, no_datagrams)
        if os.geteuid() == 0:
            _drop_capabilities()
    except OSError as error:
        _fail(f"the sandbox could not be made: {error}")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127 if isinstance(error, FileNotFoundError) else FAILED)


def version() -> int:
    """Return the version of Landlock that this kernel has; 0 without."""
    found: int = _libc.syscall(CREATE_RULESET, None, 0, VERSION_FLAG)
    return max(0, found)


def _restrict(rules: dict[str, Any]) -> None:
    abi, files = version(), "paths" in rules
    net = CONNECT_TCP if rules.get("port") else 0
    scoped = SCOPES if abi >= SCOPE_ABI else 0
    if net and abi < NET_ABI:
        raise OSError(0, "a proxy as the only way out needs a kernel of 6.7 or newer")
    if not (files or net or scoped):
        return
    handled = RIGHTS_BY_ABI[min(abi, NEWEST_ABI)] if files else 0
    attributes = struct.pack("QQQ", handled, net, scoped)
    size = 8 if abi < NET_ABI else 16 if abi < SCOPE_ABI else 24
    ruleset = _call("landlock", _libc.syscall(CREATE_RULESET, attributes, size, 0))
    if files:
        for path, rights in _path_rules(rules["paths"], handled):
            _add_path(ruleset, path, rights)
    if net:
        _call("landlock", _libc.syscall(ADD_RULE, ruleset, NET_PORT, struct.pack("QQ", net, rules["port"]), 0))
    _call("landlock", _libc.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _path_rules(given: list[tuple[str, str]], handled: int) -> Iterator[tuple[str, int]]:
    """Rights are only ever added: what is hidden later is left out of what was opened before."""
    look = EXECUTE | READ_FILE | READ_DIR
    yield "/", READ_DIR
    for number, (access, path) in enumerate(given):
        hidden = {other for kind, other in given[number:] if kind == "hide"}
        if access == "read":
            for part in _cover(path, hidden):
                yield part, look
        elif access == "write":
            yield path, handled
    for name in DEVICES:
        yield f"/dev/{name}", handled if name in ("pts", "shm") else READ_FILE | WRITE_FILE | (IOCTL_DEV & handled)


def _cover(path: str, hidden: set[str]) -> Iterator[str]:
    """Yield paths that together are everything below a path but what is hidden. Links are followed when they are used."""
    if path in hidden:
        return
    start = path.rstrip("/") + "/"
    if not any(one.startswith(start) for one in hidden):
        yield path
        return
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return
    for name in names:
        if not os.path.islink(start + name):
            yield from _cover(start + name, hidden)


def _add_path(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # What is not there, or may not be seen, needs no rule.
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= OF_FILES
        if rights:
            packed = struct.pack("=Qi", rights, place)
            _call(path, _libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, packed, 0))
    finally:
        os.close(place)


def _filter(families: list[int], no_datagrams: bool) -> None:
    """Refuse sockets of these families, and those that could send beside a proxy; io_uring could open them unseen."""
    known = ARCHITECTURES.get(platform.machine())
    if known is None:
        raise OSError(0, f"sockets cannot be refused on {platform.machine()}; install bubblewrap")
    machine, number = known
    program = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, machine), (RETURN, 0, 0, REFUSE), (LOAD, 0, 0, 0)]
    program += [(AT_LEAST, 0, 1, X32), (RETURN, 0, 0, REFUSE), (EQUAL, 0, 1, IO_URING_SETUP), (RETURN, 0, 0, REFUSE)]
    program += [(EQUAL, 1, 0, number), (RETURN, 0, 0, ALLOW), (LOAD, 0, 0, 16)]
    for family in families:
        program += [(EQUAL, 0, 1, family), (RETURN, 0, 0, REFUSE)]
    if no_datagrams:
        program += [(EQUAL, 2, 0, socket.AF_INET), (EQUAL, 1, 0, socket.AF_INET6), (RETURN, 0, 0, ALLOW)]
        program += [(LOAD, 0, 0, 24), (AND, 0, 0, KIND_BITS), (EQUAL, 1, 0, socket.SOCK_STREAM), (RETURN, 0, 0, REFUSE)]
    program.append((RETURN, 0, 0, ALLOW))
    packed = b"".join(struct.pack("HBBI", *one) for one in program)
    kept = ctypes.create_string_buffer(packed)
    loaded = struct.pack("HxxxxxxP", len(program), ctypes.addressof(kept))
    _call("seccomp", _libc.prctl(PR_SET_SECCOMP, 2, loaded, 0, 0))


def _drop_capabilities() -> None:
    """Leave nothing to root but its name."""
    with open(LAST_CAPABILITY_FILE, encoding="ascii") as file:
        last = int(file.read())
    for capability in range(last + 1):
        _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    _libc.prctl(PR_CAP_AMBIENT, 4, 0, 0, 0)
    header, nothing = struct.pack("Ii", 0x20080522, 0), struct.pack("IIIIII", 0, 0, 0, 0, 0, 0)
    _call("capabilities", _libc.capset(header, nothing))


def _call(what: str, answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return answer


def _fail(why: str) -> NoReturn:
    print(f"orc: {why}", file=sys.stderr)
    sys.exit(FAILED)


if __name__ == "__main__":
    main()
