"""The environment and the prompt of an agent."""

from __future__ import annotations

from pathlib import Path

import msgspec

from agent_orchestrator.agents.adapter import AgentTask
from agent_orchestrator.agents.environment import FEEDBACK_TITLE, build_environment, render_prompt
from agent_orchestrator.core.effects import AgentChoice, RunAgent
from agent_orchestrator.testing.agents import make_task


def task_with(folder: Path, *, inherited: dict[str, str] | None = None, **effect: object) -> AgentTask:
    task = make_task(folder, AgentChoice(name="command", options={"argv": ["true"]}))
    changed: RunAgent = msgspec.structs.replace(task.effect, **effect)
    return msgspec.structs.replace(task, effect=changed, inherited_env=inherited or {})


def test_the_environment_says_who_and_where(tmp_path: Path) -> None:
    task = task_with(tmp_path, inherited={"PATH": "/bin", "HOME": "/h"})
    env = build_environment(task)
    assert {name: env[name] for name in ("RUN_ID", "STEP_ID", "AGENT_ID", "ITERATION", "STEP_ATTEMPT")} == {
        "RUN_ID": "run1", "STEP_ID": "build", "AGENT_ID": "coder", "ITERATION": "2", "STEP_ATTEMPT": "3",
    }  # fmt: skip
    assert env["REPO_DIR"] == env["PWD"] == str(task.workdir)
    assert (env["PATH"], env["HOME"]) == ("/bin", "/h")
    assert "STEP_MODEL" not in env
    assert "FEEDBACK_PATH" not in env
    assert "MANUAL_RESULT_PATH" not in env


def test_what_is_optional_is_there_when_it_is_known(tmp_path: Path) -> None:
    task = task_with(tmp_path, agent=AgentChoice(name="command", model="big"))
    effect = msgspec.structs.replace(task.effect, feedback=({"error": "it broke"},), answer_file="a.json")
    task = msgspec.structs.replace(task, effect=effect)
    env = build_environment(task)
    assert env["STEP_MODEL"] == "big"
    assert env["FEEDBACK_PATH"] == str(task.launch_dir / "feedback.json")
    assert env["MANUAL_RESULT_PATH"] == str(tmp_path / "a.json")


def test_artifacts_of_other_steps_are_numbered_joined_and_absolute(tmp_path: Path) -> None:
    task = task_with(tmp_path, inputs={"code-review.2": ("a.md", "sub/b.md"), "empty": ()})
    env = build_environment(task)
    assert env["DEP_CODE_REVIEW_2_ARTIFACT_0"] == str(task.workdir / "a.md")
    assert env["DEP_CODE_REVIEW_2_ARTIFACT_1"] == str(task.workdir / "sub/b.md")
    assert env["DEP_CODE_REVIEW_2_ARTIFACTS"] == f"{task.workdir}/a.md,{task.workdir}/sub/b.md"
    assert env["DEP_EMPTY_ARTIFACTS"] == ""


def test_marks_of_a_surrounding_session_or_run_do_not_reach_the_agent_but_settings_do(tmp_path: Path) -> None:
    outer = {
        "CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "FEEDBACK_PATH": "/outer", "DEP_PLAN_ARTIFACT_0": "/outer",
        "DEP_PLAN_ARTIFACTS": "/outer", "RUN_ID": "outer", "OLDPWD": "/outer",
        "CLAUDE_CODE_USE_BEDROCK": "1", "DEP_TARGET": "kept",
    }  # fmt: skip
    env = build_environment(task_with(tmp_path, inherited=outer))
    assert {name for name in outer if name in env} == {"RUN_ID", "CLAUDE_CODE_USE_BEDROCK", "DEP_TARGET"}
    assert env["RUN_ID"] == "run1"


def test_the_steps_own_variables_have_the_last_word(tmp_path: Path) -> None:
    env = build_environment(task_with(tmp_path, env={"HOME": "/mine", "RUN_ID": "x"}, inherited={"HOME": "/h"}))
    assert (env["HOME"], env["RUN_ID"]) == ("/mine", "x")


def test_only_known_names_are_filled_in() -> None:
    text = 'run {run_id} of {WHAT}: {"json": {unknown}} {} { run_id } {{run_id}} ${run_id}'
    filled = render_prompt(text, {"run_id": "r1", "WHAT": "{run_id}"})
    assert filled == 'run r1 of {run_id}: {"json": {unknown}} {} { run_id } {r1} ${run_id}'


def test_a_prompt_without_feedback_is_unchanged_to_the_last_byte() -> None:
    assert render_prompt("  a\r\n\n\n", {}) == "  a\r\n\n\n"


def test_feedback_is_told_below_the_prompt() -> None:
    told = render_prompt(
        "Write it.\n",
        {},
        [
            {"step": "review", "iteration": 0, "error": "Gate failure: P0", "logs": ["one", "two"], "empty": ""},
            {"attempt": 2, "tail": "line\n```\nmore", "check": {"exit_code": 3}},
        ],
    )
    assert told == (
        f"Write it.\n\n{FEEDBACK_TITLE}\n\nOldest first; deal with the last one.\n\n"
        "### step review, iteration 0\n\n- error: Gate failure: P0\n- logs:\n  - one\n  - two\n\n"
        "### attempt 2\n\n- tail:\n\n````\nline\n```\nmore\n````\n\n- check exit code: 3\n"
    )
