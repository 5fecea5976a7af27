"""The surfaces that people and other programs use: each talks to `runs.Orchestrator` and to nothing below it that acts."""
