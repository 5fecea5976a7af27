"""Pure functions over records: figures, advice, repairs. Nothing here reads a file."""
