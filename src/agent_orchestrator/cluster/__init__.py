"""Runs on many hosts: workers, their wardens, the homes of runs, and where a run is placed."""
