"""validate, init, doctor, schema, prune, version, completion: the commands around runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import click
import jsonschema_rs
import pytest

from agent_orchestrator.engine.snapshots import encode, pack
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.surfaces.cli.groups import LazyGroup
from agent_orchestrator.surfaces.cli.main import orc
from tests.acceptance.rig import HUMAN, Rig
from tests.stores import OWN_STORE


def test_validate_says_every_fault_of_a_workflow_with_its_line(rig: Rig) -> None:
    good = rig.ask("validate", "workflow.yaml", "--repo", ".")
    assert (good.code, good.out) == (0, "workflow.yaml is valid: workflow line, 3 steps.\n"), good
    rig.workflow("steps:\n  - {id: a, agent: x, prompt: p.md, need: [b]}\n  - {id: b, agent: x, prompt: p.md, needs: [zz]}\n")
    bad = rig.ask("validate", "workflow.yaml")
    assert bad.code == 2, bad
    assert "workflow.yaml:2:" in bad.err
    assert "workflow.yaml:3:" in bad.err
    facts = rig.ask("validate", "workflow.yaml", "--json")
    assert (facts.code, facts.json["valid"], len(facts.json["problems"])) == (2, False, 2), facts


def test_validate_looks_for_prompts_only_in_a_given_repository(rig: Rig) -> None:
    rig.workflow("steps:\n  - id: a\n    agent: x\n    prompt: nowhere.md\n")
    assert rig.ask("validate", "workflow.yaml").code == 0
    missing = rig.ask("validate", "workflow.yaml", "--repo", ".")
    assert missing.code == 2, missing
    assert "workflow.yaml:4:13: step a: the prompt nowhere.md does not exist" in missing.err


def test_validate_says_every_fault_of_a_state_file_with_its_line(rig: Rig) -> None:
    run = rig.run().run
    file = rig.repo / ".agents" / "runs" / run / "run_state.json"
    assert rig.ask("validate", str(file)).code == 0
    text = file.read_text()
    copy = rig.side / "copy.json"
    copy.write_text(text.replace('"COMPLETED"', '"FINISHED"', 1).replace('"attempts": 1', '"attempts": -1', 1))
    bad = rig.ask("validate", str(copy))
    assert bad.code == 2, bad
    lines = [number for number, line in enumerate(copy.read_text().splitlines(), 1) if "FINISHED" in line or ": -1" in line]
    for number, field in zip(lines, ("status", "attempts"), strict=True):
        assert f"copy.json:{number}:" in bad.err
        assert f"steps.planning.{field}: " in bad.err
    copy.write_text(text[:100])
    torn = rig.ask("validate", str(copy))
    assert (torn.code, "is not JSON" in torn.err) == (2, True), torn


def test_init_writes_a_workflow_that_runs_and_never_overwrites(rig: Rig) -> None:
    (rig.repo / "workflow.yaml").unlink()
    made = rig.ask("init")
    assert made.code == 0, made
    assert rig.ask("validate", "workflow.yaml", "--repo", ".").code == 0
    played = (rig.repo / "rehearsal.yaml").read_text().replace("takes: 1s", "takes: 0.01s")
    (rig.repo / "rehearsal.yaml").write_text(played)
    run = rig.orc("run", "--workflow", "workflow.yaml", "--rehearse", "rehearsal.yaml")
    assert run.code == 0, run
    assert "review    loops back to code" in run.out
    (rig.repo / "workflow.yaml").write_text("mine")
    again = rig.ask("init", "--json")
    assert (again.code, again.json["written"]) == (0, []), again
    assert (rig.repo / "workflow.yaml").read_text() == "mine"
    assert (rig.repo / ".gitignore").read_text().count(".agents/runs/") == 1


@OWN_STORE
def test_doctor_finds_the_tools_the_store_and_runs_that_nobody_drives(rig: Rig) -> None:
    fresh = rig.orc("doctor")
    assert fresh.code == 0, fresh
    assert "does not exist yet" in fresh.out
    agent = rig.side / "claude"
    agent.write_text("#!/bin/sh\necho 9.9.9\n")
    agent.chmod(0o755)
    running = rig.start_run()
    running.wait_for("planning  started")
    running.process.kill()
    running.process.wait()
    found = rig.orc("doctor", "--json", env={"PATH": f"{rig.side}:/usr/bin:/bin"})
    assert found.code == 0, found
    told = {finding["name"]: finding for finding in found.json["findings"]}
    assert {"python", "git", "sh", "agent", "store", "run"} <= set(told)
    assert any("claude 9.9.9" in finding["detail"] for finding in found.json["findings"])
    assert "intact" in told["store"]["detail"]
    assert "says running, but nothing is running it" in told["run"]["detail"]


@OWN_STORE
def test_a_snapshot_that_is_not_what_the_journal_says_is_found_and_removed(rig: Rig) -> None:
    run = rig.run().run
    with Orchestrator(str(rig.repo)) as orchestrator:
        stored, kept = orchestrator.find(run), orchestrator.store.snapshots
        folded = orchestrator.fold(stored)
        good = encode(pack(folded.system, stored, folded.state, folded.seq, folded.at_us))
        folded.state.steps["coding"].status = "FAILED"
        bad = encode(pack(folded.system, stored, folded.state, folded.seq, folded.at_us))
    assert kept is not None
    kept.write(stored.id, good)
    assert rig.orc("store", "check", "--json").json["dropped"] == []
    assert kept.read(stored.id) == good
    for command in (("store", "check"), ("doctor",)):
        kept.write(stored.id, bad)
        assert "FAILED" in rig.orc("status", run).out, "it is believed, for all that it says of itself is true"
        told = rig.orc(*command)
        assert told.code == 0, told
        assert f"the snapshot of run {run} was not what its journal says: removed, the journal alone counts" in told.out
        assert kept.read(stored.id) is None
        assert "FAILED" not in rig.orc("status", run).out


def test_doctor_names_what_a_client_would_log_in_with_and_never_shows_it(rig: Rig) -> None:
    for name in ("claude", "codex"):
        (rig.side / name).write_text("#!/bin/sh\necho 9.9.9\n")
        (rig.side / name).chmod(0o755)
    (rig.repo / ".orc.toml").write_text('[agents.reviewer]\nadapter = "claude"\npass_credentials = false\n')
    path = f"{rig.side}:/usr/bin:/bin"
    found = rig.orc("doctor", env={"PATH": path, "ANTHROPIC_API_KEY": "sesame-open", "CODEX_API_KEY": ""})
    assert f"claude 9.9.9 ({rig.side}/claude); gets ANTHROPIC_API_KEY\n" in found.out, found
    assert "no key of its own is set: run `codex login`, or export CODEX_API_KEY" in found.out
    assert f"reviewer as configured ({rig.side}/claude); gets no key or token (pass_credentials is off)" in found.out
    assert "sesame" not in found.out


def test_doctor_tries_the_sandbox_of_codex(rig: Rig) -> None:
    client = rig.side / "codex"
    client.write_text('#!/bin/sh\ncase "$*" in *sandbox*) echo "bwrap: no such option" >&2; exit 1;; esac; echo 9.9.9\n')
    client.chmod(0o755)
    path = {"PATH": f"{rig.side}:/usr/bin:/bin"}
    found = rig.orc("doctor", env=path)
    assert "codex's sandbox runs nothing here (bwrap: no such option): it can change no file" in found.out, found
    assert 'permission_mode = "danger-full-access" in [agents.codex]' in found.out
    config = rig.repo / ".orc.toml"
    config.write_text('[agents.mine]\nadapter = "codex"\n[agents.codex]\npermission_mode = "danger-full-access"\n')
    other = rig.orc("doctor", env=path).out
    assert other.count("runs nothing here") == 1, "with its setting followed, and for one of another name"
    assert "in [agents.mine]" in other
    config.unlink()
    client.write_text("#!/bin/sh\necho 9.9.9\n")
    assert "runs nothing" not in rig.orc("doctor", env=path).out


def test_a_key_reaches_its_vendors_client_alone_and_is_stored_nowhere(rig: Rig) -> None:
    (rig.side / "client").write_text(f'#!/bin/sh\nenv > "{rig.side}/$STEP_ID.env"\nenv\n')
    (rig.side / "client").chmod(0o755)
    tables = "".join(f'[agents.{name}]\nbinary = "{rig.side}/client"\n' for name in ("claude", "codex"))
    (rig.repo / ".orc.toml").write_text(tables)
    steps = "".join(f"  - {{id: {name}, agent: {name}, prompt: prompt.md}}\n" for name in ("claude", "codex"))
    rig.workflow(f"name: keys\nsteps:\n{steps}")
    keys = {"ANTHROPIC_API_KEY": "sesame-open-one", "CODEX_API_KEY": "sesame-open-two", "AWS_SECRET_ACCESS_KEY": "sesame-three"}
    rig.orc("run", "--workflow", "workflow.yaml", "--max-attempts", "1", env=keys)
    seen = {name: (rig.side / f"{name}.env").read_text() for name in ("claude", "codex")}
    told = {name: [key for key in keys if f"{key}={keys[key]}" in text] for name, text in seen.items()}
    assert told == {"claude": ["ANTHROPIC_API_KEY"], "codex": ["CODEX_API_KEY"]}
    stored = [file for file in rig.repo.rglob("*") if file.is_file() and b"sesame" in file.read_bytes()]
    assert stored == []


def test_schemas_are_listed_and_printed_and_accept_what_we_write(rig: Rig) -> None:
    listed = rig.ask("schema", "--json").json["schemas"]
    teams = [name for name in listed if name.startswith("team-")]
    assert len(teams) == 6
    assert list(listed) == [
        "run-state",
        "workflow",
        "loop-state",
        "bead-run",
        "bead-result",
        "agent-state",
        *teams,
        "report",
        "config",
    ]
    run = rig.run().run
    report = json.loads((rig.repo / ".agents" / "runs" / run / "reports" / f"{run}__coding.json").read_text())
    samples = {"run-state": rig.state(run), "report": report, "workflow": {"steps": [{"id": "a", "agent": "b", "prompt": "c"}]}}
    for name, sample in samples.items():
        printed = rig.ask("schema", name)
        assert printed.code == 0, printed
        validator = jsonschema_rs.validator_for(printed.json)
        assert list(validator.iter_errors(sample)) == []
        assert not validator.is_valid({})
    assert rig.ask("schema", "nothing").code == 2


def test_prune_is_a_dry_run_until_told_and_forgets_everything_of_a_run(rig: Rig) -> None:
    runs = [rig.run("--run-id", name).run for name in ("one", "two")]
    rig.workflow(HUMAN)
    waiting = rig.run("--no-wait").run
    dry = rig.ask("prune", "--older-than", "0", "--json")
    assert dry.json == {"deleted": [], "would_delete": ["two", "one"], "kept": {}}
    stay = "2 runs stay: ended within the last 30d; --older-than 0 takes every age."
    assert rig.ask("prune", "--yes").out == f"There is nothing to prune.\n{stay}\n"
    done = rig.ask("prune", "--older-than", "0", "--keep", "1", "--yes", "--json")
    assert done.json["deleted"] == ["one"], done
    assert {run["run_id"] for run in rig.ask("list", "--json").json["runs"]} == {"two", waiting}
    assert not (rig.repo / ".agents" / "runs" / "one").exists()
    assert not (rig.repo / ".git" / "orc" / "launches" / "one").exists()
    assert (rig.repo / ".agents" / "runs" / runs[1]).exists()


def test_prune_keeps_a_worktree_with_work_that_nobody_merged(rig: Rig) -> None:
    for command in (["add", "--all"], ["commit", "--quiet", "--message", "workflow"]):
        subprocess.run(["git", *command], cwd=rig.repo, check=True)
    for run in ("clean", "dirty"):
        assert rig.run("--git-worktree", "--run-id", run).code == 0
    (rig.repo / ".agents" / "worktrees" / "dirty" / "new.txt").write_text("work")
    planned = rig.ask("prune", "--older-than", "0", "--json")
    assert "would keep     dirty" in rig.ask("prune", "--older-than", "0").out
    pruned = rig.ask("prune", "--older-than", "0", "--yes", "--json")
    assert pruned.json["deleted"] == planned.json["would_delete"] == ["clean"], pruned
    assert planned.json["kept"] == pruned.json["kept"]
    assert "uncommitted changes" in pruned.json["kept"]["dirty"]
    assert (rig.repo / ".agents" / "worktrees" / "dirty" / "new.txt").exists()
    assert rig.ask("show", "dirty").code == 0


def test_version_is_printed_in_three_ways(rig: Rig) -> None:
    said = {rig.orc(*command).out for command in (["version"], ["--version"])}
    assert said == {f"orc {rig.orc('version', '--json').json['version']}\n"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(rig: Rig, shell: str) -> None:
    assert "_ORC_COMPLETE" in rig.orc("completion", shell).out


def test_a_shell_completes_commands_runs_and_steps(rig: Rig) -> None:
    rig.run("--run-id", "f8c1a491")
    for words, expected in (("orc appr", "approve"), ("orc show f8", "f8c1a491"), ("orc show f8c1a491 cod", "coding")):
        environ = {"_ORC_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        completed = rig.orc(env=environ)
        assert expected in [line.split(",", 1)[1] for line in completed.out.splitlines()], completed


def test_every_command_has_help_with_an_example_and_the_two_options() -> None:
    told = dict(_all_commands("orc", orc))
    assert {"orc run", "orc loop", "orc loop run"} <= told.keys()
    for path, (text, command) in told.items():
        assert (command.help or "").split("\n", 1)[0] == text, path
        in_place = {"repo", "workspace"} & {parameter.name for parameter in command.params}
        assert isinstance(command, LazyGroup) or (in_place and "as_json" in {one.name for one in command.params}), path
        assert "Example:" in (command.epilog or ""), path
        assert path in (command.epilog or ""), path


def _all_commands(path: str, group: click.Command) -> Iterator[tuple[str, tuple[str, click.Command]]]:
    assert isinstance(group, LazyGroup)
    for name, text in group.helps.items():
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield f"{path} {name}", (text, command)
        if isinstance(command, LazyGroup):
            yield from _all_commands(f"{path} {name}", command)
