"""The commands of `orc loop`, a file each."""
