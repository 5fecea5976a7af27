"""The pull request that a run is to open when it has completed: asked for when the run is made, and stored with it."""

from __future__ import annotations

import msgspec


class PullRequestPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pull request that somebody waits for."""

    closes: int = 0
    """The number of the issue that it closes; 0 for none."""
