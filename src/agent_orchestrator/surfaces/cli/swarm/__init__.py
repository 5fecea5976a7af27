"""The commands of `orc swarm`, a file each."""
