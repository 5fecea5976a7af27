"""The commands of `orc schedule`, a file each."""
