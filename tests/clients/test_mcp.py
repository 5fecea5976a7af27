"""The real claude and codex drive orc by its MCP server: their models look for its tools, start a run, wait for it, read it."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_orchestrator.core.summary import Summary
from agent_orchestrator.surfaces.mcp.requests import name_run
from agent_orchestrator.testing.model_server import Behaviour, Find, Lane, Reply, Say, Use, Write
from tests.clients.rig import GEMINI_SETTINGS, MODELS, PATIENCE_S, ROOT, Rig, binary, report, until
from tests.terminal.tmux import Terminal

RUN = name_run("one")
LOOKS_PER_PRESS = 150
INSIDE = ("note_progress", "ask_person", "read_feedback")
SCRIPT: list[Behaviour] = [
    Find("orc", ("start_run", "wait_run", "run_logs")),
    Use("orc", "start_run", {"request_id": "one", "workflow": "workflow.yaml"}),
    Use("orc", "start_run", {"request_id": "one", "workflow": "workflow.yaml"}),
    Use("orc", "wait_run", {"run_id": RUN}),
    Use("orc", "run_logs", {"run_id": RUN}),
    Say("The run is done."),
]


class Chat(Lane):
    """The model of a chat: one that is shown no tools yet, because their server is starting, looks again."""

    def tell(self, script: list[Behaviour]) -> None:
        """Give it another script."""
        self._script = script

    def next(self, request: dict[str, Any]) -> tuple[Behaviour, int]:
        """Return the next behaviour, or the search once more."""
        last = (request.get("messages") or request.get("input") or [{}])[-1]
        if last.get("type") == "tool_search_output" and not last["tools"]:
            return self._script[0], len(self.requests)
        return super().next(request)


class Client:
    """A client at work beside a repository, as a person uses it, with `orc` on its PATH."""

    def __init__(self, rig: Rig, name: str) -> None:
        self.rig, self.name, self.lane = rig, name, Chat(SCRIPT)
        url = rig.model.add(f"{rig.repo.parent.name}-chat", self.lane)
        (rig.repo / "prompt.md").write_text("echo the agent speaks; echo made > made.txt\n")
        own = rig.home / ".config" / "orc"
        own.mkdir(parents=True)
        (own / "config.toml").write_text('[run]\nagent = "shell"\n')
        self.environ = {
            **rig.environ,
            "PATH": f"{Path(sys.executable).parent}:{rig.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "ANTHROPIC_BASE_URL": url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        self._provider = (
            f'model_providers.scripted={{name="scripted",base_url="{url}/v1",env_key="CODEX_API_KEY",wire_api="responses"}}'
        )

    def run(self, *words: str, said: str = "") -> str:
        """Run the client to its end."""
        done = subprocess.run(
            [str(binary(self.name)), *words],
            cwd=self.rig.repo,
            env=self.environ,
            input=said,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def chat(self) -> str:
        """Let the model have its conversation."""
        if self.name == "claude":
            words = ["-p", "--allowedTools", "mcp__orc", "--model", MODELS["claude"]]
        else:
            words = ["exec", "--skip-git-repo-check", "--model", MODELS["codex"], "--disable", "plugins"]
            words += ["-c", "analytics.enabled=false", "-c", 'model_provider="scripted"', "-c", self._provider, "-"]
        return self.run(*words, said="Start the workflow, wait for it and say what it did.")

    def check(self) -> None:
        """See that the model was told what it asked for, and that one run came of it."""
        told = [json.dumps(request) for request in self.lane.requests]
        assert "nothing new was started" in told[3], "the second call counted once"
        assert '\\"completed\\"' in told[4] or "completed" in told[4]
        assert "the agent speaks" in told[5]
        listed = json.loads(self.rig.orc("list", "--json"))["runs"]
        assert [(one["run_id"], one["status"]) for one in listed] == [(RUN, "completed")]
        assert (self.rig.repo / "made.txt").read_text() == "made\n"


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_client_starts_waits_for_and_reads_a_run(rig: Rig, name: str) -> None:
    client = Client(rig, name)
    client.run("mcp", "add", "orc", "--", "orc", "mcp")
    assert "The run is done." in client.chat()
    client.check()


def test_claude_does_the_same_by_http_with_the_key(rig: Rig) -> None:
    client = Client(rig, "claude")
    words = [sys.executable, "-m", "agent_orchestrator.cli", "mcp", "--http", "--json", "--port", "0"]
    with subprocess.Popen(words, cwd=rig.repo, env=client.environ, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = json.loads(server.stdout.readline())
        try:
            header = f"Authorization: Bearer {found['key']}"
            client.run("mcp", "add", "--transport", "http", "orc", found["url"], "--header", header)
            assert "The run is done." in client.chat()
        finally:
            server.terminate()
    client.check()


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode"])
def test_an_agent_of_a_run_speaks_to_people_and_hears_them(rig: Rig, name: str) -> None:
    said: list[Behaviour] = [
        *([Find("orc_run", INSIDE)] if name in ("claude", "codex") else []),
        Use("orc_run", "note_progress", {"text": "the parser is done"}),
        Use("orc_run", "ask_person", {"question": "Which port?"}),
        Use("orc_run", "read_feedback", {"wait_s": 50}),
        Write("port.txt", "8080"),
        Reply(report()),
    ]
    lane = rig.play(name, Chat(said))
    if name == "gemini":  # It reads servers from its own settings alone, as docs/mcp.md says.
        page = (ROOT / "docs" / "mcp.md").read_text()
        own = json.loads(page.partition("~/.gemini/settings.json")[2].partition("```json\n")[2].partition("```")[0])
        (rig.home / ".gemini" / "settings.json").write_text(json.dumps({**GEMINI_SETTINGS, **own}))
    process = rig.start("run", "--workflow", "workflow.yaml", "--agent", name, "--mcp", "--run-id", "speaks")
    until(lambda: summary(rig, "speaks").asks == ("work",))
    assert "asks: Which port?" in rig.orc("history", "speaks")
    rig.orc("steer", "speaks", "work", "port 8080")
    told, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, told
    assert "notes: the parser is done" in told
    results = json.dumps(lane.requests)
    assert "port 8080" in results, "the model has heard the person"
    assert (rig.repo / "port.txt").read_text().strip() == "8080"
    assert all(secret not in results for secret in ("ORC_MCP_KEY=", "Bearer "))


def summary(rig: Rig, run: str) -> Summary:
    """Return how a run stands, in one line; before there is one, that it has not begun."""
    with rig.orchestrator() as orchestrator:
        found = orchestrator.known(run)
        return found.summary if found is not None else Summary(status="unknown")


APPROVAL = "ask_person_to_approve_or_reject"
DECIDES: list[Behaviour] = [
    Find("orc", ("start_run", "wait_run", APPROVAL)),
    Use("orc", "start_run", {"request_id": "one", "workflow": "workflow.yaml"}),
    Use("orc", "wait_run", {"run_id": RUN}),
    Use("orc", APPROVAL, {"run_id": RUN, "unit": "work", "request_id": "two", "decision": "approve"}),
    Say("That was my last word."),
]


def asking(rig: Rig, name: str) -> Client:
    """A client whose model starts a run that waits for a person, and asks for the person's decision."""
    client = Client(rig, name)
    client.lane.tell(DECIDES)
    rig.workflow("name: asks\nsteps:\n  - {id: work, agent: coder, prompt: prompt.md, human_in_the_loop: true}\n")
    (rig.repo / "prompt.md").write_text("""echo '{"status": "COMPLETED"}' > "$REPORT_PATH"\n""")
    client.run("mcp", "add", "orc", "--", "orc", "mcp", "--allow-approve")
    return client


def press(terminal: Terminal, key: str, then: str) -> None:
    """Press a key until it has its effect: one that comes while the form is drawn anew is lost."""
    looks = itertools.count()

    def has_effect() -> bool:
        if next(looks) % LOOKS_PER_PRESS == 0:
            terminal.press(key)
        return then in terminal.screen()

    until(has_effect)


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_client_that_nobody_sits_at_decides_nothing(rig: Rig, name: str) -> None:
    client = asking(rig, name)
    assert "That was my last word." in client.chat()
    assert "A person has to answer" in json.dumps(client.lane.requests[3])
    assert len(client.lane.requests) == 5, "the model has called the tool"
    shown = json.loads(rig.orc("status", RUN, "--json"))
    assert (shown["status"], shown["asks"]) == ("waiting", ["work"])
    rig.orc("approve", RUN, "work")
    until(lambda: summary(rig, RUN).status == "completed")


def test_the_person_at_claude_decides_in_its_form(rig: Rig) -> None:
    client = asking(rig, "claude")
    file = rig.home / ".claude.json"
    known = json.loads(file.read_text())
    known |= {"hasCompletedOnboarding": True, "theme": "dark"}  # What it asks everybody who starts it for the first time.
    known["customApiKeyResponses"] = {"approved": [rig.environ["ANTHROPIC_API_KEY"][-20:]], "rejected": []}
    known["projects"][str(rig.repo)]["hasTrustDialogAccepted"] = True
    file.write_text(json.dumps(known))
    environ = {name: value for name, value in client.environ.items() if name != "CLAUDE_CODE_OAUTH_TOKEN"}
    terminal = Terminal(110, 40)
    try:
        terminal.start([str(binary("claude")), "--allowedTools", "mcp__orc", "--model", MODELS["claude"]], rig.repo, environ)
        until(lambda: "for shortcuts" in terminal.screen())
        terminal.type("start it")
        until(lambda: "start it" in terminal.screen())
        terminal.press("Enter")
        until(lambda: "Approve step work?" in terminal.screen())
        for key, then in (("Right", "◯ approve"), ("Enter", "✔ Decision: approve"), ("Down", "❯ Accept")):
            press(terminal, key, then)
        press(terminal, "Enter", "my last word")
    finally:
        terminal.close()
    until(lambda: summary(rig, RUN).status == "completed")
    assert "(chat)" in next(line for line in rig.orc("history", RUN).splitlines() if "approved" in line)
