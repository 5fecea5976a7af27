"""Performs operations in processes of their own, one for each line that it reads: a process that may be killed with its git.

It forks instead of starting an interpreter each time, and has one thread so that it may.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from agent_orchestrator.errors import OrcError
from agent_orchestrator.git.environment import GitEnvironment, use_environment
from tests.faults.git_work import OPERATIONS


def play(name: str, repo: Path, answer: Path, variables: dict[str, str]) -> int:
    """Perform one operation; its answer is written to a file."""
    use_environment(GitEnvironment(variables=variables))
    try:
        said = OPERATIONS[name].perform(repo)
    except OrcError as error:
        answer.write_text(f"failed: {error}")
        return 1
    answer.write_text(json.dumps(said))
    return 0


def main() -> None:
    """Read orders, answer each with how its process ended."""
    for line in sys.stdin:
        name, repo, answer, variables = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            code = 2
            try:
                code = play(name, Path(repo), Path(answer), variables)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
