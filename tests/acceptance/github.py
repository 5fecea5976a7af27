"""A server on loopback that speaks as much of GitHub's API as pull requests and issues need, for the real `gh`."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.acceptance.finish_rig import git
from tests.acceptance.rig import Result, Rig
from tests.certificates import make_certificate

REPOSITORY = "/api/v3/repos/ada/thing"
PULLS = f"{REPOSITORY}/pulls"
TOKEN = "dummy-token"

Answer = tuple[int, Any]


class GitHub:
    """One repository, ada/thing, with its pull requests and issues, over TLS with a certificate of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.certificate, context = make_certificate(folder)
        self.pulls: list[dict[str, Any]] = []
        self.statuses: list[dict[str, Any]] = []
        self.issues: dict[int, dict[str, Any]] = {}
        self.writers = {"ada"}
        """Those who may write to the repository; everybody else may read."""
        self.seen: list[str] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def open_issue(self, number: int, title: str, body: str) -> None:
        """Somebody writes an issue."""
        self.issues[number] = {"number": number, "title": title, "body": body, "labels": [], "edited": None, "moments": []}

    def put_label(self, number: int, label: str, who: str, second: int) -> None:
        """Somebody puts a label on an issue."""
        issue = self.issues[number]
        issue["labels"].append(label)
        issue["moments"].append(
            {
                "__typename": "LabeledEvent",
                "createdAt": _time(second),
                "actor": {"login": who},
                "label": {"name": label},
            }
        )

    def edit(self, number: int, body: str, second: int) -> None:
        """Somebody changes the text of an issue."""
        self.issues[number] |= {"body": body, "edited": _time(second)}

    def rename(self, number: int, title: str, second: int) -> None:
        """Somebody changes the title of an issue."""
        self.issues[number]["title"] = title
        self.issues[number]["moments"].append({"__typename": "RenamedTitleEvent", "createdAt": _time(second)})

    def answer(self, method: str, path: str, query: dict[str, list[str]], given: Any) -> Answer:
        """Answer one request."""
        if path == "/api/graphql":
            return self._issue_text(given["variables"]["number"])
        parts = (
            [unquote(part) for part in path.removeprefix(REPOSITORY).strip("/").split("/")] if path.startswith(REPOSITORY) else []
        )
        match [method, *parts]:
            case ["GET", "pulls"]:
                head = query.get("head", [""])[0]
                return 200, [one for one in self.pulls if head == (one["head"] if ":" in one["head"] else f"ada:{one['head']}")]
            case ["POST", "pulls"]:
                return self._open_pull(given)
            case ["POST", "statuses", commit]:
                self.statuses.append({**given, "commit": commit})
                return 201, self.statuses[-1]
            case ["GET", "issues"]:
                wanted = query["labels"][0]
                found = [one for one in self.issues.values() if wanted in one["labels"]]
                return 200, [{"number": one["number"]} for one in found]
            case ["POST", "issues", number, "labels"]:
                return self._change_labels(int(number), lambda labels: [*labels, *given["labels"]])
            case ["DELETE", "issues", number, "labels", label] if label in self.issues[int(number)]["labels"]:
                return self._change_labels(int(number), lambda labels: [one for one in labels if one != label])
            case ["GET", "collaborators", login, "permission"] if login != "ghost":
                return 200, {"permission": "write" if login in self.writers else "read"}
            case _:
                return 404, {"message": "Not Found"}

    def _open_pull(self, given: Any) -> Answer:
        if any(one["head"] == given["head"] and one["state"] == "open" for one in self.pulls):
            return 422, {"message": f"A pull request already exists for ada:{given['head']}."}
        url = f"https://localhost/ada/thing/pull/{len(self.pulls) + 1}"
        self.pulls.append({**given, "html_url": url, "state": "open", "merged_at": None})
        return 201, self.pulls[-1]

    def _change_labels(self, number: int, change: Callable[[list[str]], list[str]]) -> Answer:
        issue = self.issues[number]
        issue["labels"] = list(dict.fromkeys(change(issue["labels"])))
        return 200, [{"name": label} for label in issue["labels"]]

    def _issue_text(self, number: int) -> Answer:
        issue = self.issues.get(number)
        if issue is None:
            return 200, {"data": {"repository": {"issue": None}}}
        told = {"title": issue["title"], "body": issue["body"], "lastEditedAt": issue["edited"]}
        return 200, {"data": {"repository": {"issue": {**told, "timelineItems": {"nodes": issue["moments"]}}}}}

    def environment(self, home: Path) -> dict[str, str]:
        """Return what `gh` needs to trust the server, and nothing of the user's."""
        home.mkdir(parents=True, exist_ok=True)
        return {
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "GH_CONFIG_DIR": str(home / "gh"),
            "GH_HOST": self.host,
            "GH_ENTERPRISE_TOKEN": TOKEN,
            "SSL_CERT_FILE": str(self.certificate),
        }

    def close(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()


class Published:
    """A repository on the server: fetched from there, as `gh` looks at it, and pushed to a folder."""

    def __init__(self, rig: Rig, github: GitHub, folder: Path) -> None:
        self.rig, self.github = rig, github
        self.remote = folder / "remote.git"
        git(folder, "init", "--quiet", "--bare", str(self.remote))
        git(rig.repo, "remote", "add", "origin", f"https://{github.host}/ada/thing.git")
        git(rig.repo, "config", "remote.origin.pushurl", str(self.remote))
        self.env = github.environment(folder / "home")

    def orc(self, *arguments: str) -> Result:
        """Run `orc` with a `gh` that knows the server."""
        return self.rig.orc(*arguments, env=self.env)

    def pushed(self) -> list[str]:
        """Return the branches that were pushed."""
        return git(self.remote, "for-each-ref", "--format=%(refname:short)", "refs/heads/").split()


def _time(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}Z"


def _handler(github: GitHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.serve()

        def do_POST(self) -> None:
            self.serve()

        def do_DELETE(self) -> None:
            self.serve()

        def serve(self) -> None:
            where = urlsplit(self.path)
            github.seen.append(f"{self.command} {where.path}")
            given = json.loads(self.body() or b"null") if self.command == "POST" else None
            if self.headers["Authorization"] != f"token {TOKEN}":
                self.reply(401, {"message": "Requires authentication"})
            else:
                self.reply(*github.answer(self.command, where.path, parse_qs(where.query), given))

        def body(self) -> bytes:
            """Return what was sent; what gh reads from its input comes in chunks."""
            length = self.headers["Content-Length"]
            if length is not None:
                return self.rfile.read(int(length))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def reply(self, code: int, body: Any) -> None:
            raw = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: Any) -> None:
            """Nobody reads it."""

    return Handler
