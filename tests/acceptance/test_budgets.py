"""Budgets and rate limits as a user meets them: real programs, real processes, `kill -9` in between."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Sequence

import pytest

from tests.acceptance.rig import ROOT, Result, Rig, wait_until

METERED = """\
import json, os, sys, time
here, calls = os.path.dirname(os.path.realpath(__file__)), int(os.environ.get("CALLS", "1000"))
for number in range(calls):
    while os.path.exists(os.path.join(here, "hold")):
        time.sleep(0.02)
    with open(os.path.join(here, "calls.log"), "a") as log:
        log.write(os.environ["STEP_ID"] + "\\n")
    time.sleep(0.4)
    print(json.dumps({"cost": 0.05, "in": 100, "out": 10}), flush=True)
"""
"""Writes down each call when it begins, and says what it cost when it is over; begins none while there is a file `hold`."""

CLAUDE = """\
#!/usr/bin/env python3
import json, os, sys, time
here = os.path.dirname(os.path.realpath(__file__))
with open(os.path.join(here, "claude.log"), "a") as log:
    log.write(json.dumps([os.environ["RUN_ID"], os.environ["STEP_ATTEMPT"], sys.argv[1:]]) + "\\n")
print(json.dumps({"type": "system", "subtype": "init", "session_id": "s1", "model": "m"}))
reset = os.path.join(here, "reset")
if not os.path.exists(reset):
    with open(reset, "w") as file:
        file.write(str(int(time.time()) + int(os.environ["LIMITED_S"])))
until = int(open(reset).read())
if time.time() < until:
    info = {"status": "rejected", "rateLimitType": "five_hour", "resetsAt": until}
    print(json.dumps({"type": "rate_limit_event", "rate_limit_info": info}))
    print(json.dumps({"type": "result", "subtype": "success", "is_error": True, "api_error_status": 429,
                      "result": "API Error: Request rejected (429)"}))
    sys.exit(1)
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "done",
                  "structured_output": {"status": "COMPLETED"}, "total_cost_usd": 0.2, "num_turns": 4,
                  "modelUsage": {"m": {"inputTokens": 1, "outputTokens": 1, "cacheReadInputTokens": 0,
                                       "cacheCreationInputTokens": 0, "costUSD": 0.2, "costBasis": "list"}}}))
"""

FOUR = "name: four\nsteps:\n" + "".join(f"  - {{id: s{n}, agent: meter, prompt: prompt.md}}\n" for n in range(4))
TWO = "name: two\nsteps:\n" + "".join(f"  - {{id: s{n}, agent: claude, prompt: prompt.md}}\n" for n in range(2))


@pytest.fixture
def metered(rig: Rig) -> Rig:
    """A repository whose agent says what each call cost."""
    (rig.side / "meter.py").write_text(METERED)
    command = json.dumps(["python3", str(rig.side / "meter.py")])
    (rig.repo / ".orc.toml").write_text(
        f'[agents.meter]\ncommand = {command}\noutput = "json-lines"\nusage_counts = "sum"\n'
        'usage = { cost_usd = "cost", input = "in", output = "out" }\n'
    )
    rig.workflow(FOUR)
    return rig


@pytest.fixture
def limited(rig: Rig) -> Rig:
    """A repository whose claude is refused for a while after its first call."""
    program = rig.side / "claude.py"
    program.write_text(CLAUDE)
    program.chmod(0o755)
    (rig.repo / ".orc.toml").write_text(f'[agents.claude]\nbinary = "{program}"\n')
    rig.workflow(TWO)
    return rig


def run_of(rig: Rig, *arguments: str) -> Result:
    return rig.orc("run", "--workflow", "workflow.yaml", *arguments)


def calls(rig: Rig) -> int:
    log = rig.side / "calls.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def launched(rig: Rig) -> list[tuple[str, str, Sequence[str]]]:
    log = rig.side / "claude.log"
    return [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []


def test_four_agents_side_by_side_never_pass_a_dollar_by_more_than_one_call(metered: Rig) -> None:
    done = run_of(metered, "--budget-usd", "1", "--run-id", "r1")
    assert done.code == 5, done
    assert "raise it with: orc resume r1 --budget-usd N" in done.out
    assert re.search(r"(75|90) % of the run's budget is spent", done.out), "one warning at least: a slow machine sees two at once"
    spent = 0.05 * calls(metered)
    assert 0.5 <= spent <= 1.05, "calls that were broken off are counted"
    told = metered.ask("usage", "r1", "--json").json
    assert told["total"]["cost_usd"] <= spent + 1e-9
    assert told["budget"]["limits"]["run"] == {"cost_usd": 1.0}
    assert told["budget"]["left"]["cost_usd"] == pytest.approx(1.0 - told["total"]["cost_usd"])
    assert told["budget"]["reserved"] == {"cost_usd": 0.0, "tokens": 0}
    assert "of the run's $1.00 spent" in metered.ask("status", "r1").out
    assert {step["attempts"] for step in metered.state("r1")["steps"].values()} == {1}


def test_what_agents_use_counts_through_a_kill_of_the_engine(metered: Rig) -> None:
    running = metered.start("run", "--workflow", "workflow.yaml", "--budget-usd", "1", "--run-id", "r1")
    wait_until(lambda: calls(metered) >= 8)
    hold = metered.side / "hold"
    hold.touch()  # What is spent while nobody watches is bounded by nothing.
    running.signal(signal.SIGKILL)
    running.end()
    resumed = metered.start("resume", "r1")
    # Its first line comes before the engine is even loaded; that the run is taken up again is what says that somebody watches.
    wait_until(lambda: metered.ask("history", "r1", "--json").out.count('"taken_up"') == 2)
    hold.unlink()
    done = resumed.end()
    assert done.code == 5, done
    assert 0.5 <= 0.05 * calls(metered) <= 1.05
    assert {step["attempts"] for step in metered.state("r1")["steps"].values()} == {1}


def test_a_higher_budget_goes_on_with_the_same_attempts(metered: Rig) -> None:
    first = run_of(metered, "--budget-usd", "0.3", "--run-id", "r1", "--env", "CALLS=3")
    assert first.code == 5, first
    done = metered.orc("resume", "r1", "--max-cost", "$5")
    assert done.code == 0, done
    assert {step["attempts"] for step in metered.state("r1")["steps"].values()} == {1}
    assert metered.ask("show", "r1", "--json").json["budget"]["limits"]["run"]["cost_usd"] == 5.0


def test_what_was_spent_stays_spent_across_a_rewind(metered: Rig) -> None:
    steps = "".join(f"  - {{id: s{n}, agent: meter, prompt: prompt.md, needs: [{f's{n - 1}' if n else ''}]}}\n" for n in range(2))
    metered.workflow(f"name: two\nsteps:\n{steps}")
    done = run_of(metered, "--run-id", "back", "--env", "CALLS=2", "--budget-usd", "0.35")
    assert done.code == 0, done
    assert metered.orc("rewind", "back", "--to", "s0").code == 0
    spent = metered.orc("status", "back", "--json").json["budget"]["spent"]["cost_usd"]
    assert spent == pytest.approx(0.2), "the money of what was left behind is gone all the same"
    assert metered.orc("rewind", "back", "--to", "start").code == 0
    again = metered.orc("resume", "back")
    assert again.code == 5, again
    assert len((metered.side / "calls.log").read_text().splitlines()) <= 8
    assert metered.orc("status", "back", "--json").json["budget"]["spent"]["cost_usd"] <= 0.4
    assert metered.orc("resume", "back", "--budget-usd", "1").code == 0
    ended = metered.orc("status", "back", "--json").json
    assert (ended["status"], ended["budget"]["spent"]["cost_usd"] >= 0.4) == ("completed", True)


def test_whoever_drives_the_run_can_be_told_a_budget_from_another_terminal(metered: Rig) -> None:
    running = metered.start("run", "--workflow", "workflow.yaml", "--run-id", "r1")
    wait_until(lambda: calls(metered) >= 4)
    told = metered.orc("resume", "r1", "--budget-usd", "0.6")
    assert told.code == 0, told
    done = running.end()
    assert done.code == 5, done
    assert calls(metered) < 200, "agents that would make 1000 calls each, and that nobody had to watch closely, were stopped"
    assert metered.ask("status", "r1", "--json").json["stop"] == "budget_exhausted"


def test_a_days_budget_comes_from_the_configuration_and_a_flag_overrides_it(metered: Rig) -> None:
    config = metered.repo / ".orc.toml"
    config.write_text(config.read_text() + "\n[budget]\nday_usd = 0.2\nstep_usd = 9\n")
    first = run_of(metered, "--run-id", "r1", "--env", "CALLS=2")
    assert first.code == 5, first
    assert "of the day's budget of $0.20 is spent" in first.out
    second = run_of(metered, "--run-id", "r2", "--shared-tree", "--env", "CALLS=1")
    assert second.code == 5, second
    done = metered.orc("resume", "r1", "--day-budget-usd", "5")
    assert done.code == 0, done
    assert metered.ask("status", "r1", "--json").json["budget"]["day"]["left"]["cost_usd"] > 4


def test_working_time_is_a_budget(metered: Rig) -> None:
    done = run_of(metered, "--max-time", "1s", "--run-id", "r1")
    assert done.code == 5, done
    assert "the run's time of 1.0s is used up; raise it with: orc resume r1 --max-time TIME" in done.out


@pytest.mark.parametrize("by", ["workflow", "configuration"])
def test_the_time_of_a_step_is_a_budget_whatever_its_agent_says(by: str, rig: Rig) -> None:
    given = ", budget_time: 1s" if by == "workflow" else ""
    rig.workflow(f"name: slow\nsteps:\n  - {{id: a, agent: x, prompt: prompt.md{given}}}\n")
    if by == "configuration":
        (rig.repo / ".orc.toml").write_text('[budget]\nstep_time = "1s"\nday_time = "2h"\n')
    done = rig.orc("run", "--workflow", "workflow.yaml", "--agent-command", "sleep 60")
    assert done.code == 5, done
    assert "of the step's time of 1.0s is spent" in done.out
    assert rig.state(done.run)["steps"]["a"]["attempts"] == 1


def test_an_agent_that_does_not_say_what_it_costs_is_refused_under_a_budget(rig: Rig) -> None:
    refused = rig.ask_run("--budget-usd", "5")
    assert refused.code == 2
    assert "wrapper does not say what it costs, and unknown is not zero" in refused.err
    assert rig.ask("list").out.startswith("There are no runs")
    assert rig.run("--budget-usd", "5", "--allow-unmetered").code == 0


def test_a_stored_run_is_not_given_a_budget_that_its_agent_would_escape(rig: Rig) -> None:
    rig.workflow("name: w\nsteps: [{id: s, agent: coder, prompt: prompt.md}]\n")
    assert rig.orc("run", "--workflow", "workflow.yaml", "--agent-command", "false", "--run-id", "r1").code == 1
    refused = rig.orc("resume", "r1", "--budget-usd", "5")
    assert refused.code == 2
    assert "command does not say what it costs, and unknown is not zero" in refused.err
    assert "budget" not in rig.orc("status", "r1").out
    assert "may spend $5.00" in rig.orc("resume", "r1", "--budget-usd", "5", "--allow-unmetered").out


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--budget-usd", "nan", "a positive amount"),
        ("--budget-usd", "-1", "a positive amount"),
        ("--max-cost", "abc", "a positive amount"),
        ("--budget-usd", "inf", "a positive amount"),
        ("--budget-usd", "1_000", "a positive amount"),
        ("--budget-tokens", "1.5", "a whole number"),
        ("--budget-tokens", "0", "a whole number"),
        ("--max-time", "-2h", "a positive duration"),
        ("--day-budget-usd", "$", "a positive amount"),
    ],
)
def test_a_limit_that_is_no_number_is_refused(flag: str, value: str, said: str, rig: Rig) -> None:
    for command in (("run", "--workflow", "workflow.yaml", "--rehearse", "x.yaml"), ("resume", "r1")):
        (rig.repo / "x.yaml").write_text("[]\n")
        refused = rig.ask(*command, flag, value)
        assert refused.code == 2, refused
        assert said in refused.err


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("day_usd = -1", "[budget]: day_usd is -1: it must be a positive amount"),
        ("day_eur = 1", "[budget]: unknown key day_eur"),
        ("run_tokens = 1.5", "[budget]: run_tokens is 1.5: it must be a whole number"),
        ("allow_unmetered = 1", "[budget]: allow_unmetered is 1: it must be true or false"),
    ],
)
def test_a_mistake_in_the_configured_budget_is_told_with_its_key(table: str, said: str, rig: Rig) -> None:
    (rig.repo / ".orc.toml").write_text(f"[budget]\n{table}\n")
    refused = rig.ask_run()
    assert refused.code == 2
    assert said in refused.err


def test_a_steps_budget_that_is_no_number_is_told_with_its_line(rig: Rig) -> None:
    rig.workflow("steps:\n  - {id: a, agent: x, prompt: prompt.md, budget_usd: lots}\n")
    refused = rig.ask("validate", "workflow.yaml")
    assert refused.code == 2
    assert "workflow.yaml:2" in refused.err + refused.out
    assert "budget_usd" in refused.err + refused.out


TINY = """\
#!/usr/bin/env python3
import json, os, pathlib, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert "Do " in pathlib.Path(given["--prompt-file"]).read_text()
print(json.dumps({"session": "t1", "tokens": {"prompt": 1_000_000, "completion": 100_000}}))
json.dump({"status": "COMPLETED", "summary": given["--model"]}, open(os.environ["REPORT_PATH"], "w"))
"""


def test_the_page_on_agents_adds_a_cli_by_configuration_alone(rig: Rig) -> None:
    """The example is taken from the page as it stands."""
    page = (ROOT / "docs" / "agents.md").read_text("utf-8")
    (example,) = [block for block in re.findall(r"^```toml\n(.*?)^```$", page, re.M | re.S) if "[agents.tiny]" in block]
    (rig.repo / ".orc.toml").write_text(example)
    program = rig.side / "tiny-agent"
    program.write_text(TINY)
    program.chmod(0o755)
    rig.workflow("steps:\n  - {id: a, agent: coder, prompt: prompt.md}\n")
    path = {"PATH": f"{rig.side}:{os.environ['PATH']}"}
    done = rig.orc("run", "--workflow", "workflow.yaml", "--agent", "tiny", "--run-id", "r1", "--budget-usd", "5", env=path)
    assert done.code == 0, done
    (line,) = rig.ask("usage", "r1", "--json").json["lines"].values()
    assert (line["input_tokens"], line["output_tokens"]) == (1_000_000, 100_000)
    assert line["cost_usd"] == pytest.approx(0.5 + 0.2), "by the prices of the example"


# Rate limits


def test_a_rate_limit_parks_the_run_and_all_others_on_the_account(limited: Rig) -> None:
    parked = run_of(limited, "--no-wait", "--run-id", "r1", "--env", "LIMITED_S=3600", "--max-attempts", "1")
    assert parked.code == 6, parked
    assert "parked until " in parked.out
    told = limited.ask("status", "r1")
    assert "(claude, 5-hour window)" in told.out
    assert limited.ask("status", "r1", "--json").json["stop"] == "rate_limited"
    calls_made = len(launched(limited))
    second = run_of(limited, "--no-wait", "--run-id", "r2", "--shared-tree", "--env", "LIMITED_S=3600")
    assert second.code == 6, second
    bead = limited.orc("swarm", "dispatch", "bd-1", ".", "claude", "fix it", "--no-wait", "--force")
    assert bead.code == 6, bead
    assert len(launched(limited)) == calls_made, "a run that is parked makes no call"
    step = limited.state("r2")["steps"]["s0"]
    assert (step["status"], step["attempts"]) == ("PENDING", 1)
    assert step["last_error"].startswith("parked until ")


def test_another_key_of_the_same_name_is_another_account_and_none_is_kept(limited: Rig) -> None:
    words = ("run", "--workflow", "workflow.yaml", "--no-wait", "--shared-tree", "--env", "LIMITED_S=3600", "--run-id")
    first, second = {"ANTHROPIC_API_KEY": "sk-ant-first-key"}, {"ANTHROPIC_API_KEY": "sk-ant-second-key"}
    assert limited.orc(*words, "r1", env=first).code == 6
    assert "(claude, 5-hour window)" in limited.ask("status", "r1").out
    made = len(launched(limited))
    tools = {**first, "NPM_TOKEN": "of-a-tool"}
    assert limited.orc(*words, "r2", "--pass-env", "NPM_TOKEN", env=tools).code == 6
    assert len(launched(limited)) == made, "what tools get beside it says nothing about the account"
    (limited.side / "reset").write_text("0")
    assert limited.orc(*words, "r3", env=first).code == 6, "this key was refused"
    assert limited.orc(*words, "r4", env=second).code == 0, "and that one was not"
    assert len(launched(limited)) == made + 2
    kept = b"".join(file.read_bytes() for file in (limited.repo / ".git" / "orc").rglob("*") if file.is_file())
    assert b"sk-ant" not in kept


def test_a_parked_run_survives_a_kill_and_goes_on_by_itself_with_the_same_attempt(limited: Rig) -> None:
    running = limited.start(
        *("run", "--workflow", "workflow.yaml", "--run-id", "r1", "--env", "LIMITED_S=6", "--max-attempts", "1")
    )
    wait_until(lambda: {line.split()[1] for line in running.said().splitlines() if "parked until" in line} == {"s0", "s1"})
    running.signal(signal.SIGKILL)
    running.end()
    made = len(launched(limited))
    done = limited.orc("resume", "r1")
    assert done.code == 0, done
    assert {step["attempts"] for step in limited.state("r1")["steps"].values()} == {1}
    assert len(launched(limited)) == made + 2, "each went on once, when it could"
    again = [argv for _, _, argv in launched(limited)[made:]]
    assert all(argv[argv.index("--resume") + 1] == "s1" for argv in again), "in the session that it had"


def test_claude_is_told_what_it_may_spend(limited: Rig) -> None:
    (limited.side / "reset").write_text("0")
    done = run_of(limited, "--budget-usd", "2", "--run-id", "r1", "--max-parallel", "1")
    assert done.code == 0, done
    told = [argv[argv.index("--max-budget-usd") + 1] for _, _, argv in launched(limited)]
    assert told[0] == "2.0000"
    assert 0 < float(told[1]) < 1.8
