"""The commands of `orc phases`, a file each."""
