"""The commands of workflows: `orc run` and `orc init`."""
