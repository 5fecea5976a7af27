"""Follow the newest run, which another process drives, and approve whatever it asks a person.

python watch_and_approve.py REPOSITORY
"""

from __future__ import annotations

import sys

from agent_orchestrator import OrcError, Orchestrator, exit_code


def main(repository: str) -> int:
    """Follow a run to its end; return what `orc` would exit with."""
    with Orchestrator(repository) as orchestrator:
        run = orchestrator.runs()[0]
        for entry in orchestrator.follow(run):
            print(f"{entry.event}: {entry.summary.done} of {entry.summary.total} steps are done", flush=True)
            if entry.event == "human_asked":
                for question in orchestrator.show(run)["questions"]:
                    print(f"approved: {question['text']}", flush=True)
                    orchestrator.approve(run, question["unit"], question=question["id"], comments="seen by a program")
        return exit_code(orchestrator.find(run.id).summary)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except OrcError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
