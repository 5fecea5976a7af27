"""Errands: one command, run until it passes or fails."""
