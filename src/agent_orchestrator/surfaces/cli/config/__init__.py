"""The commands of `orc config`, a file each."""
