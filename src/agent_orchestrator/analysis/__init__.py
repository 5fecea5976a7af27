"""Pure functions over histories and records: what happened, how often, and what to do about it. Nothing here reads a file."""
