"""Task documents: what is read, and every fault with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

import agent_orchestrator.systems.phases as package
from agent_orchestrator.errors import InvalidSpec
from agent_orchestrator.systems.phases.commands import find_command
from agent_orchestrator.systems.phases.parse import parse_document
from agent_orchestrator.systems.phases.spec import PhasesPlan, make_criteria, slug_of
from tests.acceptance.phases_rig import FOUR_PHASES, SMALL


def read(text: str) -> PhasesPlan:
    return parse_document(text, "task.md").plan


def faults(text: str) -> list[str]:
    with pytest.raises(InvalidSpec) as caught:
        parse_document(text, "task.md")
    return [problem.located("task.md") for problem in caught.value.problems]


def line_of(text: str, needle: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if needle in line)


def test_a_whole_document_is_read() -> None:
    plan = read(FOUR_PHASES)
    assert (plan.name, plan.goal, plan.context) == ("User auth", "Users can log in.", "The code is in files named work-*.")
    assert [(phase.number, phase.name) for phase in plan.phases][:2] == [(1, "Foundation"), (2, "Endpoints")]
    task = plan.tasks[0]
    assert (task.id, task.name, task.description) == ("1.1", "Update the model", "The model gets new fields.")
    assert (task.agents, task.complexity, task.effort, task.files) == (("task-executor",), "Medium", "30 minutes", ("work-1.1",))
    assert plan.tasks[1].needs == ("1.1",)
    assert (plan.bounds.max_iterations, plan.bounds.max_cost_usd, plan.bounds.max_time_s) == (5, 10.0, 7200.0)
    assert (plan.supervision.enabled, plan.outer_ralph, plan.outer_max) == (True, True, 3)


def test_a_criterion_with_a_command_is_run_and_named_after_its_words() -> None:
    found = read(FOUR_PHASES).tasks[0].criteria
    assert [(one.key, one.command) for one in found] == [
        ("twice_written", 'test "$(wc -l <work-1.1)" -ge 2'),
        ("it_is_good", None),
    ]


def test_criteria_of_the_same_words_have_keys_of_their_own() -> None:
    made = make_criteria([(text, find_command(text)) for text in ("Tests pass `make a`", "Tests pass `make b`", "`make c`", "…")])
    assert [one.key for one in made] == ["tests_pass", "tests_pass_2", "make_c", "criterion"]


@pytest.mark.parametrize(
    ("text", "most", "slug"),
    [("User auth, part 2!", 40, "user-auth-part-2"), ("a-very-long-name", 8, "a-very"), ("äöü", 40, "")],
)
def test_a_slug_is_cut_between_words(text: str, most: int, slug: str) -> None:
    assert slug_of(text, most=most) == slug


def test_what_is_left_out_has_its_defaults() -> None:
    plan = read(SMALL)
    assert (plan.bounds.max_iterations, plan.bounds.max_cost, plan.bounds.max_time) == (30, "unlimited", "unlimited")
    assert (plan.supervision.enabled, plan.supervision.auto_fix, plan.outer_max) == (True, True, 10)


@pytest.mark.parametrize(
    ("was", "now", "needle", "said"),
    [
        ("# Task: Small thing", "# Task:", "# Task:", "the first heading must name the task: # Task: NAME"),
        ("### Phase 1: Only", "### Phase 2: Only", "### Phase", "phase 1 is missing: phases are numbered from 1 on"),
        ("#### Task 1.2: Second", "#### Task 1.1: Second", "Second", "task 1.1 stands twice, first in line 11"),
        ("#### Task 1.2: Second", "#### Task 2.2: Second", "Second", "task 2.2 stands in phase 1"),
        ("**Dependencies**: 1.1", "**Dependencies**: 7.7", "7.7", "task 1.2 depends on task 7.7, which does not exist"),
        ("**Dependencies**: 1.1", "**Dependencies**: the first", "the first", "task 1.2 depends on 'the first'"),
        ("**Dependencies**: 1.1", "**Dependancies**: 1.1", "Dependancies", "'Dependancies' is no field of a task"),
        ("- [ ] It is good\n\n", "- [ ]\n\n", "- [ ]\n", "a criterion of task 1.1 has no text"),
        ("- [ ] It is good\n**D", "It is good\n**D", "#### Task 1.2", "task 1.2 has no success criteria"),
        ("Something small.", "‹what is to be reached›", "‹what", "the template's example ‹what is to be reached› is left in"),
        ("**Dependencies**: 1.1", "**Files**: ../secrets", "../", "'../secrets' leads out of the repository"),
    ],
)
def test_a_bad_document_gives_one_sentence_with_its_line(was: str, now: str, needle: str, said: str) -> None:
    text = SMALL.replace(was, now, 1)
    line = line_of(text, needle.strip("\n")) if needle != "- [ ]\n" else text.splitlines().index("- [ ]") + 1
    assert any(fault.startswith(f"task.md:{line}: {said}") for fault in faults(text)), faults(text)


@pytest.mark.parametrize("bound", ["ten dollars", "$-3", "nan", "0"])
def test_bounds_are_strict(bound: str) -> None:
    text = FOUR_PHASES.replace("$10", bound)
    (fault,) = faults(text)
    assert fault.startswith(f"task.md:{line_of(text, 'Maximum cost')}: maximum cost is ")


@pytest.mark.parametrize(("written", "seconds"), [("2h", 7200), ("2 hours", 7200), ("90m", 5400), ("1h 30m", 5400)])
def test_time_is_read_as_people_write_it(written: str, seconds: float) -> None:
    bounds = read(FOUR_PHASES.replace("**Maximum time**: 2h", f"**Maximum time**: {written}")).bounds
    assert (bounds.max_time, bounds.max_time_s) == (written, seconds)


@pytest.mark.parametrize(("written", "usd"), [("$10", 10.0), ("10 USD", 10.0), ("12.50", 12.5), ("unlimited", None)])
def test_money_is_read_as_people_write_it(written: str, usd: float | None) -> None:
    bounds = read(FOUR_PHASES.replace("$10", written)).bounds
    assert (bounds.max_cost, bounds.max_cost_usd) == (written, usd)


def test_a_dependency_on_a_later_task_and_a_circle_are_told_apart() -> None:
    later = SMALL.replace("- [ ] It is good\n\n", "- [ ] It is good\n**Dependencies**: 1.2\n\n", 1).replace(
        "**Dependencies**: 1.1\n", ""
    )
    line = line_of(later, "Dependencies")
    assert faults(later) == [f"task.md:{line}: task 1.1 depends on task 1.2, which comes later; put it first"]
    circle = SMALL.replace("- [ ] It is good\n\n", "- [ ] It is good\n**Dependencies**: 1.2\n\n", 1)
    assert "task 1.1 depends on itself: 1.1 needs 1.2 needs 1.1" in faults(circle)[0]


def test_all_faults_are_told_at_once_in_the_order_of_their_lines() -> None:
    text = SMALL.replace("# Task: Small thing", "# Task:").replace("Task 1.2", "Task 1.1").replace(": 1.1\n", ": 9.9\n")
    found = faults(text)
    assert len(found) >= 3
    assert [int(fault.split(":")[1]) for fault in found] == sorted(int(fault.split(":")[1]) for fault in found)


def test_the_template_is_a_document_once_its_examples_are_replaced() -> None:
    template = Path(package.__file__).with_name("template.md").read_text("utf-8")
    assert all("is left in" in fault for fault in faults(template))
    filled = template.replace("‹", "").replace("›", "")
    assert [task.id for task in read(filled).tasks] == ["1.1"]


def test_a_section_that_is_not_read_is_pointed_out() -> None:
    assert parse_document(SMALL + "\n## Notes\n\nHm.\n", "task.md").warnings == ("line 23: the section 'Notes' is not read",)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("## Supervisor Checks\n\n- **Enable**: perhaps\n", "Enable is 'perhaps': it must be yes or no"),
        ("## Supervisor Checks\n\n- **Frequency**: daily\n", "Frequency is 'daily': it must be one of every task"),
        ("## Supervisor Checks\n\n**Enable Supervisor**: Yes | No\n", "Enable Supervisor is 'yes | no': it must be yes or no"),
        ("## Outer Ralph Loop\n\n- **Maximum iterations**: many\n", "Maximum iterations is 'many'"),
        ("## Safety Bounds\n\n| Bound | Value |\n|---|---|\n| Maximum fun | 3 |\n", "'Maximum fun' is no safety bound"),
        ("## Safety Bounds\n\n- **Maximum patience**: 3\n", "'Maximum patience' is no safety bound"),
    ],
)
def test_settings_are_strict(lines: str, said: str) -> None:
    (fault,) = faults(f"{SMALL}\n{lines}")
    assert said in fault


@pytest.mark.parametrize(
    ("was", "now", "needle", "said"),
    [
        ("- **Maximum cost**: $10", "- Maximum cost: $10", "Maximum cost", "'Maximum cost: $10' would not be read"),
        ("- **Maximum cost**: $10", "Maximum cost: $10\n", "Maximum cost", "'Maximum cost: $10' would not be read"),
        ("- **Maximum cost**: $10", "- at most $10", "at most", "'at most $10' would not be read"),
        (
            "- **Maximum time**: 2h",
            "- **Maximum time**: 2h\n- **maximum time**: 3h",
            "3h",
            "'maximum time' stands twice; keep one",
        ),
        ("- **Auto-fix**: yes", "- Auto-fix: no", "Auto-fix", "'Auto-fix: no' would not be read"),
        ("- **Maximum iterations**: 3", "- Max: 3", "Max: 3", "'Max: 3' would not be read"),
        ("**Dependencies**: 1.1", "Dependencies: 1.1", "Dependencies: 1.1", "'Dependencies' would not be read like this"),
        (
            "**Description**: The model",
            "- [ ] It is\n\n**Description**: The model",
            "- [ ] It is",
            "this would not be read: write it below **Success Criteria**",
        ),
        ("#### Task 1.1:", "#### Tsak 1.1:", "#### Tsak", "'Tsak 1.1: Update the model' is no task"),
        ("- [ ] It is good", "\n| It is good |", "| It is good |", "a criterion is an item, not a row of a table"),
    ],
)
def test_nothing_that_was_written_is_overlooked(was: str, now: str, needle: str, said: str) -> None:
    text = FOUR_PHASES.replace(was, now, 1)
    found = faults(text)
    assert any(one.startswith(f"task.md:{line_of(text, needle)}: {said}") for one in found), found


def test_text_of_a_task_before_its_fields_is_its_description() -> None:
    described = "**Description**: The model"
    plain = read(FOUR_PHASES.replace(described, "The model", 1)).tasks
    assert [task.description for task in plain] == [task.description for task in read(FOUR_PHASES).tasks]
    listed = read(FOUR_PHASES.replace(described, "All of:\n\n- one\n- two\n\nThe model", 1)).tasks
    assert listed[0].description.startswith("All of:\n- one\n- two\nThe model")


def test_the_context_keeps_what_stands_below_its_own_headings() -> None:
    told = "The code is in files named work-*."
    plan = read(FOUR_PHASES.replace(told, f"{told}\n\n### Rules\n\nNo new dependencies.\n"))
    assert plan.context == f"{told}\n\n### Rules\n\nNo new dependencies."


def test_text_below_a_phase_is_part_of_it() -> None:
    text = FOUR_PHASES.replace("### Phase 2: Endpoints\n", "### Phase 2: Endpoints\n\n**Goal**: Slowly.\n\n---\n")
    parsed = parse_document(text, "task.md")
    assert (parsed.plan.phases[1].text, parsed.warnings) == ("**Goal**: Slowly.", ())


OLDER = """\
# Unified Task: 🚀 Data package

> **Template Version**: 1.0

---

## 🎯 Goal

Data is fetched.

---

## Success Criteria (Global)

[What must be true for the whole]

- [ ] All tests pass (`python3 -m pytest`)
- [ ] Coverage >= 80%

## Safety Bounds

**Maximum iterations per task**: 12
**Maximum cost**: $20 (for consultations)
**Maximum time**: 3 hours per session

> These bounds prevent runaway execution.

## Phases & Tasks

### Phase 1: Foundation

**Goal**: A place to work

#### Task 1.1: Make the package

**Description**: Files and folders

**Success Criteria**:
- [ ] `pyproject.toml` with `src/` layout
- [ ] Example in the README:
  ```python
  from data import Client
  ```
- [ ] Unit tests for:
  - `test_client.py` - the client
  - the cache

**Agents Needed**:
- `build-engineer` (packaging, releases)

> **Agent Selection Guide**: see the catalogue

**Dependencies**: None (starts at once)

**Implementation Notes**: small steps

---

#### 1.2 - Fetch

**Acceptance Criteria**: it fetches

**Dependencies**: Task 1.1 (the package)

### Phase 2 — The rest

#### Task 1: Load testing

- [ ] Fast

**Dependencies**: All previous tasks

##### Hints

Be careful.

## Supervisor Checks

**Enable Supervisor**: Yes

**Check Frequency**:
- [x] Pre-task (before each task starts)
- [ ] Post-task
- [ ] On-demand

**Check For**:
- [x] Architecture violations
- [ ] Weather

**Auto-Fix Minor Issues**: No

## Outer Ralph Loop

**Enable Outer Ralph**: Yes

**Success Criteria** (applied to all):
- [ ] No code smells
- [ ] Coverage >= 80%

**Focus Areas**:
- Documentation

**Maximum Iterations**: 15

## Delegation Strategy

None
"""


def test_a_document_of_an_older_tool_is_read_in_its_own_spelling() -> None:
    plan = parse_document(OLDER, "task.md", {"python3", "test"}.__contains__).plan
    first, second, third = plan.tasks
    assert (plan.name, plan.goal, plan.phases[0].text) == ("🚀 Data package", "Data is fetched.", "**Goal**: A place to work")
    assert (plan.bounds.max_iterations, plan.bounds.max_cost_usd, plan.bounds.max_time_s) == (12, 20.0, 10800.0)
    assert [(one.text, one.command) for one in plan.criteria] == [
        ("All tests pass (`python3 -m pytest`)", "python3 -m pytest"),
        ("Coverage >= 80%", None),
        ("No code smells", None),
    ]
    assert [one.text for one in first.criteria] == [
        "`pyproject.toml` with `src/` layout",
        "Example in the README: from data import Client",
        "Unit tests for: `test_client.py` - the client; the cache",
    ]
    assert (first.agents, first.needs, first.description) == (
        ("build-engineer",),
        (),
        "Files and folders\nImplementation Notes: small steps",
    )
    assert (second.id, second.name, second.needs, [one.text for one in second.criteria]) == (
        "1.2",
        "Fetch",
        ("1.1",),
        ["it fetches"],
    )
    assert (third.id, third.needs, third.description) == ("2.1", ("1.1", "1.2"), "Hints\nBe careful.")
    supervision = plan.supervision
    assert (supervision.enabled, supervision.before, supervision.after, supervision.auto_fix) == (True, True, False, False)
    assert (supervision.focus, plan.outer_ralph, plan.outer_max, plan.outer_focus) == (
        ("Architecture violations",),
        True,
        10,
        ("Documentation",),
    )


def test_what_of_an_older_document_is_not_used_is_pointed_out() -> None:
    warnings = parse_document(OLDER, "task.md").warnings
    assert [one.partition(": ")[2] for one in warnings] == [
        "Maximum Iterations is 15: the outer loop makes at most 10 iterations",
        "the section 'Delegation Strategy' is not read",
    ]


def test_the_line_ends_of_another_system_change_nothing() -> None:
    assert read(OLDER.replace("\n", "\r\n")) == read(OLDER)


def test_settings_may_stand_in_a_table_and_phases_without_a_section() -> None:
    text = SMALL.replace("## Phases & Tasks\n", "## Safety Bounds\n\n| Bound | Value |\n|---|---|\n| Maximum cost | $5 |\n")
    for document in (text, text.replace("### Phase 1", "## Phase 1").replace("#### Task", "### Task")):
        plan = read(document)
        assert (plan.bounds.max_cost_usd, [task.id for task in plan.tasks]) == (5.0, ["1.1", "1.2"])


def test_a_heading_between_tasks_that_asks_for_nothing_is_a_note() -> None:
    text = SMALL.replace("#### Task 1.2", "#### Remember\n\nTo breathe.\n\n#### Task 1.2")
    parsed = parse_document(text, "task.md")
    assert [task.id for task in parsed.plan.tasks] == ["1.1", "1.2"]
    assert parsed.warnings == (f"line {line_of(text, '#### Remember')}: 'Remember' is a note, and is not read",)
