"""Loops: from flags to a loop, its successors, and loops taken over from state files."""
