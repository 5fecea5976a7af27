"""Swarms: beads dispatched to agents, several at once, with a record of every attempt."""
