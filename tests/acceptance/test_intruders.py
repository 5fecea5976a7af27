"""An agent that tries to open the gate that guards it: each way is refused and journaled, or the docs say what stops it."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path

from tests.acceptance.loop_rig import LoopRig, loop_of
from tests.acceptance.phases_rig import PhasesRig
from tests.acceptance.rig import ROOT, Rig, wait_until
from tests.acceptance.team_rig import TeamRig, team_of
from tests.stores import TOLD

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
while not os.path.exists(os.path.join(side, "asked")):
    time.sleep(0.01)
with open(os.path.join(side, "tries.json")) as file:
    tries = json.load(file)
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

SERVER_SQL = """
import os, sys
import psycopg
with psycopg.connect(os.environ["ORC_STORE"]) as database:
    said = b'{"directive": "answer", "id": "from sql", "approved": true}'
    columns, values = "repo, run, id, posted_us, body", "repo, key, 'from sql', 1, %s"
    insert = f"insert into orc.inbox ({columns}) select {values} from orc.runs where id = %s"
    assert database.execute(insert, (said, sys.argv[2])).rowcount == 1
"""

STORE = os.environ.get("ORC_STORE", "")
"""The server that has the runs, if one has: the agent is told, so that it is not ignorance that stops it."""

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
    *("a forged sender in the inbox", "a forged answer in the store", "tmux or at"),
    *("every mark taken off", "signals to the driver", "the gate file"),
)
"""The intrusions that only a sandbox stops."""


def tries_of(rig: Rig, run: str) -> dict[str, list[str]]:
    """Every try, by name, as the words of a command."""
    side, orc = rig.side, [sys.executable, "-m", "agent_orchestrator.cli"]
    for name, text in (("orphan.py", ORPHAN), ("library.py", LIBRARY), ("sql.py", SERVER_SQL if STORE else SQL)):
        (side / name).write_text(text)
    where = ["--repo", str(rig.repo)]
    approve = [*orc, "approve", run, "asks", *where]
    bare = ["env", "-i", f"PYTHONPATH={ROOT}/src", *([f"ORC_STORE={STORE}"] if STORE else []), *approve]
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
        *("--pass-env", "PYTHONPATH"),
        *TOLD,
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


FORGED = """
name: forged
steps:
  - {id: code, agent: coder, prompt: prompt.md}
  - {id: test, agent: tester, prompt: prompt.md, needs: [code], check: "test -f sound"}
  - {id: approve, agent: asker, prompt: prompt.md, needs: [test], human_in_the_loop: true}
"""

FORGER = """
import json, os, signal, sys, time
home, edits, started = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
if os.environ["STEP_ID"] == "code":
    while not os.path.lexists(started):
        time.sleep(0.01)
    os.kill(int(os.readlink(started)), signal.SIGKILL)
    state = home + "/.agents/runs/forged/run_state.json"
    with open(state) as file:
        document = json.load(file)
    for step, fields in edits.items():
        document["steps"][step].update(fields)
    with open(state, "w") as file:
        json.dump(document, file)
with open(os.environ["REPORT_PATH"], "w") as file:
    json.dump({"status": "COMPLETED"}, file)
"""


def forge(rig: Rig, edits: dict[str, dict[str, object]]) -> Path:
    """Runs an agent that kills its orchestrator and edits the state file; answers with that file."""
    rig.workflow(FORGED)
    (rig.side / "forger.py").write_text(FORGER)
    started = rig.side / "started"
    command = shlex.join([sys.executable, str(rig.side / "forger.py"), str(rig.repo), json.dumps(edits), str(started)])
    killed = rig.start("run", "--workflow", "workflow.yaml", "--run-id", "forged", "--agent-command", command)
    started.symlink_to(str(killed.process.pid))
    killed.end()
    wait_until(lambda: list((rig.repo / ".git" / "orc" / "launches" / "forged").glob("code~*/exit.0")))
    return rig.repo / ".agents" / "runs" / "forged" / "run_state.json"


def test_an_agent_that_kills_orc_and_edits_the_state_passes_no_check_and_no_person(rig: Rig) -> None:
    file = forge(rig, {name: {"status": "COMPLETED"} for name in ("code", "test", "approve")})
    for flags in ((), ("--adopt-edits",)):
        forged = file.read_text()
        refused = rig.orc("resume", "forged", "--no-wait", *flags)
        assert refused.code == 2, refused
        assert "steps.test.status: an edit cannot make it COMPLETED: its check decides" in refused.err
        assert "steps.approve.status: an edit cannot make it COMPLETED: a person decides" in refused.err
        assert json.loads(file.read_text())["steps"]["test"]["status"] == "PENDING"
        file.write_text(forged)
    assert "edits refused: steps.test.status" in rig.ask("history", "forged").out
    rig.orc("resume", "forged", "--no-wait")
    failed = rig.orc("resume", "forged", "--no-wait")
    assert (failed.code, rig.state("forged")["steps"]["test"]["status"]) == (1, "FAILED"), failed


def test_what_an_agent_may_have_edited_is_not_adopted_even_when_asked_to(rig: Rig) -> None:
    file = forge(rig, {"code": {"status": "COMPLETED", "artifacts": ["forged.md"]}})
    forged = file.read_text()
    for flags in ((), ("--adopt-edits",)):
        asked = rig.orc("resume", "forged", "--no-wait", *flags)
        assert (asked.code, "may have been alive" in asked.err) == (4, True), asked
        assert 'steps.code.status: "RUNNING" -> "COMPLETED"' in asked.err
        assert file.read_text() == forged
    (rig.repo / "sound").touch()
    left = rig.orc("resume", "forged", "--no-wait", "--no-adopt-edits")
    assert (left.code, rig.state("forged")["steps"]["code"]["artifacts"]) == (4, []), left


PLANTER = """
import json, os, sys
for number in range(1, 6):
    folder = f"{sys.argv[1]}/.git/orc/launches/planted/test~i0.a1.l{number}.check"
    if os.environ["STEP_ID"] == "code":
        os.makedirs(folder)
        open(folder + "/exit.0", "w").close()
        open(folder + "/lock", "w").close()
with open(os.environ["REPORT_PATH"], "w") as file:
    json.dump({"status": "COMPLETED"}, file)
"""


def test_an_end_that_an_agent_plants_for_a_check_is_not_believed(rig: Rig) -> None:
    rig.workflow(FORGED)
    (rig.side / "planter.py").write_text(PLANTER)
    command = shlex.join([sys.executable, str(rig.side / "planter.py"), str(rig.repo)])
    failed = rig.orc(
        "run", "--workflow", "workflow.yaml", "--run-id", "planted", "--max-attempts", "1", "--agent-command", command
    )
    assert (failed.code, rig.state("planted")["steps"]["test"]["status"]) == (1, "FAILED"), failed
    assert "what lies in it counts for nothing" in failed.out + failed.err


def test_the_pages_name_every_way_and_what_only_a_sandbox_stops() -> None:
    rows = [line for line in Path(ROOT, "docs", "trust.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    told = {cells[1].strip(): cells[2].strip() for row in rows if len(cells := row.split("|")) > 3}
    for name in (*WAYS, *UNSEEN, "left behind after the agent's end", "an edited state file", "a forged end"):
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
