"""The proof: `python -m proof` breaks the product in every way that is known, and prints what was tried and what broke."""

from __future__ import annotations

import os

# Read by the rigs of the tests when they are imported: a proof goes on for long, on machines that have other things to do.
os.environ.setdefault("ORC_PATIENCE_S", "200")
