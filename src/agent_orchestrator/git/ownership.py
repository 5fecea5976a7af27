"""The owners of the files of a working tree: git, a person or an agent, or orc.

What a person's rules ignore is nobody's work, nor is what tools make for themselves (`MADE_BY_TOOLS`). Ours is what our block
in `.git/info/exclude` names for this very tree. All the rest is work: it counts in trees and diffs, is committed, and is never
deleted while no commit has it.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from agent_orchestrator.core.files import DRAFT
from agent_orchestrator.errors import Shortage
from agent_orchestrator.git.command import ask_git, find_setting, git, give_names, hold_lock, list_names, select_names
from agent_orchestrator.git.environment import current_environment, scratch_folder
from agent_orchestrator.git.exclude import as_patterns, our_lines, read_lines, read_rules
from agent_orchestrator.git.repository import common_dir, top_level
from agent_orchestrator.git.settings import FileMark
from agent_orchestrator.git.worktree import list_included

GONE = "0 " + "0" * 40
SETTINGS = ".orc.toml"
"""A person's settings, read where he works: in a checkout of his they are his business, not a run's to commit."""
MADE_BY_TOOLS = frozenset({"__pycache__", "node_modules", ".venv", ".DS_Store"})
"""Files and folders that no one commits by intent: a repository that does not ignore them yet should not get them from a run."""
_FOR_GIT = ("~", "%(", ":(")
"""The beginnings of a path in git's settings whose meaning only git knows."""
NOT_WORK = MADE_BY_TOOLS | {".git"}


def list_new(top: Path) -> list[str]:
    """Return files that git does not track and that are work; a repository inside this one ends in `/`."""
    rules = read_rules(top)
    lines = our_lines(rules, top)
    ours = as_patterns(lines)
    # Git compares every file with every line: of ours it gets the folders, so that it does not look into them.
    folders = [line for line in lines if line.endswith("/")]
    with _kept_as_file([*rules.others, *folders]) as file:
        general = [f"--exclude-from={one}" for one in _general_rules(top)]
        how = ("ls-files", "-z", "--others", "--exclude-per-directory=.gitignore", *general, f"--exclude-from={file}")
        # What is ours is no work, also where a person's `!pattern` shows it to him.
        found = ours.leave_out(list_names(top, *how))
    copied = list_copied(top)
    if _is_main(top):
        found = [name for name in found if name.rpartition("/")[2] != SETTINGS]
    return _leave_out_made(top, [name for name in found if name not in copied])


def _leave_out_made(top: Path, names: list[str]) -> list[str]:
    """Return the files that are not made by tools; where git tracks some of a kind, all of it is work."""
    kinds = {name: MADE_BY_TOOLS.intersection(name.split("/")) for name in names}
    left_out = {kind for kind in set().union(*kinds.values()) if not _tracks(top, kind)}
    return [name for name in names if not kinds[name] & left_out] if left_out else names


def _tracks(top: Path, kind: str) -> bool:
    return bool(list_names(top, "ls-files", "-z", "--cached", "--", f":(top,glob)**/{kind}", f":(top,glob)**/{kind}/**"))


def list_ours(top: Path, env: Mapping[str, str] | None = None) -> list[str]:
    """Return files that git tracks and we write over: somebody committed them once."""
    return _list_protected(top, read_lines(top), env, settings=False)


def list_untouched(top: Path, env: Mapping[str, str] | None = None, index: FileMark = None) -> list[str]:
    """Return files that git tracks and no commit of a run changes: ours, and a person's settings where he works.

    They are those of an index; where `index` marks it, they are remembered.
    """
    settings, lines = _is_main(top), read_lines(top)
    if index is None:
        return _list_protected(top, lines, env, settings=settings)
    known = _untouched.get(top)
    if known is None or known[:3] != (index, lines, settings):
        known = _untouched[top] = (index, lines, settings, _list_protected(top, lines, env, settings=settings))
    return known[3]


_untouched: dict[Path, tuple[FileMark, tuple[str, ...], bool, list[str]]] = {}


def _list_protected(top: Path, lines: tuple[str, ...], env: Mapping[str, str] | None, *, settings: bool) -> list[str]:
    places = [*_places(lines), *((f":(top,glob)**/{SETTINGS}",) if settings else ())]
    if not places:
        return []
    ours = as_patterns(lines)
    there = list_names(top, "ls-files", "-z", "--cached", "--", *places, env=env)
    return sorted(name for name in there if (settings and name.rpartition("/")[2] == SETTINGS) or ours.match(name))


def _places(lines: Sequence[str]) -> list[str]:
    """Return arguments that select the folders in which our files may lie: a few, where there are thousands of lines."""
    places: dict[str, None] = {}
    for line in lines:
        folder, _, name = line.strip("/").rpartition("/")
        name = f"{name}/**" if line.endswith("/") else name
        places[f":(top,glob){folder}/**" if folder else f":(top,glob){name}"] = None
    return list(places)


def _is_main(top: Path) -> bool:
    """Return True if a working tree is the repository's own, where a person works, and no worktree of it."""
    return (top / ".git").is_dir()


def select_but(names: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments that select everything but these files."""
    return ("--", ":/", *(f":(top,exclude,literal){name}" for name in names))


def list_uncommitted(workdir: Path) -> list[str]:
    """Return files whose content no commit has: changed, deleted or new; what is ours never counts."""
    top = top_level(workdir) or workdir
    how = ("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames")
    changed = [entry[3:] for entry in list_names(top, *how, *select_but(list_untouched(top)))]
    return sorted({*changed, *list_new(top)})


class TreeWork(NamedTuple):
    """The files by which a working tree differs from its index, those that are ours perhaps among the first two."""

    gone: Sequence[str]
    changed: Sequence[str]
    new: Sequence[str]
    """As `list_new` gives them."""
    compared: FileMark
    """The index that the tree was compared with."""


def stage_work(workdir: Path, env: Mapping[str, str], work: TreeWork | None = None, index: FileMark = None) -> None:
    """Fill an index with the working tree; our own files are in it as the current commit has them.

    Our print-outs may be rewritten at any moment: they are never read here, so that there is nothing to race with. `work` is for
    whoever has just looked, `index` marks the file that this index is a copy of.
    """
    top = top_level(workdir) or workdir
    ours = list_untouched(top, env, index)
    if work is None or work.compared != index:
        work = _find_work(top, ours, env, index)
    untouched = set(ours)
    gone, changed = ([name for name in names if name not in untouched] for names in (work.gone, work.changed))
    if gone:
        give_names(top, "update-index", "--force-remove", "-z", "--stdin", names=gone, env=env)
    if ours:
        drop_from_index(top, ours, env)
        if ask_git(top, "rev-parse", "--verify", "--quiet", "HEAD", answers=(0, 1))[0] == 0:
            take_from_tree(top, "HEAD", ours, env)
    added = [name for found in work.new for name in (_list_recorded(top, found) if found.endswith("/") else (found,))]
    if changed or added:
        give_names(top, "update-index", "--add", "--remove", "-z", "--stdin", names=[*changed, *added], env=env)


def _find_work(top: Path, ours: Sequence[str], env: Mapping[str, str], index: FileMark) -> TreeWork:
    """Find what has to be put into an index; `git add` would also look into repositories inside this one."""
    fields = list_names(top, "diff-files", "--name-status", "-z", *select_but(ours), env=env)
    changed = dict(zip(fields[1::2], fields[::2], strict=True))
    gone = [name for name, how in changed.items() if how == "D" or not os.path.lexists(top / name)]
    return TreeWork(gone, [name for name in changed if name not in set(gone)], list_new(top), index)


def _list_recorded(top: Path, inner: str) -> Sequence[str]:
    """Return what a tree records of a repository inside this one, which ends in `/`.

    One that an agent made in its worktree is work, file by file: git would record its commit alone, which nobody else has. Where
    a person works there may be clones of any size, so there it is the commit. A worktree has its work on a branch of its own.
    """
    if (top / inner / ".git").is_file():
        return ()
    if not _is_main(top):
        return _list_inside(top, inner)
    return (inner.rstrip("/"),) if _has_commit(top / inner) else ()


def _list_inside(top: Path, inner: str) -> list[str]:
    """Return the files of a repository inside this one that no rule ignores, by this one's git: the other's is an agent's."""
    found, folders = [], [inner]
    while folders:
        entries = [entry for folder in folders for entry in os.scandir(top / folder) if entry.name not in NOT_WORK]
        names = {_name_entry(top, entry): entry for entry in entries}
        for name in select_names(top, "check-ignore", "--no-index", names=names) if names else ():
            del names[name]
        folders = [name for name in names if name.endswith("/")]
        found += [name for name in names if not name.endswith("/")]
    return found


def _name_entry(top: Path, entry: os.DirEntry[str]) -> str:
    name = os.path.relpath(entry.path, top)
    return f"{name}/" if entry.is_dir(follow_symlinks=False) else name


def list_tracked(home: Path, names: Sequence[str]) -> list[str]:
    """Return those of these files below a folder that git tracks; none outside a repository."""
    if top_level(home) is None or not names:
        return []
    return list_names(home, "ls-files", "-z", "--", *names, env={"GIT_LITERAL_PATHSPECS": "1"})


def put_back(home: Path, names: Sequence[str]) -> None:
    """Bring files back as the index has them, where nothing stands in their place; a file is there whole or not at all."""
    missing = [name for name in names if not os.path.lexists(home / name)]
    if not missing:
        return
    with hold_lock(home, "putting-back"):
        draft = home / ".agents" / f"put-back{DRAFT}"
        shutil.rmtree(draft, ignore_errors=True)
        top = top_level(home) or home
        below = home.relative_to(top)
        give_names(home, "checkout-index", f"--prefix={draft.relative_to(top)}/", "-z", "--stdin", names=missing)
        for name in missing:
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / below / name).replace(home / name)
        shutil.rmtree(draft)


def index_commit(workdir: Path, commit: str, env: Mapping[str, str] | None = None) -> None:
    """Fill the index with a commit and leave the files alone.

    `--reset` keeps what the index says about files besides their content: in a sparse checkout, which of them are not to be
    there. Without that they would look deleted.
    """
    git(workdir, "read-tree", "--reset", commit, env=env)


def drop_from_index(top: Path, names: Sequence[str], env: Mapping[str, str]) -> None:
    """Take files out of an index, whatever stands in them."""
    if names:
        give_names(top, "update-index", "-z", "--index-info", names=[f"{GONE}\t{name}" for name in names], env=env)


def take_from_tree(top: Path, tree: str, names: Sequence[str], env: Mapping[str, str]) -> None:
    """Put files into an index as a tree has them; those that it does not have are left as they are."""
    if not names:
        return  # To git no name at all would mean everything.
    entries = list_names(top, "ls-tree", "-r", "-z", "--full-tree", tree, "--", *names, env={"GIT_LITERAL_PATHSPECS": "1"})
    give_names(top, "update-index", "-z", "--index-info", names=entries, env=env)


def _has_commit(repository: Path) -> bool:
    """Return True if git can record a repository inside this one: only by its commit."""
    env = {"GIT_DIR": str(repository / ".git")}
    return ask_git(repository.parent, "rev-parse", "--verify", "--quiet", "HEAD", env=env, answers=(0, 1, 128))[0] == 0


def list_copied(top: Path) -> set[str]:
    """Return files that were copied into a worktree for its agent and are still what the repository has."""
    common = common_dir(top)
    if common is None or common.parent == top:
        return set()
    repo = common.parent
    return {name for name in list_included(repo, top) if _is_same(repo / name, top / name)}


def _is_same(one: Path, other: Path) -> bool:
    try:
        if one.is_symlink() or other.is_symlink():
            return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
        return filecmp.cmp(one, other, shallow=False)
    except OSError:
        return False


@contextmanager
def _kept_as_file(lines: list[str]) -> Iterator[str]:
    """Write lines to a file for `--exclude-from`, which reads nothing but regular files."""
    import tempfile

    folder = scratch_folder()
    try:
        file = tempfile.NamedTemporaryFile(dir=folder, prefix="orc-rules-")  # noqa: SIM115 - closed below
    except OSError as error:
        raise Shortage(detail=f"No temporary file can be made in {folder}: {error.strerror}.") from error
    with file:
        file.write("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
        file.flush()
        yield file.name


def _general_rules(top: Path) -> tuple[Path, ...]:
    """Return the person's rules for all repositories, which `git status` knows too."""
    variables = current_environment().variables
    home, folder = variables.get("HOME"), variables.get("XDG_CONFIG_HOME")
    folder = folder or (f"{home}/.config" if home else None)
    said = find_setting(top, "core.excludesfile")
    if said and home and said.startswith("~/"):
        said = f"{home}{said[1:]}"
    elif said and said.startswith(_FOR_GIT):
        said = ask_git(top, "config", "--type=path", "--get", "core.excludesFile", answers=(0, 1))[1]
    file = Path(top, said) if said else Path(folder, "git", "ignore") if folder else None
    return (file,) if file is not None and file.is_file() else ()
