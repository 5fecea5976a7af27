"""Walls around agents and checks; see the README."""
