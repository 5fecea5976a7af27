"""`orc config show`: what counts, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_orchestrator.surfaces.cli.options import command as make_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_orchestrator.config import Settings
    from agent_orchestrator.config.defaults import ConfiguredRuns
    from agent_orchestrator.config.keys import Key

EXAMPLE = """
orc config show
orc config show --json
"""

BUILT_IN = {
    "run.agent": "none; for `orc run TASK` the one that is installed",
    "run.permissions.mode": "the agent's own",
    "run.permissions.allow_tools": "the agent's own",
    "run.budget": "no limit",
    "run.day_budget": "no limit",
    "run.check": "detected",
    "run.worktree": "false; for `orc run TASK` true",
    "run.notify.on_wait": "none",
    "run.notify.on_end": "none",
    "run.publish": "false",
    "run.sandbox": "none",
    "run.sandbox_network": "on",
    "run.sandbox_write": "none",
    "run.sandbox_read": "none",
    "run.yolo": "false",
    "run.workflow": "built in",
    "store.url": "sqlite, the repository's own file",
    "store.repository": "the name of its remote",
    "store.root": "/var/tmp/orc",
}
HIDDEN = "(hidden)"


@make_command("show", EXAMPLE)
def command(repo: str | None, as_json: bool) -> int:
    """Show every setting and where it comes from.

    A file and its line, a variable, or the built-in default. Values that look like secrets are hidden. A setting of the
    repository's file that nobody has agreed to is marked, see `orc config trust`.
    """
    from agent_orchestrator.config import config_files, load_settings
    from agent_orchestrator.config.defaults import read_configuration
    from agent_orchestrator.surfaces.cli.screen import Screen, print_json, warn

    settings = load_settings(repo)
    found = read_configuration(settings)
    facts = list(setting_facts(settings, found))
    if as_json:
        files = [str(path) for path in config_files(settings)]
        faults = [{"file": one.file, "line": one.line, "key": one.key, "message": one.sentence} for one in found.faults]
        print_json({"files": files, "settings": facts, "faults": faults})
        return 0
    for fault in found.faults:
        warn(fault.problem.located(fault.file))
    rows = [(fact["key"], _say_origin(fact, str(settings.home), settings.environ.get("HOME", "")), _say(fact)) for fact in facts]
    Screen(settings.environ).table(("setting", "from", "value"), rows, whole=0)
    return 0


def setting_facts(settings: Settings, found: ConfiguredRuns) -> Iterator[dict[str, Any]]:
    """Yield every setting as plain data: those of runs in their order, whether set or not, then the others."""
    from agent_orchestrator.config.trust import is_trusted

    untrusted = {one.entry.key for one in found.guarded} if not is_trusted(settings, found.guarded) else set()
    keys: list[Key] = [tuple(name.split(".")) for name in BUILT_IN]
    keys += [key for key in found.values if key not in keys]
    for key in keys:
        setting = found.values.get(key)
        if setting is None:
            yield {"key": ".".join(key), "value": None, "from": "default", "trusted": True}
            continue
        origin = setting.origin
        place = {"from": "file", "file": origin.file, "line": origin.line} if origin.file else {"from": "variable"}
        place |= {"variable": origin.variable} if origin.variable else {}
        trusted = key not in untrusted or bool(origin.variable)
        value = _shown_value(settings, key, setting.value)
        yield {"key": ".".join(key), "value": value, **place, "trusted": trusted}


def _shown_value(settings: Settings, key: Key, value: Any) -> Any:
    from agent_orchestrator.config.keys import NOTIFY, STORE_URL
    from agent_orchestrator.config.store_address import hide_password

    if key[:1] == NOTIFY:
        return _shown_subscriber(value)
    return hide_password(value) if key == STORE_URL else _shown(settings, key[-1], value)


def _shown_subscriber(table: dict[str, Any]) -> dict[str, Any]:
    """Return a `[[notify]]` table without the path of its URL, which is a secret more often than not."""
    from agent_orchestrator.config.subscribers import hide_path

    return {**table, "url": hide_path(table["url"])}


def _shown(settings: Settings, name: str, value: Any) -> Any:
    """Return a value without what must not be seen."""
    if isinstance(value, dict):
        return {key: _shown(settings, key, one) for key, one in value.items()}
    return HIDDEN if isinstance(value, str) and settings.is_secret(name, value) else value


def _say(fact: dict[str, Any]) -> str:
    import json

    value = fact["value"]
    if fact["from"] == "default":
        return BUILT_IN[fact["key"]]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _say_origin(fact: dict[str, Any], home: str, user: str) -> str:
    """Say a place: files of the repository without its path, those of the user from ~."""
    if fact["from"] != "file":
        return str(fact.get("variable", "default"))
    file = str(fact["file"])
    if file.startswith(f"{home}/"):
        file = file.removeprefix(f"{home}/")
    elif user and file.startswith(f"{user}/"):
        file = f"~{file.removeprefix(user)}"
    return f"{file}:{fact['line']}" + ("" if fact["trusted"] else " (not trusted)")
