"""A state file for library users to save and load. The engine does not use this: its truth is the journal."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from agent_orchestrator.models import RunState

__all__ = ["RunStatePersister"]


class RunStatePersister:
    """One state file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def save(self, state: RunState) -> None:
        """Write the file whole or not at all: UTF-8, two spaces, a temporary file put in its place."""
        text = json.dumps(state.to_dict(), indent=2, ensure_ascii=False) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def load(self) -> dict[str, Any] | None:
        """Load the file's object; None when there is no file. Text that is not JSON raises `json.JSONDecodeError`."""
        try:
            text = self.path.read_text("utf-8")
        except FileNotFoundError:
            return None
        document: dict[str, Any] = json.loads(text)
        return document
