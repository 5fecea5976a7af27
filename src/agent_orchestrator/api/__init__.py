"""What every surface talks to: the orchestrator of a repository, starting runs, taking them up again."""
