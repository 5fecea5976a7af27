"""`orc config trust`: the user's word for what a repository's file asks for."""

from __future__ import annotations

import click

from agent_orchestrator.surfaces.cli.options import command as make_command

EXAMPLE = """
orc config trust
orc config trust --revoke
"""


@make_command("trust", EXAMPLE)
@click.option("--revoke", is_flag=True, help="Take it back: nothing of the file that needs your word counts any more.")
def command(repo: str | None, as_json: bool, revoke: bool) -> int:
    """Agree to what the repository's file asks for.

    A program that it names, what agents may do and see, a higher budget than your own: such settings of .orc.toml
    count only after this, and only with the values that they have now. They are listed. Agents cannot agree for you.
    """
    from agent_orchestrator.config import REPO_FILE, load_settings
    from agent_orchestrator.config.defaults import read_configuration
    from agent_orchestrator.config.trust import trust, withdraw
    from agent_orchestrator.engine.sender import find_launch
    from agent_orchestrator.errors import Refused
    from agent_orchestrator.surfaces.cli.screen import Screen, plain, print_json

    settings = load_settings(repo)
    if (launch := find_launch(settings.folder, settings.environ)) is not None:
        raise Refused(why=f"`orc config trust` comes from inside the launch {launch}: only a person can agree.")
    found, file = read_configuration(settings), settings.home / REPO_FILE
    if revoke:
        count = withdraw(settings)
        text = f"{file} is not trusted any more." if count else f"{file} was not trusted."
        return _say(text, {"file": str(file), "trusted": False}, as_json=as_json)
    if found.repository is None:
        raise Refused(why=f"There is no {file}: there is nothing to agree to.")
    found.repository.refuse_faults()
    facts = [
        {"key": ".".join(one.entry.written), "value": one.entry.value, "line": one.entry.line, "why": one.why}
        for one in found.guarded
    ]
    if not facts:
        return _say(f"{file} asks for nothing that needs your word.", {"file": str(file), "trusted": True}, as_json=as_json)
    trust(settings, found.guarded)
    if as_json:
        print_json({"file": str(file), "trusted": True, "settings": facts})
        return 0
    screen = Screen(settings.environ)
    for fact in facts:
        screen.line(plain(f"{file.name}:{fact['line']}: {fact['key']} = {_spell(fact['value'])} ({fact['why']})"))
    screen.line(f"{file} is trusted with these values; when one of them changes, you are asked again.")
    return 0


def _say(text: str, facts: dict[str, object], *, as_json: bool) -> int:
    from agent_orchestrator.surfaces.cli.screen import print_json

    if as_json:
        print_json(facts)
    else:
        click.echo(text)
    return 0


def _spell(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
