"""The commands of `orc store`, a file each."""
