"""The place where runs are kept while the suite runs: the repositories themselves, or with STORE=postgres a server."""

from __future__ import annotations

import os

import pytest

OWN_STORE = pytest.mark.skipif(
    os.environ.get("STORE") == "postgres",
    reason="about the store in the repository itself, and with STORE=postgres a server has it",
)
