"""Beads: from task files and flags to runs, and the records of a workspace."""
