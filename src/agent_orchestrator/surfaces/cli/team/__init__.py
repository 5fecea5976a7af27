"""The commands of `orc team`, a file each."""
