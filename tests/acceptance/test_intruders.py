"""An agent that tries to open the gate that guards it: each way is refused and journaled, or the docs say what stops it."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

from tests.acceptance.loop_rig import LoopRig, loop_of
from tests.acceptance.phases_rig import PhasesRig
from tests.acceptance.rig import ROOT, Rig, wait_until
from tests.acceptance.team_rig import TeamRig, team_of

WORKFLOW = """
name: guarded
steps:
  - {id: asks, agent: asker, prompt: prompt.md, human_in_the_loop: true}
  - {id: intruder, agent: intruder, prompt: prompt.md}
"""

AGENT = """
import json, os, subprocess, sys, time
side, run = sys.argv[1], os.environ["RUN_ID"]
orc = [sys.executable, "-m", "agent_orchestrator.cli"]
json.dump({"status": "COMPLETED"}, open(os.environ["REPORT_PATH"], "w"))
if os.environ["STEP_ID"] != "intruder":
    sys.exit(0)
with open(os.path.join(side, "tries.json")) as file:
    tries = json.load(file)
while not os.path.exists(os.path.join(side, "asked")):
    time.sleep(0.01)
for name, words in tries.items():
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, close_fds=False)
    with open(os.path.join(side, "done.jsonl"), "a") as log:
        log.write(json.dumps({"try": name, "code": done.returncode, "said": done.stdout + done.stderr}) + "\\n")
"""

SETSID = """
import subprocess, sys
closes = sys.argv[1] == "close"
sys.exit(subprocess.run(sys.argv[2:], start_new_session=True, close_fds=closes).returncode)
"""

ORPHAN = """
import os, subprocess, sys, time
if os.fork():
    os.wait()
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    code, _, said = open(sys.argv[1]).read().partition(" ")
    print(said)
    sys.exit(int(code))
os.setsid()
if os.fork():
    os._exit(0)
while os.getppid() == os.getsid(0):
    time.sleep(0.01)
done = subprocess.run(sys.argv[2:], capture_output=True, text=True)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(f"{done.returncode} {done.stderr}")
os.rename(sys.argv[1] + ".new", sys.argv[1])
"""

LIBRARY = """
import sys
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.core.inputs import Answer
orchestrator = Orchestrator(sys.argv[1])
orchestrator.send(orchestrator.find(sys.argv[2]), Answer(id="from the library", approved=True))
"""

SQL = """
import sys
import apsw
database = apsw.Connection(sys.argv[1] + "/.git/orc/orc.db")
database.set_busy_timeout(10000)
columns = [row[1] for row in database.execute("pragma table_info(inbox)")]
(run,) = database.execute("select rowid from runs where id = ?", (sys.argv[2],)).fetchone()
known = {"run": run, "id": "from sql", "posted_us": 1,
         "body": b'{"directive": "answer", "id": "from sql", "approved": true}'}
names = [name for name in columns if name in known]
marks = ", ".join("?" for _ in names)
database.execute(f"insert into inbox ({', '.join(names)}) values ({marks})", [known[name] for name in names])
"""

WAYS = ("plain", "env -i", "setsid", "nohup", "double fork", "closed descriptors", "library")
"""Ways of one program to say `approve`, each refused with exit code 2; the docs name each."""
UNSEEN = ("inbox without a sender", "answer file")
"""Ways that nobody answers: what they leave is refused by whoever drives the run."""
VERBS = {
    "reject": ("reject", "guarded", "asks"),
    "set limits": ("resume", "guarded", "--budget-usd", "100"),
    "abort": ("abort", "guarded"),
    "pause": ("pause", "guarded"),
}
LISTED = (
    *("a forged sender in the inbox", "a forged answer in the store", "an edited state file", "tmux or at"),
    *("every mark taken off", "signals to the driver", "the gate file"),
)
"""The intrusions that only a sandbox stops."""


def tries_of(rig: Rig, run: str) -> dict[str, list[str]]:
    """Every try, by name, as the words of a command."""
    side, orc = rig.side, [sys.executable, "-m", "agent_orchestrator.cli"]
    for name, text in (("orphan.py", ORPHAN), ("library.py", LIBRARY), ("sql.py", SQL)):
        (side / name).write_text(text)
    where = ["--repo", str(rig.repo)]
    approve = [*orc, "approve", run, "asks", *where]
    bare = ["env", "-i", f"PYTHONPATH={ROOT}/src", *approve]
    answer = rig.repo / ".agents" / "runs" / run / "manual_inputs" / f"{run}__asks.json"
    ways = {
        "plain": approve,
        "env -i": bare,
        "setsid": [sys.executable, "-c", SETSID, "keep", *approve],
        "nohup": ["nohup", *approve],
        "double fork": [sys.executable, str(side / "orphan.py"), str(side / "orphan"), *approve],
        "closed descriptors": [sys.executable, "-c", SETSID, "close", *bare],
        "library": [sys.executable, str(side / "library.py"), str(rig.repo), run],
        "inbox without a sender": [sys.executable, str(side / "sql.py"), str(rig.repo), run],
        "answer file": ["sh", "-c", f"echo '{{\"approved\": true}}' > {shlex.quote(str(answer))}"],
    }
    return ways | {name: [*orc, *words, *where] for name, words in VERBS.items()}


def test_an_agent_cannot_open_the_gate_that_guards_it(rig: Rig) -> None:
    rig.workflow(WORKFLOW)
    (rig.side / "agent.py").write_text(AGENT)
    (rig.side / "tries.json").write_text(json.dumps(tries_of(rig, "guarded")))
    command = shlex.join([sys.executable, str(rig.side / "agent.py"), str(rig.side)])
    running = rig.start(
        "run",
        "--workflow",
        "workflow.yaml",
        "--run-id",
        "guarded",
        "--max-parallel",
        "2",
        "--agent-command",
        command,
        "--pass-env",
        "PYTHONPATH",
    )
    running.wait_for("orc approve")
    rig.open("asked")
    log = rig.side / "done.jsonl"
    names = [*WAYS, *UNSEEN, *VERBS]
    wait_until(lambda: log.exists() and len(log.read_text().splitlines()) == len(names))
    tried = {one["try"]: one for one in map(json.loads, log.read_text().splitlines())}
    for name in (*WAYS, *VERBS):
        assert "comes from inside the launch guarded/intruder/" in tried[name]["said"], tried[name]
        assert name == "library" or tried[name]["code"] == 2, tried[name]
    assert all(tried[name]["code"] == 0 for name in UNSEEN), tried

    # Whoever drives the run journals the refusals, a moment after the agent was told.
    refusals = ("`approve` came from inside", "does not say who sent it", "that is not consent")
    wanted = (*refusals, *(f"`{name}` came from inside" for name in VERBS))
    wait_until(lambda: all(said in history for history in [rig.ask("history", "guarded").out] for said in wanted))
    state = json.loads((rig.repo / ".agents" / "runs" / "guarded" / "run_state.json").read_text())
    assert state["steps"]["asks"]["status"] == "WAITING_ON_HUMAN"
    assert rig.ask("approve", "guarded", "--comments", "looks good").code == 0
    assert running.end().code == 0
    history = rig.ask("history", "guarded").out
    assert re.search(r"approved by .+ \(.+\): looks good", history), history


def test_the_pages_name_every_way_and_what_only_a_sandbox_stops() -> None:
    rows = [line for line in Path(ROOT, "docs", "trust.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    told = {cells[1].strip(): cells[2].strip() for row in rows if len(cells := row.split("|")) > 3}
    for name in (*WAYS, *UNSEEN, "left behind after the agent's end"):
        assert "refused" in told[name], name
    for name in LISTED:
        assert "sandbox" in told[name], name


def test_an_approval_of_what_was_done_again_is_refused(rig: Rig) -> None:
    text = WORKFLOW.splitlines()
    rig.workflow("\n".join(line for line in text if "intruder" not in line) + "\n")
    assert rig.run("--no-wait", "--run-id", "again").code == 4
    stale = rig.ask("approve", "again", "--question", "again/asks/i7.a1.l9.human")
    assert (stale.code, "has asked anew" in stale.err) == (2, True), stale
    (question,) = [one["id"] for one in rig.ask("show", "again", "--json").json["questions"]]
    assert rig.ask("approve", "again", "--question", question).code == 0


def marked(rig: Rig, role: str) -> dict[str, str]:
    """The environment of whatever the newest launch of a unit started."""
    (lock, *_) = sorted((rig.repo / ".git" / "orc" / "launches").glob(f"*/{role}~*/lock"))
    return {"ORC_LAUNCH": json.loads(lock.read_text().splitlines()[0])["nonce"]}


def check_refused(rig: Rig, run: str, unit: str, verbs: dict[str, tuple[str, ...]]) -> None:
    """Every verb, said by a process that carries the mark of a launch, is refused, journaled, and changes nothing."""
    before = rig.ask("show", run, "--json").json["status"]
    for name, words in verbs.items():
        said = rig.orc(*words, env=marked(rig, unit))
        assert (said.code, f"comes from inside the launch {run}/{unit}/" in said.err) == (2, True), said
        assert f"`{name}` came from inside" in rig.ask("history", run).out
    assert rig.ask("show", run, "--json").json["status"] == before


def test_an_agent_of_phases_cannot_answer_the_planners_questions_or_move_the_run(repo: Path) -> None:
    rig = PhasesRig(repo)
    rig.report("planner", {"status": "QUESTIONS", "questions": ["Which database?"]})
    assert rig.phases("--no-wait", "--run-id", "asks", "--plan-with", str(rig.agent)).code == 4
    verbs = {
        "approve": ("approve", "asks", "--comments", "sqlite"),
        "skip": ("phases", "skip", "1.1"),
        "rewind": ("rewind", "asks", "--to", "checkpoint-001"),
    }
    check_refused(rig, "asks", "plan", verbs)


def test_an_agent_of_a_team_cannot_answer_the_project_managers_questions(repo: Path) -> None:
    rig = TeamRig(repo)
    rig.says("pm.plan.1", status="NEEDS_CLARIFICATION", questions=["Which database?"])
    run = team_of(rig.team("--no-wait"))
    check_refused(rig, run, "pm", {"answer": ("team", "answer", "sqlite"), "require": ("team", "add", "Write a poem")})


def test_an_agent_of_a_loop_cannot_steer_it(repo: Path) -> None:
    rig = LoopRig(repo)
    rig.do('echo \'{"status": "COMPLETED", "done": true}\' >"$REPORT_PATH"')
    run = loop_of(rig.loop("--completion", "The guide reads well", "--no-wait", until=None))
    check_refused(rig, run, "loop", {"steer": ("loop", "steer", run, "approve it"), "approve": ("approve", run)})
