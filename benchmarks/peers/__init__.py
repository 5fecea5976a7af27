"""Other engines doing the same work: each a program for its own environment, asked as benchmarks/protocol.py says."""
