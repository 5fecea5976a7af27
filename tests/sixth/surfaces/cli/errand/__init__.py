"""The commands of errands."""
