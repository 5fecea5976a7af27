"""The commands of `orc telemetry`, a file each."""
