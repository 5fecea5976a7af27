"""The programs and files that the stages of the examples are set with."""

from __future__ import annotations

import json
import sys

from tests.acceptance.phases_rig import WORKS
from tests.acceptance.rig import ROOT, WRAPPER
from tests.acceptance.team_rig import DEFAULTS

AGENT = """\
#!/bin/sh
# Waits while it is held, then plays the part of its turn in a team, of its role, or does some work.
parts=${0%/*}/parts
here=$parts
cat >/dev/null
echo "at work"
touch "$HOME/at-work.${ITERATION:-1}"
while [ -e "$HOME/hold.${ITERATION:-1}" ] || [ -e "$HOME/hold" ]; do sleep 0.02; done
report() { cat >"$REPORT_PATH"; }
for part in "${TEAM_TURN:-none}" "$AGENT_ID" work; do
  if [ -e "$parts/$part" ]; then . "$parts/$part"; break; fi
done
"""
PARTS = {
    **DEFAULTS,
    "develop": f"touch fixed.txt; {DEFAULTS['develop']}",
    "work": 'touch fixed.txt; echo \'{"status": "COMPLETED"}\' | report',
    "task-executor": WORKS,
    "supervisor": 'echo \'{"status": "PASS"}\' | report',
    "code-improvement-scanner": 'echo \'{"status": "CLEAN"}\' | report',
}
PLAN = {
    "status": "PLANNING_COMPLETE",
    "mode": "simple",
    "mode_reasoning": "one group",
    "tasks": [{"id": "T1", "description": "Do it", "group_id": "A"}],
    "groups": [{"id": "A", "name": "All of it", "tasks": ["T1"]}],
}
PROGRAMS = {
    "my-agent": AGENT,
    "pytest": "#!/bin/sh\n# What the examples take for the tests of the repository.\ntest -f fixed.txt\n",
    "python": f'#!/bin/sh\nPYTHONPATH="{ROOT / "src"}" exec "{sys.executable}" "$@"\n',
    "bd": '#!/bin/sh\n# `bd export -o FILE`, and `bd close`.\nif [ "$1" = export ]; then cp "$HOME/beads.jsonl" "$3"; fi\n',
}
WORKFLOW = """\
name: example
steps:
  - {id: code, agent: coder, prompt: prompt.md}
  - {id: coding, agent: coder, prompt: prompt.md, needs: [code]}
  - {id: review, agent: reviewer, prompt: prompt.md, needs: [coding], check: 'true', loop_back_to: coding}
  - {id: manual_approval, agent: presenter, prompt: prompt.md, needs: [review], human_in_the_loop: true}
"""
TASK = """\
# Task: Login

## Goal

People can log in.

## Safety Bounds

- **Maximum cost**: $10

## Phases & Tasks

### Phase 1: Foundation

#### Task 1.1: The model

**Success Criteria**:
- [ ] It is good

#### Task 1.2: Tokens

**Success Criteria**:
- [ ] It is good

### Phase 2: Endpoints

#### Task 2.1: The endpoint

**Success Criteria**:
- [ ] Nothing is broken `test ! -e broken.txt`

## Supervisor Checks

- **Enable**: yes
- **Frequency**: on demand
"""
BEADS = [
    {"id": "bd-201", "prompt": "write the model"},
    {"id": "bd-202", "prompt": "write the views", "depends_on": ["bd-201"]},
]
BEAD_RECORD = {
    "bead": "bd-7",
    "agent": "claude",
    "model": "sonnet",
    "repo": "/projects/app",
    "prompt": "fix the login bug",
    "started_at": "2026-02-12T17:00:00Z",
    "attempt": 1,
}
FILES = {
    "README.md": "A repository to work on.\n",
    "Makefile": "check test:\n\t@true\n",
    "prompt.md": "Do your part.\n",
    "workflow.yaml": WORKFLOW,
    "wrapper.py": WRAPPER,
    "parts.json": "{}",
    "script.yaml": "- step: '*'\n",
    "rehearsal.yaml": "- step: '*'\n",
    "task.md": TASK,
    "wanted.md": "- a changelog\n",
    "beads.jsonl": "".join(json.dumps(bead) + "\n" for bead in BEADS),
}
