"""The parts of the measurements, each a question of its own with its own time."""
