"""Measurements: ratios taken side by side in one run, against the barest program that does the same."""
