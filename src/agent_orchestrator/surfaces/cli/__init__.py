"""The command line `orc`: `main.py` is the entry, `commands/` has a file per command, loaded when it is used."""
