"""The one place that knows git: where repositories keep things, what a working tree is, worktrees of runs."""
