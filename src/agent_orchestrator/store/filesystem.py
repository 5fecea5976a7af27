"""Recognises file systems on which locks and shared memory cannot be trusted."""

from __future__ import annotations

from pathlib import Path

from agent_orchestrator.errors import UnsupportedFilesystem

UNTRUSTED = frozenset({"nfs", "nfs4", "9p", "virtiofs", "drvfs", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs"})


MOUNTS = Path("/proc/self/mounts")


def filesystem_of(folder: Path, mounts: Path = MOUNTS) -> str:
    """The kind of file system a folder is on, as the kernel names it; "" where mounts cannot be read."""
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
    """Raises when the folder's mount is of an untrusted kind; says nothing where mounts cannot be read."""
    kind = filesystem_of(folder, mounts)
    if kind in UNTRUSTED:
        raise UnsupportedFilesystem(path=folder, kind=kind)
