"""The command line `orc`: `main.py` is the entry; `commands/` and a folder per system have a file per command."""
