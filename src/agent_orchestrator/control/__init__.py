"""What people ask for, made ready for the engine: a run from a workflow file, a run from a state file."""
