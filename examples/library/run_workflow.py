"""Run a workflow in this process and print what happens; started again, go on with the run that is not finished.

python run_workflow.py REPOSITORY WORKFLOW REHEARSAL
"""

from __future__ import annotations

import sys

from agent_orchestrator import JournalEntry, OrcError, Orchestrator, WorkflowOptions, exit_code


def show(entry: JournalEntry) -> None:
    """Print one event."""
    print(entry.at, entry.data.get("step", "run"), entry.event, flush=True)


def main(repository: str, workflow: str, rehearsal: str) -> int:
    """Drive a run to its end; return what `orc` would exit with."""
    with Orchestrator(repository) as orchestrator:
        unfinished = [run for run in orchestrator.runs() if not run.summary.ended]
        if unfinished:
            run = unfinished[0]
        else:
            started = orchestrator.start(WorkflowOptions(workflow=workflow, rehearse=rehearsal))
            run = started.run
            for note in started.notes:
                print(note, file=sys.stderr)
        summary = orchestrator.drive(run, show, lambda note: print(note, file=sys.stderr))
    print(f"run {run.id} is {summary.status}: {summary.done} of {summary.total} steps are done")
    return exit_code(summary)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except OrcError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
