"""The pure vocabulary shared by all systems: no clock, no I/O, no randomness.

It knows runs, units, effects and inputs; it must never know a workflow, a loop or a team.
"""
