"""The outputs of a run's launches, wherever it is driven: its files here, or what its host shipped to the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

from agent_orchestrator.core.ids import EffectId, RunId, launch_folder
from agent_orchestrator.git.repository import store_folder
from agent_orchestrator.runs.departure import wait_until_left

if TYPE_CHECKING:
    from agent_orchestrator.runs.orchestrator import Orchestrator
    from agent_orchestrator.store.port import StoredRun
    from agent_orchestrator.store.postgres.outputs import PostgresOutputs


class Outputs(Protocol):
    """The streams of all launches of a run, as files."""

    root: Path
    """The folder of launches, as `launch_folder` names them below it."""

    def refresh(self) -> None:
        """Bring the files up to what is known now."""


class LocalOutputs:
    """The files of a host that drives the run, or drove it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def refresh(self) -> None:
        """Do nothing: programs write to them."""


class ShippedOutputs:
    """Copies of what another host shipped."""

    def __init__(self, outputs: PostgresOutputs, orchestrator: Orchestrator, run: RunId, root: Path) -> None:
        self.root, self._outputs, self._orchestrator, self._run = root, outputs, orchestrator, run
        self._read: dict[tuple[EffectId, str], int] = {}

    def refresh(self) -> None:
        """Append what was shipped since; of a run that has ended, all of it."""
        wait_until_left(self._orchestrator, self._orchestrator.find(self._run))
        for (effect, stream), end in self._outputs.list_shipped(self._run).items():
            folder = self.root / launch_folder(effect)
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / stream).open("ab") as file:
                while (at := self._read.get((effect, stream), 0)) < end:
                    for reached, body in self._outputs.read(self._run, effect, stream, at):
                        file.write(body)
                        self._read[effect, stream] = reached


@contextmanager
def open_outputs(orchestrator: Orchestrator, run: StoredRun) -> Iterator[Outputs]:
    """Open the outputs of a run, up to now."""
    home = Path(run.context.home)
    shipped = getattr(orchestrator.store, "outputs", None) if run.context.remote and not home.is_dir() else None
    if shipped is None:
        here = store_folder(home) if run.context.remote else orchestrator.settings.folder
        yield LocalOutputs(here / "launches")
        return
    with TemporaryDirectory(prefix="orc-outputs-") as folder:
        outputs = ShippedOutputs(shipped, orchestrator, run.id, Path(folder) / "launches")
        outputs.refresh()
        yield outputs
