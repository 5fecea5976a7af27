"""Phases: a task document is executed phase by phase, task by task, under a supervisor, until its criteria are met."""
