"""The store on PostgreSQL, for runs that are driven on several hosts. Whoever imports it pays for psycopg."""

from __future__ import annotations

from agent_orchestrator.store.postgres.schema import install
from agent_orchestrator.store.postgres.store import PostgresStore

__all__ = ["PostgresStore", "install"]
