"""The phases, their tasks with all fields, and how tasks depend on each other.

A heading is a phase or a task by its words and number, on whatever level. Headings below a task are part of it; other text
is a note to people.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from agent_orchestrator.core.text import find_near
from agent_orchestrator.systems.phases.parse.blocks import Complain, Field, Section
from agent_orchestrator.systems.phases.parse.criteria import DocumentReading, find_commands, read_criteria
from agent_orchestrator.systems.phases.spec import Criterion, PlanPhase, PlanTask

_LEAD = r"(?:\[[ xX]\]|[^\w\[])*"
PHASE = re.compile(_LEAD + r"Phase\s+(?P<number>\d{1,4})(?:\s*[:.)—–-]+\s*(?P<name>.*))?\W*\Z", re.S | re.I)
TASK = re.compile(
    _LEAD + r"Task\s+(?:(?P<phase>\d{1,4})\.)?(?P<number>\d{1,4})\s*(?:[:.)—–-]+\s*|\s+)(?P<name>.*)\Z", re.S | re.I
)
NUMBERED = re.compile(_LEAD + r"(?P<phase>\d{1,4})\.(?P<number>\d{1,4})\.?\s*(?:[:)—–-]+\s*|\s+)(?P<name>\S.*)\Z", re.S)
NEED = re.compile(r"\d{1,4}\.\d{1,4}")
NEED_PHASE = re.compile(r"phases?\s+(?P<number>\d{1,4})", re.I)
ALL = re.compile(r"all\s+(?:of\s+the\s+)?(?:previous|prior|earlier|above|preceding)(?:\s+(?:tasks?|phases?))?", re.I)
FILLERS = re.compile(r"\b(?:tasks?|and|of|complete[d]?|done|finished|depends|on|requires|after|must|be|is|are)\b|[&+,.;:]", re.I)
NOTHING = {"none", "-", "n/a", "nothing", ""}
LIKE = 0.8

FIELDS = {
    **dict.fromkeys(("description",), "description"),
    **dict.fromkeys(("success criteria", "acceptance criteria", "criteria", "definition of done"), "criteria"),
    **dict.fromkeys(("agents needed", "agents", "agent"), "agents"),
    **dict.fromkeys(("complexity",), "complexity"),
    **dict.fromkeys(("dependencies", "dependency", "depends on", "prerequisites"), "needs"),
    **dict.fromkeys(("estimated effort", "effort", "estimate", "estimated time"), "effort"),
    **dict.fromkeys(("files",), "files"),
}


class _Heading(msgspec.Struct, frozen=True, kw_only=True):
    """A task's heading with what stands below it, deeper headings included."""

    id: str
    name: str
    section: Section
    fields: dict[str, Field]
    notes: tuple[str, ...]


def is_phase(section: Section) -> bool:
    """Tell whether a heading is that of a phase."""
    return PHASE.match(section.title) is not None


def read_phases(sections: list[Section] | None, reading: DocumentReading) -> dict[str, Any]:
    """Read the phases and tasks below the section."""
    complain = reading.complain
    if sections is None:
        complain("the section ## Phases & Tasks is missing: it says what is to be done", 1)
        return {}
    phases: list[PlanPhase] = []
    tasks: dict[str, PlanTask] = {}
    lines: dict[str, int] = {}
    needs: list[tuple[str, int, str]] = []
    empty: Section | None = None
    for section, below in _group(sections, reading):
        if is_phase(section):
            _complain_empty(empty, len(phases), complain)
            empty = section
            _read_phase(section, phases, complain)
        elif (heading := _read_heading(section, below, phases, reading)) is not None:
            empty = None
            task = _read_task(heading, list(tasks), reading)
            needs += [(task.id, line, need) for line, need in _needs(heading, list(tasks), complain)]
            if task.id in tasks:
                told = f"task {task.id} stands twice, first in line {lines[task.id]}; give each task its own number"
                complain(told, section.line)
                continue
            tasks[task.id], lines[task.id] = task, section.line
    _complain_empty(empty, len(phases), complain)
    if not phases:
        complain("there is no phase; write ### Phase 1: NAME and its tasks below it", sections[0].line)
    _check_needs(tasks, needs, complain)
    return {"phases": tuple(phases), "tasks": tuple(tasks.values())}


def _complain_empty(empty: Section | None, number: int, complain: Complain) -> None:
    if empty is not None:
        complain(f"{empty.title} has no task; write #### Task {number}.1: NAME below it", empty.line)


def _group(sections: list[Section], reading: DocumentReading) -> list[tuple[Section, list[Section]]]:
    """Give phases and tasks in order, each task with the deeper headings below it; complain about what is neither."""
    found: list[tuple[Section, list[Section]]] = []
    for section in sections:
        last = found[-1][0] if found else None
        if is_phase(section) or _match(section) is not None:
            found.append((section, []))
        elif last is not None and section.level > last.level and not is_phase(last):
            found[-1][1].append(section)
        elif section is sections[0] and section.level == 2:
            if section.text:
                told = "is not read; the context and tasks are"
                reading.warn(f"line {section.line}: what stands below {section.title!r} {told}")
        elif _looks_like_work(section):
            kind = "task; write #### Task 1.1: NAME" if found else "phase; write ### Phase 1: NAME"
            reading.complain(f"{section.title!r} is no {kind}", section.line)
        else:
            reading.warn(f"line {section.line}: {section.title!r} is a note, and is not read")
    return found


def _looks_like_work(section: Section) -> bool:
    named = re.match(r"\W*(?:task|phase)\b", section.title, re.I) is not None
    return named or any(entry.box is not None for entry in section.entries) or any(_field_name(one.key) for one in section.fields)


def _match(section: Section) -> re.Match[str] | None:
    return TASK.match(section.title) or NUMBERED.match(section.title)


def _field_name(key: str) -> str | None:
    return FIELDS.get(" ".join(key.lower().split()).rstrip(":"))


def _read_phase(section: Section, phases: list[PlanPhase], complain: Complain) -> None:
    match = PHASE.match(section.title)
    assert match is not None
    number, expected = int(match["number"]), len(phases) + 1
    if number != expected:
        complain(f"phase {expected} is missing: phases are numbered from 1 on, and this is phase {number}", section.line)
    name = (match["name"] or "").strip() or f"Phase {number}"
    phases.append(PlanPhase(number=number, name=name, text=section.text))


def _read_heading(section: Section, below: list[Section], phases: list[PlanPhase], reading: DocumentReading) -> _Heading | None:
    match = _match(section)
    assert match is not None
    if not match["name"].strip():
        reading.complain(f"{section.title!r} is no task; write #### Task {len(phases) or 1}.1: NAME", section.line)
        return None
    phase = int(match["phase"]) if match["phase"] else phases[-1].number if phases else 1
    task = f"{phase}.{int(match['number'])}"
    if not phases:
        reading.complain(f"task {task} stands in no phase; write ### Phase 1: NAME above it", section.line)
    elif phase != phases[-1].number:
        reading.complain(f"task {task} stands in phase {phases[-1].number}; its number must begin with that", section.line)
    fields, notes = _fields([section, *below], task, reading.complain)
    return _Heading(id=task, name=match["name"].strip(), section=section, fields=fields, notes=tuple(notes))


def _fields(sections: list[Section], task: str, complain: Complain) -> tuple[dict[str, Field], list[str]]:
    """Find the fields of a task, a heading by the name of one included; give what belongs to none as notes."""
    found: dict[str, Field] = {}
    notes: list[str] = []
    for section in sections:
        named = section is not sections[0] and _field_name(section.title) is not None
        made = (
            [Field(line=section.line, key=section.title, value="", entries=section.entries, text=section.text)] if named else []
        )
        loose = _loose(section, complain) if not named else ""
        if section is not sections[0] and not named:
            loose = f"{section.title}\n{loose}".strip()
        notes += [loose] if loose else []
        for field in made or section.fields:
            name = _field_name(field.key)
            if name is None:
                _refuse_misspelt(field, complain)
                notes.append(f"{field.key}: {field.text}".strip())
            elif name in found:
                complain(f"{field.key!r} stands twice in task {task}; keep one", field.line)
            else:
                found[name] = field
    return found, notes


def _refuse_misspelt(field: Field, complain: Complain) -> None:
    near = find_near(field.key.lower(), FIELDS, like=LIKE)
    if near is not None:
        complain(f"{field.key!r} is no field of a task; did you mean {near.title()!r}?", field.line)


def _loose(section: Section, complain: Complain) -> str:
    """Give what stands before the first field, boxes left out; complain about a field without its asterisks."""
    unmarked = section.unmarked(FIELDS)
    for line, (_, key) in unmarked.items():
        complain(f"{key!r} would not be read like this: write **{key}**: and what belongs to it", line)
    loose = [entry for entry in section.loose if entry.line not in unmarked and entry.box is None]
    return "\n".join(f"- {entry.text}" if entry.item else entry.text for entry in loose)


def _read_task(heading: _Heading, earlier: list[str], reading: DocumentReading) -> PlanTask:
    fields = heading.fields
    described = fields["description"].text if "description" in fields else ""
    return PlanTask(
        id=heading.id,
        name=heading.name,
        description="\n".join(part for part in (described, *heading.notes) if part),
        criteria=_criteria(heading, reading),
        needs=tuple(dict.fromkeys(need for _, need in _needs(heading, earlier, lambda *_: None))),
        agents=_agents(fields.get("agents")),
        complexity=fields["complexity"].value if "complexity" in fields else "",
        effort=fields["effort"].value if "effort" in fields else "",
        files=_files(fields.get("files"), reading.complain),
    )


def _agents(field: Field | None) -> tuple[str, ...]:
    """Read names, without what stands in brackets behind them."""
    named = [re.split(r"`?\s*[(—–]|`?\s+-\s", text)[0].strip(" `") for _, text in field.listed()] if field is not None else []
    return tuple(dict.fromkeys(name for name in named if name.lower() not in NOTHING))


def _criteria(heading: _Heading, reading: DocumentReading) -> tuple[Criterion, ...]:
    """Read the criteria: those of the field, or the boxes before all fields."""
    field, section, task = heading.fields.get("criteria"), heading.section, heading.id
    boxes = [entry for entry in section.loose if entry.box is not None]
    if field is not None and boxes:
        reading.complain("this would not be read: write it below **Success Criteria**", boxes[0].line)
    made = read_criteria(field.entries if field is not None else boxes, f"a criterion of task {task} has no text", reading)
    if not made and field is not None and field.value:
        made = find_commands([(field.line, field.value)], reading)
    if not made and not any(entry.box is not None for entry in (field.entries if field is not None else boxes)):
        told = f"task {task} has no success criteria; write **Success Criteria**: and - [ ] lines below it"
        reading.complain(told, section.line)
    return made


def _needs(heading: _Heading, earlier: list[str], complain: Complain) -> list[tuple[int, str]]:
    """Read the tasks that one depends on; a phase means all its tasks, and "all previous tasks" those before it."""
    field = heading.fields.get("needs")
    found: list[tuple[int, str]] = []
    for line, given in field.listed() if field is not None else ():
        text = re.sub(r"\([^)]*\)", " ", given)
        if ALL.search(text) is not None:
            found += [(line, task) for task in earlier]
        numbers = [".".join(str(int(part)) for part in one.split(".")) for one in NEED.findall(text)]
        for phase in (match["number"] for match in NEED_PHASE.finditer(NEED.sub(" ", text))):
            numbers += [task for task in earlier if task.startswith(f"{int(phase)}.")]
        found += [(line, task) for task in numbers]
        rest = FILLERS.sub(" ", NEED_PHASE.sub(" ", NEED.sub(" ", ALL.sub(" ", text)))).strip(" `-")
        if rest.lower() not in NOTHING and rest.split()[0].lower() not in NOTHING:
            told = f"task {heading.id} depends on {given!r}; name tasks by their numbers, as in 1.1, or write None"
            complain(told, line)
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
