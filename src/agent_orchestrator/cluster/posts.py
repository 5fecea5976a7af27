"""The notifications of the runs that a worker drives: told while they are driven, and for as long after as anything waits.

Subscribers are those of the worker's own configuration, and of a repository's file where whoever runs the worker has agreed to
it, as the newest run of the repository has them. What they have been told stands in the store, and one process of all hosts
tells each of them at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from agent_orchestrator.runs.notify.courier import SPACING_S
from agent_orchestrator.runs.notify.notifier import Notifier, begin_notifying
from agent_orchestrator.runs.orchestrator import Orchestrator

QUIET_S = 1.5 * SPACING_S
"""Without a run of its repository a post goes on for so long: what follows a message closely waits for that long at most."""


class _Post(msgspec.Struct, eq=False):
    """The post of one repository on this host."""

    notifier: Notifier | None = None
    runs: int = 0
    """The runs of the repository that are driven here now."""
    timer: threading.Timer | None = None


class Posts:
    """The posts of all repositories that a worker has driven runs of."""

    def __init__(self, root: Path, say: Callable[[str], None]) -> None:
        self._root, self._say = root, say
        self._posts: dict[str, _Post] = {}
        self._alone = threading.Lock()

    @contextmanager
    def telling(self, orchestrator: Orchestrator, repository: str) -> Iterator[None]:
        """Tell subscribers what happens in a run of a repository; nobody waits for the last of it."""
        notifier = begin_notifying(orchestrator, (), self._say, self._root)
        with self._alone:
            post = self._posts.setdefault(repository, _Post())
            before, post.notifier, post.runs = post.notifier, notifier, post.runs + 1
            if post.timer is not None:
                post.timer.cancel()
        if before is not None:
            before.end()
        try:
            yield
        finally:
            with self._alone:
                post.runs -= 1
                if not post.runs:
                    self._end_later(post)

    def _end_later(self, post: _Post) -> None:
        post.timer = threading.Timer(QUIET_S, self._end, (post,))
        post.timer.daemon = True
        post.timer.start()

    def _end(self, post: _Post) -> None:
        """End a post without runs, unless something of it still waits."""
        with self._alone:
            if post.runs or post.notifier is None:
                return
            if post.notifier.has_problems:
                self._end_later(post)
            else:
                post.notifier.end()
                post.notifier = None

    def finish(self) -> None:
        """Give everybody a last turn, for a while: the worker leaves."""
        for post in self._posts.values():
            if post.notifier is not None:
                post.notifier.finish()
