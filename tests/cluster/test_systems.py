"""Every way of working that can be queued: the same worker drives it, and its work comes back as one branch."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acceptance import phases_rig, team_rig
from tests.acceptance.rig import wait_until
from tests.acceptance.stage_files import PLAN
from tests.cluster.rig import PATIENCE_S, Clone, Farm
from tests.unit.git.test_repository import git


def make_agent(folder: Path, text: str, scripts: dict[str, str]) -> str:
    """Write an agent with what it does; return it as a command."""
    folder.mkdir()
    (folder / "agent.sh").write_text(text)
    (folder / "agent.sh").chmod(0o755)
    for name, script in scripts.items():
        (folder / f"do.{name}").write_text(script + "\n")
    return str(folder / "agent.sh")


def queue(farm: Farm, *words: str) -> str:
    """Queue a run and return its id."""
    done = farm.orc(*words, "--queue")
    assert done.code == 0, done
    return done.out.splitlines()[0].split()[1]


def files_of(farm: Farm, run: str) -> list[str]:
    """Wait for the branch of a run, and return the files that it adds."""
    wait_until(lambda: farm.status(run) not in ("running", "waiting"), PATIENCE_S)
    assert farm.status(run) == "completed", farm.ask_store("history", run)
    wait_until(lambda: f"orc/{run}" in git(farm.bare, "branch", "--list", "orc/*"), PATIENCE_S)
    return git(farm.bare, "diff", "--name-only", "--diff-filter=A", f"refs/orc/runs/{run}/start", f"orc/{run}").split()


def test_loops_phases_and_teams_are_driven_by_workers_like_workflows(farm: Farm) -> None:
    (farm.repo / "task.md").write_text(phases_rig.SMALL)
    git(farm.repo, "add", "--all")
    git(farm.repo, "commit", "--quiet", "--message", "A task")
    reports = {"supervisor": {"status": "PASS"}, "code-improvement-scanner": {"status": "CLEAN"}}
    says = {who: f"cat >\"$REPORT_PATH\" <<'END'\n{json.dumps(report)}\nEND" for who, report in reports.items()}
    phased = make_agent(farm.folder / "phased", phases_rig.AGENT, {"task-executor": phases_rig.WORKS, **says})
    teamed = make_agent(farm.folder / "teamed", team_rig.AGENT, team_rig.DEFAULTS)
    (farm.folder / "teamed" / "plan.json").write_text(json.dumps(PLAN))
    farm.host("ada", "--capacity", "3")
    loop = queue(
        farm, "loop", "run", "make it", "--until", "test -f made", "--agent-command", "touch made", "--max-iterations", "3"
    )
    phases = queue(farm, "phases", "run", "task.md", "--agent-command", phased, "--yes", "--allow-unmetered")
    team = queue(farm, "team", "run", "JWT login", "--agent-command", teamed, "--no-check")
    assert files_of(farm, loop) == ["made"]
    assert {"work-1.1", "work-1.2"} <= {*files_of(farm, phases)}
    assert any(name.endswith(".py") for name in files_of(farm, team))
    clone = Clone(farm, "clone")
    assert clone.orc("diff", loop, "best", "--name-only").out.split() == ["made"]
    for run in (loop, phases, team):
        merged = clone.orc("merge", run, "--no-check")
        assert (merged.code, merged.out.count("merged")) == (0, 1), merged
        assert f"merged orc/{run} into main" in merged.out
    assert {"made", "work-1.1", "work-1.2"} <= {one.name for one in clone.repo.iterdir()}
    assert (clone.branches(), git(clone.repo, "status", "--porcelain")) == (["main"], "")
    groups = [one["unit"] for one in clone.orc("diff", team, "--json").json["works"]]
    assert groups == [None], "the groups are part of what the team made"
