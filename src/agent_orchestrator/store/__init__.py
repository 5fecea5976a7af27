"""Stores of journals: one port, an adapter a file, one conformance suite for all of them."""
