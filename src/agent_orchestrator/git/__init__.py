"""The one place that knows git: the directories of a repository, working trees, the worktrees of runs."""
