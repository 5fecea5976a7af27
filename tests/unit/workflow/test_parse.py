"""A workflow file is read strictly: every fault at once, each with its line and column."""

from __future__ import annotations

import msgspec
import pytest

from agent_orchestrator.errors import InvalidSpec
from agent_orchestrator.systems.workflow.graph import find_cycle, is_above
from agent_orchestrator.systems.workflow.parse import env_names, parse
from agent_orchestrator.systems.workflow.spec import WorkflowSpec, with_options_kept, with_prompts

FULL = """\
name: everything
description: All keys.
metadata: {owner: team, since: 2025-01-15}
steps:
  - id: plan
    agent: planner
    prompt: prompts/plan.md
    next_on_success: [code]
  - id: code
    agent: coder
    prompt: /abs/code.md
    needs: [plan]
    gates: [qa]
    check: pytest -q
    human_in_the_loop: true
    when: plan.metrics.tasks > 0 and vars.x == 'y' and env.CI != null
    model: big
    timeout: 10m
    max_attempts: 3
    metadata: {a: [1, 2.5, true, null, {b: c}]}
    loop_back_to: plan
    loop: {items: [1, two, {three: 3}], item_var: thing, index_var: i, max_iterations: 5}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidSpec) as caught:
        parse(text, "w.yaml")
    return [problem.located("w.yaml") for problem in caught.value.problems]


def only_problem(text: str) -> str:
    (problem,) = problems(text)
    return problem


def one_step(more: str = "") -> str:
    return f"steps:\n  - id: a\n    agent: coder\n    prompt: p.md\n{more}"


def two_steps(more: str = "") -> str:
    return f"{one_step()}  - id: b\n    agent: coder\n    prompt: p.md\n    needs: [a]\n{more}"


def test_every_key_of_the_contract_is_read() -> None:
    spec = parse(FULL, "w.yaml").spec
    plan, code = spec.steps
    assert (spec.name, spec.description, spec.metadata) == ("everything", "All keys.", {"owner": "team", "since": "2025-01-15"})
    assert plan.next_on_success == ("code",)
    assert (code.prompt, code.prompt_path, code.needs, code.gates) == ("/abs/code.md", None, ("plan",), ("qa",))
    assert (code.check, code.human_in_the_loop, code.model, code.timeout_s, code.max_attempts) == (
        "pytest -q",
        True,
        "big",
        600,
        3,
    )
    assert code.metadata == {"a": [1, 2.5, True, None, {"b": "c"}]}
    assert code.loop_back_to == "plan"
    assert code.loop is not None
    assert code.loop.items == (1, "two", {"three": 3})
    assert (code.loop.item_var, code.loop.index_var, code.loop.max_iterations) == ("thing", "i", 5)


def test_a_spec_survives_the_database() -> None:
    spec = with_prompts(parse(FULL, "w.yaml").spec, {"plan": "/repo/plan.md"})
    assert msgspec.json.decode(msgspec.json.encode(spec), type=WorkflowSpec) == spec
    assert spec.steps[0].prompt_path == "/repo/plan.md"
    assert spec.steps[1].prompt_path is None


def test_options_have_the_documented_defaults() -> None:
    spec = parse(one_step(), "w.yaml").spec
    assert (spec.max_parallel, spec.max_attempts, spec.max_iterations) == (4, 2, 4)
    assert spec.steps[0].loop is None


def test_the_name_defaults_to_the_files_name() -> None:
    assert parse(one_step(), "/some/where/release.yaml").spec.name == "release"


def test_the_environment_that_conditions_ask_for_is_named() -> None:
    assert env_names(parse(FULL, "w.yaml").spec) == ["CI"]


def test_aliases_and_merge_keys_are_fine() -> None:
    text = "steps:\n  - &one {id: a, agent: coder, prompt: p.md, model: m}\n  - {<<: *one, id: b, needs: [a]}\n"
    first, second = parse(text, "w.yaml").spec.steps
    assert (first.id, second.id, second.agent, second.model) == ("a", "b", "coder", "m")


def test_null_stands_for_a_key_left_out() -> None:
    keys = (
        "needs",
        "loop_back_to",
        "gates",
        "check",
        "human_in_the_loop",
        "when",
        "model",
        "timeout",
        "max_attempts",
        "metadata",
    )
    more = "".join(f"    {key}:\n" for key in (*keys, "next_on_success", "loop"))
    assert parse(one_step(more), "w.yaml").spec.steps == parse(one_step(), "w.yaml").spec.steps


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    text = (
        "nam: x\nsteps:\n  - {id: a/b, agent: coder, prompt: p}\n  - {id: c, agent: coder, prompt: p, needs: [zz], timeout: -1}\n"
    )
    found = problems(text)
    assert [line.split(": ")[0] for line in found] == ["w.yaml:1:1", "w.yaml:3:10", "w.yaml:4:46", "w.yaml:4:60"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps: [", "w.yaml:2:1: this is not YAML"),
        ("a: b\n  c: d\n", "w.yaml:2:4: this is not YAML"),
        ("steps: \x07", "w.yaml:1:8: this is not YAML: the character '\\x07'"),
        ("[" * 100_000, "w.yaml:1:101: the file is nested too deeply"),
        ("a: *b", "w.yaml:1:4: this is not YAML"),
        ("a: 1\n---\nb: 2\n", "this is not YAML"),
        ("", "w.yaml: the file is empty"),
        ("~", "w.yaml:1:1: the file is empty"),
        ("- a", "w.yaml:1:1: the workflow must be a mapping, not a list"),
        ("name: x", "w.yaml:1:1: a workflow needs at least one entry in `steps`"),
        ("steps: []", "w.yaml:1:8: a workflow needs at least one entry"),
        ("steps: {a: b}", "w.yaml:1:8: steps must be a list, not a mapping"),
        ("steps: [a]", "w.yaml:1:9: step number 1 must be a mapping, not the text 'a'"),
    ],
)
def test_a_file_of_the_wrong_shape_is_refused(text: str, said: str) -> None:
    assert problems(text)[0].startswith(said) or said in problems(text)[0]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("    need: [b]\n", "w.yaml:5:5: step number 1: unknown key 'need'; did you mean 'needs'?"),
        ("    zzz: 1\n", "w.yaml:5:5: step number 1: unknown key 'zzz'; known keys are id, agent"),
        ("    agent: x\n", "w.yaml:5:5: step number 1: the key 'agent' is given twice"),
        ("    needs: b\n", "w.yaml:5:12: step 'a': needs must be a list, not the text 'b'"),
        ("    needs: [1]\n", "w.yaml:5:13: an entry of step 'a': needs must be text, not 1 (put it in quotes)"),
        ("    needs: [b]\n", "w.yaml:5:13: step 'a' needs 'b', and there is no such step"),
        ("    needs: [a]\n", "w.yaml:5:13: step 'a' needs itself"),
        ("    timeout: .nan\n", "w.yaml:5:14: step 'a': timeout is nan"),
        ("    timeout: soon\n", "w.yaml:5:14: step 'a': timeout is 'soon'"),
        ("    timeout: -1\n", "w.yaml:5:14: step 'a': timeout is -1"),
        ("    timeout: [1]\n", "w.yaml:5:14: step 'a': timeout must be a single value, not a list"),
        ("    max_attempts: 0\n", "w.yaml:5:19: step 'a': max_attempts is 0: it must be a whole number, at least 1."),
        ("    max_attempts: .nan\n", "w.yaml:5:19: step 'a': max_attempts is nan"),
        ("    max_attempts: 1.5\n", "w.yaml:5:19: step 'a': max_attempts is 1.5"),
        ("    max_attempts: true\n", "w.yaml:5:19: step 'a': max_attempts is True"),
        ("    human_in_the_loop: perhaps\n", "w.yaml:5:24: step 'a': human_in_the_loop must be true or false"),
        ("    check: ''\n", "w.yaml:5:12: step 'a': check is empty"),
        ("    model: 5\n", "w.yaml:5:12: step 'a': model must be text, not 5"),
        ("    metadata: [a]\n", "w.yaml:5:15: step 'a': metadata must be a mapping"),
        ("    metadata: {a: .inf}\n", "w.yaml:5:19: step 'a': metadata: '.inf' is not a number that can be stored"),
        ("    metadata: {a: !x b}\n", "w.yaml:5:19: step 'a': metadata: the tag '!x' is not allowed"),
        ("    metadata: &m {a: *m}\n", "step 'a': metadata expands without end"),
        ("    loop_back_to: a\n", "w.yaml:5:19: step 'a': loop_back_to names 'a', which is not above it"),
        ("    loop_back_to: b\n", "w.yaml:5:19: step 'a': loop_back_to names 'b', and there is no such step"),
        ("    when: a.status == 'COMPLETED'\n", "w.yaml:5:11: step 'a': when names 'a', which is not above it"),
        ("    when: b.status == 'COMPLETED'\n", "w.yaml:5:11: step 'a': when names 'b', and there is no such step"),
        ("    when: vars.x = 1\n", "w.yaml:5:11: step 'a': when, character 8: unexpected '='"),
        ("    when: true\n", "w.yaml:5:11: step 'a': when must be text, not true"),
        ("    loop: {}\n", "w.yaml:5:11: step 'a': loop: exactly one of items, items_from_step, items_from_artifact"),
        ("    loop: {items: [], items_from_artifact: b}\n", "must be given, not items and items_from_artifact"),
        ("    loop: {items: [.nan]}\n", "w.yaml:5:20: step 'a': loop: items: '.nan' is not a number"),
        ("    loop: {items: 3}\n", "w.yaml:5:19: step 'a': loop: items must be a list, not 3"),
        ("    loop: {items: [], max_iterations: 0}\n", "w.yaml:5:39: step 'a': loop: max_iterations is 0"),
        ("    loop: {items: [], item_var: a-b}\n", "w.yaml:5:33: step 'a': loop: item_var is 'a-b'"),
        ("    loop: {items: [], item_var: Index}\n", "w.yaml:5:11: step 'a': loop: item_var and index_var are the same"),
        ("    loop: {items: [], item: x}\n", "w.yaml:5:23: step 'a': loop: unknown key 'item'; did you mean 'items'?"),
        ("    loop: {items_from_step: zz}\n", "w.yaml:5:11: step 'a': items_from_step names 'zz', and there is no such step"),
    ],
)
def test_a_faulty_key_is_named_with_its_place(more: str, said: str) -> None:
    assert said in only_problem(one_step(more))


@pytest.mark.parametrize("name", ["a/b", "..", "a b", "-a", ".a", '"a\\tb"', '"a\\0b"', "ü", "x" * 101])
def test_a_step_id_that_could_not_be_a_file_name_is_refused(name: str) -> None:
    assert "w.yaml:1:15: step id " in only_problem(f"steps: [ {{id: {name}, agent: coder, prompt: p.md}}]")


@pytest.mark.parametrize("key", ["id", "agent", "prompt"])
def test_a_missing_key_is_named(key: str) -> None:
    keys = ", ".join(f"{name}: x" for name in ("id", "agent", "prompt") if name != key)
    assert f"the key '{key}' is missing" in only_problem(f"steps: [{{{keys}}}]")


def test_a_key_without_a_value_is_not_to_be_put_in_quotes() -> None:
    assert problems("steps: [{id: a, agent: ~, prompt: p.md}]")[0].endswith("step 'a': agent must be text, not nothing")


def test_a_duplicate_id_says_where_the_first_one_is() -> None:
    text = one_step() + "  - {id: a, agent: coder, prompt: p.md}\n"
    assert only_problem(text) == "w.yaml:5:10: step 'a': this id is used already in line 2"


def test_a_cycle_is_named() -> None:
    text = "steps:\n" + "".join(
        f"  - {{id: {step}, agent: coder, prompt: p, needs: [{need}]}}\n" for step, need in (("a", "c"), ("b", "a"), ("c", "b"))
    )
    assert only_problem(text).endswith("these steps need each other in a circle: a → c → b → a")


def test_loop_back_and_when_may_name_any_step_above() -> None:
    text = two_steps('  - {id: c, agent: x, prompt: p, needs: [b], loop_back_to: a, when: "a.metrics.n >= 1"}\n')
    assert parse(text, "w.yaml").spec.steps[2].loop_back_to == "a"


def test_next_on_success_that_disagrees_with_needs_is_a_warning() -> None:
    parsed = parse(two_steps("    next_on_success: [a, zz]\n"), "w.yaml")
    assert parsed.warnings == (
        "w.yaml:9: step 'b': next_on_success names 'a', which does not need it; only `needs` counts",
        "w.yaml:9: step 'b': next_on_success names 'zz', and there is no such step; only `needs` counts",
    )


def test_an_alias_bomb_is_refused() -> None:
    levels = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9)]
    text = one_step("    metadata: {" + ", ".join(levels) + "}\n")
    assert "expands without end or too far" in problems(text)[0]


def test_long_chains_need_no_recursion() -> None:
    needs = {f"s{n}": [f"s{n - 1}"] if n else [] for n in range(20_000)}
    assert find_cycle(needs) == []
    assert is_above(needs, "s19999", "s0")
    assert not is_above(needs, "s0", "s19999")


def test_a_changed_file_keeps_the_options_of_the_run() -> None:
    old = msgspec.structs.replace(parse(one_step(), "w.yaml").spec, max_attempts=7, variables={"a": "1", "b": "2"}, timeout_s=5.0)
    new = msgspec.structs.replace(parse(two_steps(), "w.yaml").spec, max_attempts=2, variables={"b": "3"})
    kept = with_options_kept(new, old)
    assert (kept.max_attempts, kept.variables, kept.timeout_s) == (7, {"a": "1", "b": "3"}, 5.0)
    assert [step.id for step in kept.steps] == ["a", "b"]


def test_needs_whose_artifacts_would_have_the_same_name_are_refused() -> None:
    steps = "".join(f"  - {{id: {name}, agent: x, prompt: p.md}}\n" for name in ("a-b", "a_b"))
    text = f"name: w\nsteps:\n{steps}  - {{id: c, agent: x, prompt: p.md, needs: [a-b, a_b]}}\n"
    with pytest.raises(InvalidSpec, match="DEP_A_B_ARTIFACTS; give one of them another id"):
        parse(text, "workflow.yaml")
    parse(text.replace("[a-b, a_b]", "[a-b]"), "workflow.yaml")
