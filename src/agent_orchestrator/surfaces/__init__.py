"""What people and other programs use: each surface talks to `api.Orchestrator` and to nothing below it that acts."""
