"""One file per command, named after it; each holds a click command called `command`."""
