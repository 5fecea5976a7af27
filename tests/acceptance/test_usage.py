"""`orc usage`, and agents that are defined by configuration alone."""

from __future__ import annotations

import re

from tests.acceptance.rig import ROOT, Rig

SCRIPT = """
- {step: planning, report: {status: COMPLETED}, cost_usd: 0.5, tokens: {input: 1200, output: 30, cache_read: 7, cache_write: 1}}
- {step: coding, report: {status: COMPLETED}, tokens: {input: 800, output: 20}}
- {step: "*", report: {status: COMPLETED}}
"""

CLI = """#!/usr/bin/env python3
import json, os, sys
prompt = open(sys.argv[sys.argv.index("--prompt-file") + 1]).read()
assert "## Report" in prompt and sys.argv[1:3] == ["--model", "small"], sys.argv
print(json.dumps({"session": "abc"}))
print(json.dumps({"type": "end", "tokens": {"prompt": 1000, "completion": 100}}))
json.dump({"status": "COMPLETED", "summary": "done"}, open(os.environ["REPORT_PATH"], "w"))
"""


def test_consumption_adds_up_and_what_is_unknown_is_said_so(rig: Rig) -> None:
    (rig.side / "script.yaml").write_text(SCRIPT)
    done = rig.orc("run", "--workflow", "workflow.yaml", "--rehearse", str(rig.side / "script.yaml"), "--run-id", "one")
    assert done.code == 0, done
    told = rig.ask("usage", "one", "--by", "step").out
    assert [line.split() for line in told.splitlines()] == [
        ["step", "launches", "input", "output", "cache", "read", "cache", "write", "cost"],
        ["coding", "1", "800", "20", "unknown", "unknown", "unknown"],
        ["planning", "1", "1,200", "30", "7", "1", "$0.50"],
        ["all", "2", "2,000", "50", ">=", "7", ">=", "1", ">=", "$0.50"],
    ]
    facts = rig.ask("usage", "--by", "agent", "--json").json
    assert facts["lines"]["scripted"] == facts["total"]
    assert (facts["total"]["cost_usd"], facts["total"]["unknown"]) == (
        0.5,
        {"cache_read_tokens": 1, "cache_write_tokens": 1, "cost_usd": 1},
    )
    (day,) = rig.ask("usage", "--by", "day", "--json").json["lines"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day)
    assert list(rig.ask("usage", "--by", "model", "--json").json["lines"]) == ["unknown"]


def test_what_was_spent_outlives_the_run_that_is_pruned(rig: Rig) -> None:
    (rig.side / "script.yaml").write_text(SCRIPT)
    rehearsed = ("run", "--workflow", "workflow.yaml", "--rehearse", str(rig.side / "script.yaml"), "--run-id")
    assert rig.orc(*rehearsed, "one").code == 0
    before = rig.ask("usage", "--by", "day", "--json").json
    assert rig.ask("prune", "--older-than", "0", "--yes", "--json").json["deleted"] == ["one"]
    assert rig.ask("usage", "--by", "day", "--json").json == {**before, "pruned": 2}
    assert "2 launches of them are of pruned runs.\n" in rig.ask("usage").out
    assert list(rig.ask("usage", "--by", "run", "--json").json["lines"]) == ["one (pruned)"]
    assert rig.ask("usage", "one", "--json").json["total"] == before["total"]
    assert rig.ask("usage", "two").code == 2
    again = rig.orc(*rehearsed, "one", "--day-budget-usd", "0.9", "--allow-unmetered", "--no-wait")
    assert again.code == 5, again
    assert list(rig.ask("usage", "--by", "run", "--json").json["lines"]) == ["one", "one (pruned)"]


def test_where_nothing_was_consumed_that_is_said(rig: Rig) -> None:
    assert rig.ask("usage").out == "No agent has reported anything that it consumed.\n"
    assert rig.ask("usage", "--json").json["total"]["cost_usd"] is None


def test_what_nobody_said_is_unknown_and_not_nothing(rig: Rig) -> None:
    run = rig.run().run
    spent = rig.ask("status", run, "--json").json["budget"]["spent"]
    assert (spent["cost_usd"], spent["tokens"]) == (None, None)
    assert spent["wall_s"] > 0


def test_the_example_of_the_docs_adds_an_agent_without_code(rig: Rig) -> None:
    (example,) = re.findall(r"```toml\n(\[agents\.tiny\].*?)```", (ROOT / "docs" / "agents.md").read_text("utf-8"), re.S)
    tools = rig.side / "bin"
    tools.mkdir()
    (tools / "tiny-agent").write_text(CLI)
    (tools / "tiny-agent").chmod(0o755)
    (rig.repo / ".orc.toml").write_text(example)
    path = rig.environment()["PATH"]
    done = rig.orc("run", "--workflow", "workflow.yaml", "--agent", "tiny", "--run-id", "one", env={"PATH": f"{tools}:{path}"})
    assert done.code == 0, done
    shown = rig.ask("show", "one", "coding", "--json").json
    assert shown["details"]["launches"][0]["session"] == "abc"
    (row,) = shown["usage"]
    assert (row["agent"], row["usage"]["input_tokens"], row["usage"]["model"]) == ("tiny", 1000, "small")
    assert row["usage"]["cost_usd"] == (1000 * 0.5 + 100 * 2.0) / 1_000_000
    assert "tiny" in rig.ask("usage", "one").out


def test_a_mistake_in_the_configuration_is_told_before_anything_starts(rig: Rig) -> None:
    (rig.repo / ".orc.toml").write_text("[agents.claude]\nmodle = 'opus'\n")
    refused = rig.ask_run()
    assert refused.code == 2
    assert ".orc.toml:2: [agents.claude]: unknown key modle; did you mean model?" in refused.err
    told = rig.ask("doctor")
    assert "unknown key modle" in told.out
    assert rig.ask("list").code == 0
