"""The commands of `orc notify`, a file each."""
