"""The places that a wall opens for a program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent_orchestrator.core.sandbox import Sandbox, Wall
from agent_orchestrator.engine.walls.places import PRIVATE, Access, Surroundings, find_places


@pytest.fixture
def hidden() -> Iterator[Path]:
    """A folder below one that a wall replaces."""
    with TemporaryDirectory(dir=PRIVATE[0]) as folder:
        yield Path(folder).resolve()


@pytest.mark.parametrize("given", ["by its path", "by its name"])
def test_a_program_that_is_a_link_can_be_read_where_it_leads_to(hidden: Path, given: str) -> None:
    root = hidden
    bin_folder, package, other = root / "bin", root / "package" / "bundle", root / "other"
    for folder in (bin_folder, package, other):
        folder.mkdir(parents=True)
    (package / "client.js").write_text("#!/usr/bin/env node\n")
    (package / "client.js").chmod(0o755)
    (bin_folder / "client").symlink_to("../package/bundle/client.js")
    by_name = given == "by its name"
    around = Surroundings(
        repo=Path("/repo"),
        store=Path("/repo/.git/orc"),
        tree=Path("/repo"),
        launch=Path("/repo/.git/orc/launch"),
        env={"PATH": str(bin_folder) if by_name else "/usr/bin"},
        programs=("client" if by_name else str(bin_folder / "client"),),
    )
    opened = {path for access, path in find_places(Sandbox(wall=Wall.BWRAP), around).rules if access is Access.READ}
    assert {path for path in opened if path.startswith(f"{root}/")} == {str(bin_folder), str(package)}
