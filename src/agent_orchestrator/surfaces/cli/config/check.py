"""`orc config check`: every fault of the configuration, with its line."""

from __future__ import annotations

from agent_orchestrator.runs.exits import COMPLETED, USAGE
from agent_orchestrator.surfaces.cli.options import command as make_command

EXAMPLE = """
orc config check
orc config check --repo ~/projects/my-app --json
"""


@make_command("check", EXAMPLE)
def command(repo: str | None, as_json: bool) -> int:
    """Check the configuration files and variables.

    Prints each fault as file:line: what is wrong, with a suggestion where a word is misspelt. Exits with 2 if there is
    one.
    """
    import msgspec

    from agent_orchestrator.config import load_settings
    from agent_orchestrator.config.checks import find_faults
    from agent_orchestrator.config.defaults import read_configuration
    from agent_orchestrator.config.trust import is_trusted
    from agent_orchestrator.surfaces.cli.screen import Screen, plain, print_json

    settings = load_settings(repo)
    found = read_configuration(settings)
    faults = find_faults(settings, found)
    trusted = is_trusted(settings, found.guarded)
    files = [str(file.path) for file in found.files]
    if as_json:
        listed = [msgspec.to_builtins(fault) for fault in faults]
        print_json({"valid": not faults, "files": files, "trusted": trusted, "faults": listed})
        return USAGE if faults else COMPLETED
    screen = Screen(settings.environ)
    for fault in faults:
        screen.line(plain(fault.problem.located(fault.file) if fault.file != fault.key else fault.sentence))
    if not faults:
        screen.line(f"The configuration is valid: {', '.join(files) or 'there is no file'}.")
    if not trusted and found.repository is not None:
        screen.line(f"Nobody has agreed to what {found.repository.path} asks for: read it, then run `orc config trust`.")
    return USAGE if faults else COMPLETED
