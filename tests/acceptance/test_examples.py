"""Every example of the pages and of every `--help` is run; those that name a coding agent, in tests/clients."""

from __future__ import annotations

import sys

import pytest

from tests.acceptance.examples import EXAMPLES, Example
from tests.acceptance.plays import Play, check_example, idle_patterns, play_for
from tests.acceptance.rig import ROOT
from tests.acceptance.stages import LOOP_RUN, RUN, SWARM_RUN, Stages

LEFT_OUT = {
    "pip install .": "it needs a package registry; the package under test is installed already",
    "pip install 'orc-agents[web]'": "the same",
    "pip install 'orc-agents[otel]'": "the same",
    "pip install 'orc-agents[postgres]'": "the same",
    "pip install 'orc-agents[dbos]'": "the same",
    **dict.fromkeys(
        ("make bench", "make bench PEERS=none", "make bench ONLY=steps,growth", "make bench ROUNDS=2"),
        "it takes minutes; tests/benchmarks runs its parts at a small size",
    ),
    **dict.fromkeys(
        ("orc attach f8c1 coding", "orc attach f8c1 coding --hand-back", "orc attach f8c1 coding --done"),
        "it needs a terminal and a client with a session; tests/terminal and tests/clients run it",
    ),
    **dict.fromkeys(
        (
            *(
                "orc worker --store postgresql://db.example.org/orc",
                "orc worker --pool gpu --capacity 4",
                "orc worker --once f8c1",
            ),
            *("orc workers", "orc workers --json", "orc workers drain build-3", "orc workers limit 3"),
            "orc workers limit 8 --account claude",
            'orc run "fix the login bug" --agent-command my-agent --queue --pool gpu',
            "orc resume f8c1 --queue",
            *(f"orc schedule {verb} nightly" for verb in ("pause", "resume", "remove")),
            *("orc schedule list", "orc schedule list --json", "orc store init --placing dbos"),
            'orc schedule add nightly "0 3 * * *" -- run --workflow nightly.yaml --agent-command my-agent',
            'orc schedule add nightly "0 3 * * *" --zone Europe/Berlin -- run --workflow nightly.yaml --agent-command my-agent',
            'orc schedule add tidy "0 18 * * 5" --zone Europe/Berlin -- loop run "tidy up" --until make --agent-command my-agent',
        ),
        "it needs a server, a remote and another host; tests/cluster runs it with all three",
    ),
    "make demo": "test_demo.py runs it",
    **dict.fromkeys(
        ("make cluster", "make cluster FAULTS=100 SEED=7"), "it takes minutes; tests/cluster/test_show.py runs a little of it"
    ),
    "make test": "it runs this test",
    "export ANTHROPIC_API_KEY=…": "it is for a real key",
}
"""Lines that are not run, and why."""

WORKING = f"orc run --workflow workflow.yaml --agent-command my-agent --run-id {RUN}"
DISPATCHED = "orc swarm dispatch bd-101 . my-agent 'fix it' --agent-command my-agent"
ASKED_APPROVAL = ((" approval", " manual_approval"), ("__approval", "__manual_approval"), ("RUN", RUN))
COLLECTED = (("orc telemetry", f"PYTHONPATH={ROOT} {sys.executable} -m tests.telemetry.collector orc telemetry"),)
SERVED = (("orc store", f"PYTHONPATH={ROOT} {sys.executable} -m tests.postgres.server orc store"),)
NO_BROWSER = (("orc web", "BROWSER=true orc web"),)

FORKED = """
git remote set-url --push origin "$(git remote get-url origin)" && git remote set-url origin https://github.com/ada/thing.git
git remote add fork https://github.com/bob/thing.git && git remote set-url --push fork "$(git remote get-url --push origin)"
"""
"""Two remotes on a server, of which one is a fork of the other."""

PLAYS = [
    ("orc run * --run-id f8c1a491 --start-at-step *", Play("lost")),
    ("orc run * --start-at-step *", Play("finished")),
    ('orc run "*" --pr', Play("published")),
    ('orc run "*"*', Play("tasked")),
    ("orc run * --no-wait*", Play("workshop", code=4)),
    ("orc run * --detach", Play("workshop", after="until orc approve; do sleep 0.1; done")),
    ("orc run *", Play("workshop")),
    ("orc loop run * --pr", Play("published")),
    ("orc loop run *", Play("workshop")),
    ("orc loop pause && orc loop resume", Play("workshop", beside=LOOP_RUN)),
    ("orc loop pause*", Play("workshop", beside=LOOP_RUN)),
    ("orc loop steer *", Play("workshop", beside=LOOP_RUN)),
    ("orc loop attach*", Play("workshop", beside=LOOP_RUN, follows=True)),
    ("orc loop *", Play("looped")),
    ("orc swarm run *", Play("workshop")),
    ("orc swarm init", Play("bare")),
    ("orc swarm retry *", Play("failed_bead")),
    ("orc swarm stop *", Play("workshop", beside=SWARM_RUN)),
    ("orc swarm watch*", Play("workshop", beside=SWARM_RUN, follows=True)),
    ("orc swarm logs * -f", Play("workshop", beside=SWARM_RUN, follows=True)),
    ("orc swarm attach *", Play("workshop", beside=SWARM_RUN, follows=True)),
    ("orc swarm *", Play("beads")),
    ("orc phases new*", Play("bare")),
    ("orc phases plan *", Play("workshop")),
    ("orc phases run *", Play("workshop")),
    ("orc phases *", Play("phased")),
    ("orc rewind * --to checkpoint-*", Play("phased")),
    ("orc rewind *", Play("finished")),
    ("orc fork *", Play("finished")),
    ("orc github watch * --once *", Play("published")),
    ("orc github watch *", Play("published", serves="watching issues")),
    ("orc diff 8c1f0a2b *", Play("beads")),
    ("orc merge 8c1f0a2b *", Play("beads")),
    ("orc pr 8c1f0a2b *", Play("beads")),
    ("orc diff *", Play("apart")),
    ("orc merge *", Play("apart")),
    ("orc pr * --upstream *", Play("apart", before=FORKED)),
    ("orc pr *", Play("apart")),
    ("orc discard *", Play("apart")),
    ("orc open *", Play("apart")),
    ('cd "$(orc open *', Play("apart")),
    ("git log --exclude=*", Play("apart")),
    ("git config *", Play("apart")),
    ("orc team run *", Play("workshop")),
    ("orc team watch*", Play("workshop", beside="orc team run 'JWT login' --agent-command my-agent --no-check", follows=True)),
    ("orc team approve*", Play("stuck")),
    ("orc team *", Play("asked")),
    ("orc resume v4_*", Play("answered")),
    ("orc resume * --budget-usd 20", Play("spent")),
    ("orc logs * -f", Play("workshop", beside=WORKING, follows=True)),
    ("orc watch*", Play("workshop", beside=WORKING, follows=True)),
    ("orc pause *", Play("workshop", beside=WORKING)),
    ("orc steer *", Play("workshop", beside=WORKING)),
    ("orc abort *", Play("workshop", beside=WORKING)),
    ("orc resume *", Play("approved")),
    ("orc reject RUN approval *", Play("waiting", names=ASKED_APPROVAL)),
    ("echo *approved* > .agents/runs/RUN/*", Play("waiting", names=ASKED_APPROVAL)),
    ("orc import *", Play("foreign")),
    ("aiwg ralph-status *", Play("foreign")),
    ("orc init*", Play("bare")),
    ("orc config *", Play("configured")),
    ("orc notify *", Play("notified")),
    ("orc telemetry export *", Play("finished", names=COLLECTED)),
    ("orc store check", Play("finished")),
    ("orc store check --store *", Play("finished", names=SERVED)),
    ("orc store * --store *", Play("finished", names=SERVED)),
    ("orc store copy *", Play("finished", names=SERVED)),
    ("orc web ~/shop ~/api*", Play("bare", before="git init -q ~/shop; git init -q ~/api", names=NO_BROWSER, serves="?key=")),
    ("orc web*", Play("waiting", names=NO_BROWSER, serves="?key=")),
    ("orc mcp *", Play("waiting", serves="Bearer")),
    ("orc *", Play("waiting")),
    ("mv .git/orc/orc.db *", Play("waiting")),
    ("rm -f .git/orc/orc.db-wal *", Play("waiting")),
    ("jq * .claude/agent-state.json", Play("phased")),
    ("cat .agents/runs/<run_id>/run_state.json *", Play("waiting")),
    ('eval "$(orc completion bash)"', Play("bare")),
]

RUN_HERE = [example for example in EXAMPLES if not example.clients and example.line not in LEFT_OUT]


def staged(example: Example) -> object:
    """The examples of a stage are run by one worker, which builds it once."""
    play = play_for(example, PLAYS)
    return pytest.param(example, marks=pytest.mark.xdist_group(f"stage-{play.stage if play else 'none'}"), id=example.line)


@pytest.fixture(scope="session")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Stages:
    return Stages(tmp_path_factory.mktemp("stages"))


@pytest.mark.parametrize("example", [staged(example) for example in RUN_HERE])
def test_an_example_does_what_its_page_says(example: Example, stages: Stages) -> None:
    play = play_for(example, PLAYS)
    assert play is not None, f"{example.where}: {example.line}: say in PLAYS on which stage it is run"
    check_example(stages.home(play.stage), example, play)


def test_every_line_has_its_stage_and_every_exception_its_line() -> None:
    assert idle_patterns(RUN_HERE, PLAYS) == []
    assert set(LEFT_OUT) <= {example.line for example in EXAMPLES}
    assert len(EXAMPLES) >= 120
