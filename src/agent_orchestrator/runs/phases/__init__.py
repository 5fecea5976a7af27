"""Task documents: from a document and flags to a run on its branch, and what it publishes."""
