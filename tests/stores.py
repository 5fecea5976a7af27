"""The place where runs are kept while the suite runs: the repositories themselves, or with STORE=postgres a server."""

from __future__ import annotations

import os

import pytest

IS_SHARED = os.environ.get("STORE") == "postgres"
TOLD = ("--pass-env", "ORC_STORE") if IS_SHARED else ()
"""Options that tell agents where the server is: it is not ignorance that stops those who intrude."""
OWN_STORE = pytest.mark.skipif(
    IS_SHARED,
    reason="about the store in the repository itself, and with STORE=postgres a server has it",
)
