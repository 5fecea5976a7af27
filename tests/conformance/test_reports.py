"""Every role of every system can report by schema: what the schema accepts decodes, and what decodes the schema accepts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from agent_orchestrator.agents import find_agent
from agent_orchestrator.agents.adapter import InProcessAgent
from agent_orchestrator.agents.report import ask_for_report, report_schema, unfold
from agent_orchestrator.core.effects import AgentChoice
from agent_orchestrator.core.forms import Form, example_of, mapped, read_fields, shape_of
from agent_orchestrator.core.report import Common, Report, ReportRule, check_report
from agent_orchestrator.systems import SYSTEMS, find_system
from agent_orchestrator.testing.agents import make_task
from agent_orchestrator.testing.strict_schema import answer_faults, strict_faults

SEEDS = range(100)
RULE = ReportRule(words={"GOOD": "GOOD", "BAD": "BAD"}, ids={"run_id": "r"})
ROLES: dict[str, Form | None] = {"none": None}
ROLES |= {f"{name}.{form}": kind for name in SYSTEMS for form, kind in find_system(name).forms.items()}
ARGUMENT_BYTES_MAX = 128 * 1024
"""The most that Linux takes as one argument of a program; claude gets its schema so."""

each_role = pytest.mark.parametrize("role", list(ROLES))


def invented(schema: dict[str, Any], chance: random.Random) -> Any:
    """Something that a schema accepts: of what may be left out some, of every union every branch in time."""
    if "anyOf" in schema:
        return invented(chance.choice(schema["anyOf"]), chance)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if (values := mapped(schema)) is not None:
        return {word(chance): invented(values, chance) for _ in range(chance.randrange(3))}
    kind = schema.get("type", "string")
    match kind if isinstance(kind, str) else chance.choice(kind):
        case "object":
            left_out = [name for name in schema["properties"] if name not in schema["required"] and chance.random() < 0.4]
            return {name: invented(one, chance) for name, one in schema["properties"].items() if name not in left_out}
        case "array":
            return [invented(schema["items"], chance) for _ in range(chance.randrange(4))]
        case "string":
            return word(chance)
        case "integer":
            return chance.choice([0, 7, -3, 2**40, 5.0])
        case "number":
            low, high = schema.get("minimum", -10.5), schema.get("maximum", 10.5)
            return chance.choice([low, high, 1, chance.uniform(low, high)])
        case "boolean":
            return chance.choice([True, False])
        case "null":
            return None
        case other:
            raise AssertionError(f"{other} in {schema}")


def written_as(kind: inspect.Type, chance: random.Random) -> Any:
    """Something that a type decodes, made from the type itself and not from the schema that is made of it."""
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=told):
            return chance.choice(told["enum"]) if told and "enum" in told else written_as(inner, chance)
        case inspect.UnionType(types=kinds):
            return written_as(chance.choice(kinds), chance)
        case inspect.StructType(fields=fields):
            kept = [field for field in fields if field.required or chance.random() < 0.6]
            return {field.encode_name: written_as(field.type, chance) for field in kept}
        case inspect.ListType(item_type=item):
            return [written_as(item, chance) for _ in range(chance.randrange(4))]
        case inspect.DictType(value_type=value):
            return {word(chance): written_as(value, chance) for _ in range(chance.randrange(3))}
        case inspect.LiteralType(values=values):
            return chance.choice(values)
        case inspect.StrType():
            return word(chance)
        case inspect.BoolType():
            return chance.choice([True, False])
        case inspect.IntType():
            return chance.randrange(1000)
        case inspect.FloatType(ge=low, le=high):
            return chance.choice([low or 0, high or 10.5, 1])
        case inspect.NoneType():
            return None
        case other:
            raise AssertionError(f"{other} is not known here")


def word(chance: random.Random) -> str:
    return chance.choice(["", "a", "ü…", '"}', "two words\n", "null"]) + str(chance.randrange(1000))


def folded(value: Any, shape: dict[str, Any]) -> Any:
    """Return what decodes, as a strict schema wants it written."""
    for branch in shape.get("anyOf", (shape,)):
        values = mapped(branch)
        if isinstance(value, dict) and values is not None:
            return [{"name": name, "value": folded(one, values)} for name, one in value.items()]
        if isinstance(value, dict) and "properties" in branch:
            known = branch["properties"]
            left_out = {name: None for name in known if name not in value}
            return left_out | {name: folded(one, known.get(name, {})) for name, one in value.items()}
        if isinstance(value, list) and "items" in branch:
            return [folded(one, branch["items"]) for one in value]
    return value


def decoded(document: dict[str, Any], form: Form | None) -> tuple[Report, Any]:
    """The report as a system reads it, whole."""
    report = check_report(document, RULE)
    assert isinstance(report, Report), report
    assert not report.warnings
    return report, None if form is None else read_fields(report, form)


@each_role
def test_the_schema_is_of_the_strict_kind(role: str) -> None:
    schema = report_schema(RULE, ROLES[role])
    assert strict_faults(schema) == []
    assert schema["properties"]["status"]["enum"] == ["GOOD", "BAD"]
    assert len(msgspec.json.encode(schema)) < ARGUMENT_BYTES_MAX / 8


@each_role
def test_what_the_schema_accepts_decodes(role: str) -> None:
    form = ROLES[role]
    schema = report_schema(RULE, form)
    for seed in SEEDS:
        answer = invented(schema, random.Random(seed))
        assert answer_faults(answer, schema) == []
        decoded(unfold(answer, form), form)


@each_role
def test_what_decodes_the_schema_accepts_and_it_decodes_to_the_same(role: str) -> None:
    form, shape = ROLES[role], shape_of(ROLES[role])
    schema = report_schema(RULE, form)
    for seed in SEEDS:
        chance = random.Random(seed)
        kinds = [inspect.type_info(one) for one in (Common, form) if one is not None]
        written = {name: one for kind in kinds for name, one in written_as(kind, chance).items()} | {"status": "GOOD"}
        answer = folded(written, shape)
        assert answer_faults(answer, schema) == []
        assert decoded(unfold(answer, form), form) == decoded(unfold(written, form), form)


@each_role
def test_the_example_of_the_prompt_decodes_and_has_every_field(role: str, tmp_path: Path) -> None:
    form = ROLES[role]
    example = example_of(form, "GOOD")
    report, fields = decoded(example, form)
    assert form is None or set(report.fields) == set(form.__struct_fields__)
    asked = ask_for_report(make_task(tmp_path, AgentChoice(name="gemini"), form=form), tmp_path / "here.json")
    for name in report.fields:
        assert f'"{name}"' in asked
    assert fields is None or isinstance(fields, form or object)


@each_role
def test_every_field_is_said_in_words(role: str) -> None:
    fields = {name: one for name, one in shape_of(ROLES[role])["properties"].items() if name != "status"}
    assert [name for name, one in fields.items() if not one.get("description")] == []


@each_role
@pytest.mark.parametrize("client", ["claude", "codex"])
def test_an_agent_held_to_the_schema_is_told_of_no_file_and_no_other_shape(client: str, role: str, tmp_path: Path) -> None:
    task = make_task(tmp_path, AgentChoice(name=client), form=ROLES[role])
    agent = find_agent(client)
    assert not isinstance(agent, InProcessAgent)
    asked = agent.ask_for_report(task)
    for name in shape_of(ROLES[role])["properties"]:
        assert f"- `{name}`: " in asked
    assert str(tmp_path) not in asked
    assert not set("{}[]") & set(asked)


def test_every_system_has_its_roles_in_the_list() -> None:
    assert {role.partition(".")[0] for role in ROLES} == {"none", *SYSTEMS}
