"""The package as it is installed: built from the clone, and run in an environment that has nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from agent_orchestrator.surfaces.cli.commands.help import INTERNAL
from agent_orchestrator.version import __version__
from release.formula import fill_formula
from tests.acceptance.examples import FENCE
from tests.acceptance.rig import ROOT

PACKAGE = ROOT / "src" / "agent_orchestrator"


def build(source: Path, target: Path, kind: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(target)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (made,) = target.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution."""
    return build(ROOT, tmp_path_factory.mktemp("sdist"), "sdist")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, sdist: Path) -> Path:
    """The wheel, made from the sdist alone."""
    folder = tmp_path_factory.mktemp("package")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    return build(source, folder / "wheel", "wheel")


def test_the_package_has_every_file_that_the_program_reads(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name.removeprefix("agent_orchestrator/") for name in archive.namelist()}
    tracked = subprocess.run(["git", "ls-files", "."], cwd=PACKAGE, check=True, capture_output=True, text=True).stdout.split()
    assert set(tracked) - shipped == set()
    pages = {f"help/{page.name}" for page in (ROOT / "docs").glob("*.md") if page.stem not in INTERNAL}
    assert {name for name in shipped if name.startswith("help/")} == pages


def test_the_package_runs_where_nothing_else_is_installed(wheel: Path, tmp_path: Path) -> None:
    empty, repo = tmp_path / "empty", tmp_path / "repo"
    subprocess.run([sys.executable, "-m", "venv", str(empty)], check=True)
    installed = [str(empty / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)]
    subprocess.run(installed, check=True, capture_output=True)
    subprocess.run(["git", "init", "--quiet", str(repo)], check=True)
    environment = {"PATH": f"{empty / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path), "LANG": "C.UTF-8"}

    def shell(line: str) -> str:
        done = subprocess.run(["sh", "-c", line], cwd=repo, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 4), done  # The tour waits for an approval in between.
        return done.stdout

    assert "ok    python" in shell("orc doctor")
    tour = (ROOT / "docs" / "tour.md").read_text("utf-8")
    files = [text for kind, text in FENCE.findall(tour) if kind == "yaml"]
    for name, text in zip(("workflow.yaml", "rehearsal.yaml"), files, strict=True):
        (repo / name).write_text(text)
    for line in re.findall(r"^\$ (.+)$", tour, re.M):
        shell(line)
    assert [(run["run_id"], run["status"]) for run in json.loads(shell("orc list --json"))["runs"]] == [("hello", "completed")]
    assert shell("orc help tour").startswith("# A tour of two minutes")


BREW = """
require "json"
class Formula
  TOLD = {}
  %w[desc homepage url version sha256 license].each { |name| define_singleton_method(name) { |value| TOLD[name] = value } }
  def self.depends_on(name) = (TOLD["depends_on"] ||= []) << name
  def self.test(&block) = TOLD["test"] = block.class.name
end
load ARGV[0]
puts JSON.generate(Formula::TOLD.merge("class" => OrcAgents.superclass.name, "installs" => OrcAgents.method_defined?(:install)))
"""
"""The part of Homebrew that reads what a formula declares."""


def test_the_formula_is_ruby_and_declares_the_archive_as_it_was_built(sdist: Path, tmp_path: Path) -> None:
    url = f"https://example.org/releases/{sdist.name}"
    formula, brew = tmp_path / "orc-agents.rb", tmp_path / "brew.rb"
    formula.write_text(fill_formula(sdist, url))
    brew.write_text(BREW)
    subprocess.run(["ruby", "-c", str(formula)], check=True, capture_output=True)
    read = subprocess.run(["ruby", str(brew), str(formula)], check=True, capture_output=True, text=True)
    assert json.loads(read.stdout) == {
        "class": "Formula",
        "desc": "Durable orchestrator for AI coding agents",
        "homepage": "https://example.org/releases",
        "url": url,
        "version": __version__,
        "sha256": hashlib.sha256(sdist.read_bytes()).hexdigest(),
        "license": "Apache-2.0",
        "depends_on": ["git", "python@3.13"],
        "test": "Proc",
        "installs": True,
    }


def test_the_archive_is_the_same_however_often_it_is_built(sdist: Path, tmp_path: Path) -> None:
    assert build(ROOT, tmp_path / "again", "sdist").read_bytes() == sdist.read_bytes()


def test_what_the_formula_tests_is_what_orc_says(tmp_path: Path) -> None:
    def orc(*words: str) -> str:
        command = [sys.executable, "-m", "agent_orchestrator.cli", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    assert orc("--version").strip() == f"orc {__version__}"
    assert "no runs" in orc("status", "--repo", str(tmp_path)).lower()
    for shell in ("bash", "zsh", "fish"):
        assert "orc" in orc("completion", shell)
