#!/usr/bin/env python3
"""A stand-in for a client: it writes the stream of one, act by act, as `parts.json` beside it says, and waits if it is held."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(os.path.abspath(sys.argv[0])).parent  # noqa: PTH100 - a link to this file stands beside its parts
MODEL = "claude-sonnet-4-5"


class Player:
    """One session."""

    def __init__(self, session: str) -> None:
        self._session, self._calls, self._input = session, 0, 0

    def write(self, kind: str, **fields: Any) -> None:
        sys.stdout.write(json.dumps({"type": kind, "session_id": self._session, **fields}) + "\n")
        sys.stdout.flush()

    def answer(self, block: dict[str, Any], tokens: int) -> None:
        """Write one answer of the model; each call reads what was said before."""
        self._calls += 1
        self._input += tokens
        usage = {"input_tokens": tokens, "cache_read_input_tokens": self._input, "output_tokens": 1}
        message = {"id": f"m{self._calls}", "model": MODEL, "content": [block], "usage": usage}
        self.write("assistant", message=message)

    def act(self, act: dict[str, Any]) -> None:
        tokens = act.get("tokens", 2_000)
        if "say" in act:
            self.answer({"type": "text", "text": act["say"]}, tokens)
        if "tool" in act:
            call = f"t{self._calls}"
            self.answer({"type": "tool_use", "id": call, "name": act["tool"], "input": act.get("on", {})}, tokens)
            _wait(act)
            result = {"type": "tool_result", "tool_use_id": call, "content": "ok"}
            self.write("user", message={"content": [result]})
        else:
            _wait(act)

    def end(self, report: dict[str, Any]) -> None:
        used: dict[str, float] = {"inputTokens": self._input, "outputTokens": 100 * self._calls, "costUSD": 0.01}
        used |= {"cacheReadInputTokens": 2 * self._input, "cacheCreationInputTokens": 0}
        common = {"status": "COMPLETED", "summary": "done", "artifacts": None, "metrics": None, "logs": None}
        self.write(
            "result",
            subtype="success",
            is_error=False,
            result="",
            total_cost_usd=self._input / 100_000,
            num_turns=self._calls,
            modelUsage={MODEL: used},
            structured_output={**common, **report},
        )


def _wait(act: dict[str, Any]) -> None:
    """Wait until a file is there that lets the play go on."""
    while "until" in act and not (HERE / act["until"]).exists():
        time.sleep(0.02)


def main() -> None:
    sys.stdin.read()
    parts = json.loads((HERE / "parts.json").read_text())
    unit, turn, iteration = (os.environ.get(name, "") for name in ("STEP_ID", "TEAM_TURN", "ITERATION"))
    names = (
        f"{unit}.{turn}.{iteration}",
        f"{unit}.{turn}",
        f"{unit}@{iteration}",
        unit,
        turn,
        os.environ.get("AGENT_ID", ""),
        "*",
    )
    part: dict[str, Any] = next((parts[name] for name in names if name in parts), {})
    player = Player(f"session-{unit}-{os.getpid()}")
    player.write("system", subtype="init", model=MODEL, mcp_servers=[])
    for act in part.get("acts", ()):
        player.act(act)
    for path, text in part.get("writes", {}).items():
        with Path(path).open("a") as file:
            file.write(text)
    player.end(part.get("report", {}))


if __name__ == "__main__":
    main()
