"""The commands for runs of every system, a file each; each holds a click command called `command`."""
