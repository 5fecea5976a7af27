"""`## Phases & Tasks`: the phases, their tasks with all fields, and how tasks depend on each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent_orchestrator.systems.phases.parse.blocks import Complain, Field, Section, read_boxes
from agent_orchestrator.systems.phases.spec import Criterion, PlanPhase, PlanTask

PHASE = re.compile(r"Phase\s+(?P<number>\d{1,4})\s*:\s*(?P<name>.*)\Z", re.S)
TASK = re.compile(r"Task\s+(?P<id>(?P<phase>\d{1,4})\.(?P<number>\d{1,4}))\s*:\s*(?P<name>.*)\Z", re.S)
NEED = re.compile(r"(?:task\s+)?(?P<id>\d{1,4}\.\d{1,4})(?:\s*\(.*\))?\Z", re.I)
NOTHING = {"none", "-", "n/a", "nothing"}

FIELDS = {
    "description": "description",
    "success criteria": "criteria",
    "agents needed": "agents",
    "complexity": "complexity",
    "dependencies": "needs",
    "estimated effort": "effort",
    "files": "files",
}


def read_phases(sections: list[Section] | None, complain: Complain) -> dict[str, Any]:
    """Read the phases and tasks below the section."""
    if sections is None:
        complain("the section ## Phases & Tasks is missing: it says what is to be done", 1)
        return {}
    phases: list[PlanPhase] = []
    tasks: dict[str, PlanTask] = {}
    lines: dict[str, int] = {}
    needs: list[tuple[str, int, str]] = []
    empty: Section | None = None
    for section in sections[1:]:
        if section.level == 3:
            if empty is not None:
                complain(f"{empty.title} has no task; write #### Task {len(phases)}.1: NAME below it", empty.line)
            empty = section
            _read_phase(section, phases, complain)
        elif section.level > 4:
            complain(
                f"{section.title!r} would not be read: a task has no headings below it; write it in its description", section.line
            )
        elif section.level == 4 and (task := _read_task(section, phases, complain)) is not None:
            empty = None
            needs += [(task.id, line, need) for line, need in _needs(section, task.id, complain)]
            if task.id in tasks:
                complain(
                    f"task {task.id} stands twice, first in line {lines[task.id]}; give each task its own number", section.line
                )
                continue
            tasks[task.id], lines[task.id] = task, section.line
    if empty is not None:
        complain(f"{empty.title} has no task; write #### Task {len(phases)}.1: NAME below it", empty.line)
    if not phases:
        complain("there is no phase; write ### Phase 1: NAME and its tasks below it", sections[0].line)
    _check_needs(tasks, needs, complain)
    return {"phases": tuple(phases), "tasks": tuple(tasks.values())}


def _read_phase(section: Section, phases: list[PlanPhase], complain: Complain) -> None:
    match = PHASE.match(section.title)
    if match is None or not match["name"].strip():
        complain(f"{section.title!r} is no phase; write ### Phase {len(phases) + 1}: NAME", section.line)
        return
    number, expected = int(match["number"]), len(phases) + 1
    if number != expected:
        complain(f"phase {expected} is missing: phases are numbered from 1 on, and this is phase {number}", section.line)
    phases.append(PlanPhase(number=number, name=match["name"].strip()))


def _read_task(section: Section, phases: list[PlanPhase], complain: Complain) -> PlanTask | None:
    match = TASK.match(section.title)
    if match is None or not match["name"].strip():
        complain(f"{section.title!r} is no task; write #### Task {len(phases) or 1}.1: NAME", section.line)
        return None
    if not phases:
        complain(f"task {match['id']} stands in no phase; write ### Phase 1: NAME above it", section.line)
    elif int(match["phase"]) != phases[-1].number:
        complain(f"task {match['id']} stands in phase {phases[-1].number}; its number must begin with that", section.line)
    fields = _fields(section, complain)
    description = fields["description"].text if "description" in fields else _loose(section)
    _refuse_overlooked(section, fields, complain)
    task = f"{int(match['phase'])}.{int(match['number'])}"
    return PlanTask(
        id=task,
        name=match["name"].strip(),
        description=description,
        criteria=_criteria(section, task, fields.get("criteria"), complain),
        needs=tuple(need for _, need in _needs(section, task, lambda *_: None)),
        agents=tuple(name for _, name in fields["agents"].listed()) if "agents" in fields else (),
        complexity=fields["complexity"].value if "complexity" in fields else "",
        effort=fields["effort"].value if "effort" in fields else "",
        files=_files(fields.get("files"), complain),
    )


def _loose(section: Section) -> str:
    """Give what stands before the first field: the description of a task that has no field for it."""
    return "\n".join(f"- {entry.text}" if entry.item else entry.text for entry in section.loose)


def _refuse_overlooked(section: Section, fields: Mapping[str, Field], complain: Complain) -> None:
    """Refuse what would be overlooked: a field without its asterisks, boxes of no field, text beside a description."""
    unmarked = section.unmarked(FIELDS)
    for line, (_, key) in unmarked.items():
        complain(f"{key!r} would not be read like this: write **{key}**: and what belongs to it", line)
    loose = [entry for entry in section.loose if entry.line not in unmarked]
    boxes = [entry for entry in loose if entry.box is not None]
    if boxes:
        complain("this would not be read: write **Success Criteria**: before it", boxes[0].line)
    elif loose and "description" in fields:
        complain("this would not be read: write it into the **Description**", loose[0].line)


def _fields(section: Section, complain: Complain) -> dict[str, Field]:
    found: dict[str, Field] = {}
    for field in section.fields:
        name = FIELDS.get(" ".join(field.key.lower().split()))
        if name is None:
            known = "Description, Success Criteria, Agents Needed, Complexity, Dependencies, Estimated Effort, Files"
            complain(f"{field.key!r} is no field of a task; there are: {known}", field.line)
        elif name in found:
            complain(f"{field.key!r} stands twice in {section.title.partition(':')[0].lower()}; keep one", field.line)
        else:
            found[name] = field
    return found


def _criteria(section: Section, task: str, field: Field | None, complain: Complain) -> tuple[Criterion, ...]:
    if field is None or not field.entries:
        complain(f"task {task} has no success criteria; write **Success Criteria**: and - [ ] lines below it", section.line)
        return ()
    return read_boxes(field.entries, f"a criterion of task {task} has no text", complain)


def _needs(section: Section, task: str, complain: Complain) -> list[tuple[int, str]]:
    found = []
    for field in section.fields:
        if field.key.lower() != "dependencies":
            continue
        for line, text in field.listed():
            match = NEED.match(text)
            if match is not None:
                phase, number = match["id"].split(".")
                found.append((line, f"{int(phase)}.{int(number)}"))
            elif text.lower().strip(".") not in NOTHING:
                complain(f"task {task} depends on {text!r}; name tasks by their numbers, as in 1.1, or write None", line)
    return list(dict.fromkeys(found))


def _files(field: Field | None, complain: Complain) -> tuple[str, ...]:
    found = []
    for line, path in field.listed() if field is not None else ():
        parts = path.split("/")
        if path.startswith("/") or ".." in parts or "\0" in path:
            complain(f"{path!r} leads out of the repository; name files relative to it", line)
        elif path.lower().strip(".") not in NOTHING:
            found.append(path.removeprefix("./"))
    return tuple(dict.fromkeys(found))


def _check_needs(tasks: dict[str, PlanTask], needs: list[tuple[str, int, str]], complain: Complain) -> None:
    order = {task: at for at, task in enumerate(tasks)}
    for task, line, need in needs:
        if need not in tasks:
            complain(f"task {task} depends on task {need}, which does not exist", line)
        elif (circle := _circle(tasks, task, need)) is not None:
            complain(f"task {task} depends on itself: {' needs '.join(circle)}", line)
        elif order[need] > order[task]:
            complain(f"task {task} depends on task {need}, which comes later; put it first", line)


def _circle(tasks: dict[str, PlanTask], task: str, need: str) -> list[str] | None:
    """Find the way from a task through one of its needs back to itself, if there is one."""
    came: dict[str, str] = {need: task}
    stack = [need]
    while stack:
        one = stack.pop()
        if one == task:
            way = [task]
            while came[way[-1]] != task:
                way.append(came[way[-1]])
            return [*way, task][::-1]
        for other in tasks[one].needs if one in tasks else ():
            if other not in came:
                came[other] = one
                stack.append(other)
    return None
