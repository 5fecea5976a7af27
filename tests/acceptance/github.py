"""A server on loopback that speaks as much of GitHub's REST API as pull requests need, for the real `gh`."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PULLS = "/api/v3/repos/ada/thing/pulls"
TOKEN = "dummy-token"


class GitHub:
    """One repository, ada/thing, with its pull requests, over TLS with a certificate of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.certificate, key = folder / "cert.pem", folder / "key.pem"
        request = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost")
        names = ("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        subprocess.run(
            ["openssl", *request, *names, "-keyout", str(key), "-out", str(self.certificate)], check=True, capture_output=True
        )
        self.pulls: list[dict[str, Any]] = []
        self.seen: list[str] = []
        github = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                where = urlsplit(self.path)
                github.seen.append(f"GET {where.path}")
                head = parse_qs(where.query).get("head", [""])[0]
                found = [one for one in github.pulls if f"ada:{one['head']}" == head]
                self.answer(200 if where.path == PULLS else 404, found)

            def do_POST(self) -> None:
                given = json.loads(self.body())
                github.seen.append(f"POST {self.path}")
                if any(one["head"] == given["head"] and one["state"] == "open" for one in github.pulls):
                    return self.answer(422, {"message": f"A pull request already exists for ada:{given['head']}."})
                url = f"https://localhost/ada/thing/pull/{len(github.pulls) + 1}"
                github.pulls.append({**given, "html_url": url, "state": "open", "merged_at": None})
                return self.answer(201, github.pulls[-1])

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

            def answer(self, code: int, body: Any) -> None:
                if self.headers["Authorization"] != f"token {TOKEN}":
                    code, body = 401, {"message": "Requires authentication"}
                raw = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args: Any) -> None:
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

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
