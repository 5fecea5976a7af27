"""Loops: an agent works on one task, iteration after iteration, until a check that the engine runs itself passes."""
