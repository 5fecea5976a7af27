"""The places where a rule of the house style is bent, each with its reason."""

from __future__ import annotations

SRC = "src/agent_orchestrator"

CATCHES_EVERYTHING = {
    f"{SRC}/engine/commit.py": "whoever waits for a commit is handed what went wrong, and ends by it",
    f"{SRC}/engine/perform/": "around a performed effect: its failure becomes an event",
    f"{SRC}/engine/threads.py": "the same of work in a thread: whoever waits for it is handed what went wrong",
    f"{SRC}/surfaces/cli/main.py": "the process edge: a bug becomes one sentence and an exit code",
}
IMPORTS_LATE = {
    f"{SRC}/surfaces/cli/": "a command pays only for what it uses: `orc status` does not import asyncio",
    f"{SRC}/cli.py": "the same program as surfaces/cli",
    f"{SRC}/config/__init__.py": "files are read when git first runs: looking must stay instant",
    f"{SRC}/config/store_address.py": "most repositories have their own store: they pay for no URL and no file of another",
    f"{SRC}/agents/__init__.py": "an adapter is loaded when it is chosen",
    f"{SRC}/systems/workflow/items.py": "few runs read lists in YAML: looking at the others must stay instant",
    f"{SRC}/systems/__init__.py": "a system is loaded when a run of it is",
    f"{SRC}/runs/orchestrator.py": "only driving needs an event loop: looking must stay instant",
    f"{SRC}/runs/stores.py": "a store is loaded when it is chosen, and one of them is an extra",
    f"{SRC}/cluster/placing/__init__.py": "DBOS is an extra: only workers of a store that it places runs of pay",
    f"{SRC}/runs/notify/ways.py": "HTTP and TLS cost as much as an interpreter: only who is told that way pays",
    f"{SRC}/runs/telemetry/exporter.py": "the exporter is an extra, and costs a second: only who exports pays",
    f"{SRC}/runs/agent_door.py": "the protocol's packages take a second, for which a run does not wait",
    f"{SRC}/surfaces/web/workers.py": "PostgreSQL's library is an extra: only a page over such a store pays",
    f"{SRC}/config/documents.py": "most repositories have no configuration file: they pay for no TOML",
    f"{SRC}/core/text.py": "only who made a mistake is told what was meant",
    f"{SRC}/engine/perform/launch.py": "most runs have no wall: taking one up does not wait for the C library",
    f"{SRC}/git/leftovers.py": "few processes ask when the machine was started: temporary files bring random numbers with them",
    f"{SRC}/git/ownership.py": "the same: rules of files are seldom compared",
    f"{SRC}/store/database.py": "temporary files are needed only where a disk cannot be written: looking must stay instant",
}
READS_ENVIRONMENT = {
    f"{SRC}/config/": "the one reader",
    f"{SRC}/agents/scripted.py": "`python -m agent_orchestrator.agents.scripted` is an agent: its environment is its contract",
    f"{SRC}/engine/process/pane.py": "a program of its own, which hands on the environment that it was given",
}
READS_CLOCK = f"{SRC}/engine/clock.py"
RUNS_GIT = f"{SRC}/git/"
KNOWS_TYPES = f"{SRC}/typed.py"
PRINTS = {
    f"{SRC}/surfaces/": "what people read",
    f"{SRC}/agents/scripted.py": "as a program of its own it says what its script says",
    f"{SRC}/engine/walls/confine.py": "as a program of its own it says why it could not become the other",
}
SKIPS = {
    "tests/acceptance/test_github.py": "gh and openssl may be missing; the Makefile installs them",
    "tests/cluster/test_finishing.py": "gh and openssl, as above",
    "tests/cluster/test_manifests.py": "kubectl is not what everybody has, nor a package of every system",
    "tests/cluster/test_show.py": "network namespaces need root",
    "tests/acceptance/test_podman.py": "podman is not what everybody has, nor a kernel that lets it run a container",
    "tests/acceptance/test_pull_request.py": "gh and openssl, as above",
    "tests/acceptance/test_large_files.py": "git-lfs, as above",
    "tests/faults/test_git_killed.py": "the library that kills git is compiled, and not every machine has a compiler",
    "tests/faults/test_disk.py": "the same: the library that lets calls about a file fail",
    "tests/proof/test_power.py": "the same: the library that records what programs do to files",
    "tests/unit/process/test_left_behind.py": "cgroups can be made where root, or a systemd of the user's own, lets us",
    "tests/unit/process/test_starting.py": "the same: a library lets the shim's fork fail",
    "tests/crash/test_full_disk.py": "mounting a file system that can be filled needs root",
    "tests/clients/conftest.py": "real clients need npm, and 800 MB that not everybody wants",
    "tests/clients/test_examples.py": "the same",
    "tests/acceptance/test_editor.py": "the language server of editors comes from npm, too",
    "tests/stores.py": "with STORE=postgres there is no store in a repository, which some tests are about",
    "tests/seeds/writes.py": "inotify is the Linux kernel's",
    "tests/notify/test_desktop.py": "dunst and its X server are Linux's alone; the Makefile installs them",
    "tests/telemetry/test_rotel.py": "the collector is made for a few machines alone; the Makefile installs it there",
    "tests/walls.py": "bubblewrap and Landlock are Linux's alone",
}
"""Test files that may skip, and why."""
CALLED_FROM_OUTSIDE = {
    f"{SRC}/testing/": "the public kit: tests, ours and others', call it",
    f"{SRC}/state.py": "the library names that people import",
    f"{SRC}/surfaces/cli/groups.py": "click calls the methods of its groups",
    f"{SRC}/store/postgres/arrays.py": "psycopg calls the dumpers that it is given",
}
"""Places that may define something that nothing in the package uses."""
