"""A real PostgreSQL in a folder of its own: Debian's package, an unprivileged user, loopback and a socket.

`python -m tests.postgres.server` starts one, prints the URL of an empty database and stops it on Ctrl-C; with a command
behind, prepares that database, runs the command with the URL in the place of every postgresql://… in it, and ends with its code.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

SUPERUSER = "orc"
GUARDED_USER, GUARDED_PASSWORD = "guarded", "correct-horse-battery"
"""A role that must say its password; all others come in as they are."""
STARTED_S = 60
NOT_SYNCED = "fsync=off"
"""A server that is killed loses nothing by it; only a machine would."""
SETTINGS = (
    "max_connections=200",
    "shared_buffers=32MB",
    "log_min_messages=warning",
    "logging_collector=off",
)
_UNPRIVILEGED = ("postgres", "nobody")
_HBA = f"""\
local all {GUARDED_USER} scram-sha-256
host all {GUARDED_USER} 127.0.0.1/32 scram-sha-256
local all all trust
host all all 0.0.0.0/0 trust
"""


def find_programs() -> Path:
    """Return the folder of PostgreSQL's programs: Debian keeps the server's off the PATH."""
    if (found := shutil.which("initdb")) is not None:
        return Path(found).resolve().parent
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    assert packaged, "PostgreSQL was not found; `make system-packages` installs it"
    return packaged[-1].parent


class PostgresServer:
    """A server with a data folder, started until it is stopped; it may be stopped and started again."""

    def __init__(self, listen: str = "127.0.0.1", *, durable: bool = False) -> None:
        self._programs, self._as = find_programs(), _find_user()
        # Where any user may go, and short: the names of sockets are.
        self.folder = Path(tempfile.mkdtemp(prefix="orc-pg-", dir="/tmp"))
        self._listen, self._settings = listen, SETTINGS if durable else (NOT_SYNCED, *SETTINGS)
        self.port = find_free_port()
        self._process: subprocess.Popen[bytes] | None = None
        if self._as:
            os.chown(self.folder, self._as["user"], self._as["group"])
        self._run("initdb", "--no-sync", "--auth=trust", "--encoding=UTF8", "--no-locale", f"--username={SUPERUSER}", self.data)
        (self.data / "pg_hba.conf").write_text(_HBA)
        self.start()
        self.execute(f"CREATE ROLE {GUARDED_USER} LOGIN SUPERUSER PASSWORD '{GUARDED_PASSWORD}'")

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def url(self, database: str = "postgres", *, user: str = SUPERUSER, port: int | None = None) -> str:
        """Return the address of a database, through another port if asked."""
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        assert self._process is None, "it runs"
        options = [
            f"port={self.port}",
            f"listen_addresses={self._listen}",
            f"unix_socket_directories={self.folder}",
            *self._settings,
        ]
        words = [word for option in options for word in ("-c", option)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.data, *words], stdout=log, stderr=log, cwd="/", **self._as
            )
        for _ in range(STARTED_S * 10):
            if self._try("pg_isready", "--quiet", "--host=127.0.0.1", f"--port={self.port}").returncode == 0:
                return
            signal.sigtimedwait((), 0.1)
            assert self._process.poll() is None, f"the server ended: {self.log.read_text()}"
        raise AssertionError(f"the server does not answer: {self.log.read_text()}")

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop it: SIGQUIT as a crash, SIGINT in order, SIGTERM when all have left."""
        assert self._process is not None, "it does not run"
        self._process.send_signal(how)
        self._process.wait(STARTED_S)
        self._process = None

    def remove(self) -> None:
        """Stop it and delete what it has kept."""
        if self._process is not None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def list_processes(self) -> list[int]:
        """Return its processes, the one that accepts connections first."""
        assert self._process is not None, "it does not run"
        first = self._process.pid
        return [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]

    def list_serving(self, url: str) -> list[int]:
        """Return those of its processes that serve somebody in a database."""
        name = url.rpartition("/")[2]
        asked = f"SELECT pid FROM pg_stat_activity WHERE datname = '{name}'"
        return [int(row) for row in self.execute(asked).split()]

    def make_database(self) -> str:
        """Make an empty database and return its address."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def copy_database(self, url: str) -> str:
        """Copy a database that nobody uses any more into another one, and return its address."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        self._copy(url, name)
        return self.url(name)

    def restore_database(self, url: str, copy: str) -> None:
        """Put a copy in the place of a database, whoever still uses that."""
        name = url.rpartition("/")[2]
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")
        self._copy(copy, name)

    def _copy(self, url: str, name: str) -> None:
        original = url.rpartition("/")[2]
        # Whoever was killed a moment ago may still be served.
        self.execute(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{original}'")
        self.execute(f"CREATE DATABASE {name} TEMPLATE {original}")

    def execute(self, statement: str, database: str = "postgres") -> str:
        """Run one statement by psql, which nobody here wrote, and return its rows as text."""
        plain = ("--no-psqlrc", "--quiet", "--tuples-only", "--no-align")
        return self._run("psql", *plain, "--command", statement, self.url(database))

    def _run(self, program: str, *words: str | Path) -> str:
        done = self._try(program, *words)
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def _try(self, program: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._programs / program, *words], capture_output=True, text=True, cwd="/", check=False, **self._as
        )


def _find_user() -> dict[str, Any]:
    """Return as whom the server runs: it refuses to run as root."""
    if os.getuid() != 0:
        return {}
    for name in _UNPRIVILEGED:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise AssertionError(f"none of the users {', '.join(_UNPRIVILEGED)} exists, and PostgreSQL does not run as root")


def find_free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def frozen(pids: Sequence[int]) -> Iterator[None]:
    """Stop processes for a while: what is sent to them is taken, and not answered."""
    try:
        for pid in pids:
            _signal(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


@cache
def shared_server() -> PostgresServer:
    """Return the server of this process; tests make databases of their own in it, and never stop it."""
    server = PostgresServer()
    atexit.register(server.remove)
    return server


def make_impatient_database() -> str:
    """Make an empty database whose server lets no statement take long, so that nobody waits long for one that says nothing."""
    url = shared_server().make_database()
    shared_server().execute(f"ALTER DATABASE {url.rpartition('/')[2]} SET statement_timeout = '3s'")
    return url


def main(words: list[str]) -> int:
    """Run a server until Ctrl-C, or until a command has ended that uses it."""
    ends = (signal.SIGINT, signal.SIGTERM)
    server = PostgresServer()
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        url = server.make_database()
        if words:
            from agent_orchestrator.store.postgres import install

            install(url)
            return subprocess.run([url if word.startswith("postgresql://") else word for word in words], check=False).returncode
        print(url, flush=True)
        signal.sigwait(ends)
    finally:
        server.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
