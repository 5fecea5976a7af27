"""The files of the page: what is not ours is what its authors published, and nothing is inline."""

from __future__ import annotations

import hashlib
import re

from tests.acceptance.rig import ROOT

STATIC = ROOT / "src" / "agent_orchestrator" / "surfaces" / "web" / "static"
PUBLISHED = "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7"
"""The hash of preact/standalone.module.js in htm 3.1.1 on npm."""


def test_the_vendored_file_is_what_its_authors_published_and_its_licence_is_beside_it() -> None:
    assert hashlib.sha256((STATIC / "vendor" / "preact-htm.js").read_bytes()).hexdigest() == PUBLISHED
    licence = (STATIC / "vendor" / "LICENSE.txt").read_text()
    assert "MIT License" in licence
    assert "Apache License" in licence


def test_the_page_has_no_inline_script_or_style_and_loads_nothing_from_elsewhere() -> None:
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*src=)|<style| style=| on\w+=|https?://", page) == []
    for file in [*STATIC.glob("*.js"), STATIC / "app.css"]:
        assert re.findall(r"\beval\(|new Function|https?://(?!www\.w3\.org)|innerHTML|dangerouslySet", file.read_text()) == [], (
            file
        )


def test_every_module_that_is_imported_is_there() -> None:
    for file in STATIC.glob("*.js"):
        for name in re.findall(r"""(?:from|import\()\s*["']\./([^"']+)["']""", file.read_text()):
            assert (STATIC / name).exists(), (file, name)


def test_every_name_that_a_module_imports_is_exported_there_and_used_here() -> None:
    faults = []
    for file in STATIC.glob("*.js"):
        text = file.read_text()
        for names, module in re.findall(r"""^import \{([^}]*)\} from ["']\./([^"']+)["']""", text, re.M):
            there = (STATIC / module).read_text()
            exported = set(re.findall(r"export (?:async )?(?:function|const|class) (\w+)", there))
            for group in re.findall(r"export ?\{([^}]*)\}", there):
                exported |= {name.split()[-1] for name in group.split(",") if name.strip()}
            wanted = {name.strip() for name in names.split(",")}
            faults += [f"{file.name}: {module} has no {name}" for name in wanted - exported]
            faults += [f"{file.name}: {name} is not used" for name in wanted if len(re.findall(rf"\b{name}\b", text)) < 2]
    assert faults == []
