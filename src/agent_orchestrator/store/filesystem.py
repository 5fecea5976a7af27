"""The folder of a store: made for its owner alone, refused where locks and shared memory cannot be trusted."""

from __future__ import annotations

import contextlib
from pathlib import Path

from agent_orchestrator.beneath import write_plainly
from agent_orchestrator.errors import UnsupportedFilesystem

UNTRUSTED = frozenset({"nfs", "nfs4", "9p", "virtiofs", "drvfs", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs"})

MOUNTS = Path("/proc/self/mounts")


def make_folder(folder: Path, *, holds: Path) -> None:
    """Make the folder that is to hold a store: prompts and whatever agents write will lie there, for nobody else to read.

    Where the store stands already its folder's mode is left as a person may have set it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not holds.exists():
        with contextlib.suppress(PermissionError):  # somebody else's, who lets us in
            folder.chmod(0o700)
        # Outside of git, for the day that somebody makes a repository around it: it hides itself from `git add`.
        with contextlib.suppress(FileExistsError):  # another process makes the same store at this moment
            write_plainly(folder, folder / ".gitignore", b"*\n")


def filesystem_of(folder: Path, mounts: Path = MOUNTS) -> str:
    """Return the kind of file system a folder is on, as the kernel names it; "" where mounts cannot be read."""
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    place = str(folder.resolve())
    best, kind = "", ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        mount = fields[1].replace("\\040", " ")
        inside = place == mount or place.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, fields[2]
    return kind


def refuse_network_filesystem(folder: Path, mounts: Path = MOUNTS) -> None:
    """Raise when the folder's mount is of an untrusted kind; do nothing where mounts cannot be read."""
    kind = filesystem_of(folder, mounts)
    if kind in UNTRUSTED:
        raise UnsupportedFilesystem(path=folder, kind=kind)
