"""Workflows: from a file and flags to a run, and back to a changed file."""
