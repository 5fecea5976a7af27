"""The files of docs/cluster.md for Compose and Kubernetes: with a command line that `orc worker` takes, and judged by others."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_orchestrator.surfaces.cli.commands.worker import command
from tests.acceptance.rig import ROOT


def manifests() -> list[Any]:
    blocks = re.findall(r"```text\n(.*?)```", (ROOT / "docs" / "cluster.md").read_text(), re.S)
    return [yaml.safe_load(block) for block in blocks if block.startswith(("services:", "apiVersion:"))]


def test_the_workers_of_the_manifests_are_started_with_options_that_there_are() -> None:
    compose, kubernetes = manifests()
    pod = kubernetes["spec"]["template"]["spec"]
    for words in (compose["services"]["worker"]["command"], pod["containers"][0]["args"]):
        assert words[0] == "worker"
        assert {word for word in words if word.startswith("--")} <= {name for one in command.params for name in one.opts}
    assert pod["containers"][0]["volumeMounts"][0]["mountPath"] == "/var/tmp/orc"
    assert kubernetes["spec"]["selector"]["matchLabels"] == kubernetes["spec"]["template"]["metadata"]["labels"]
    assert {*compose["services"]["worker"]["secrets"], *compose["services"]["db"]["secrets"]} == {*compose["secrets"]}


def check_compose(document: Any, folder: Path) -> subprocess.CompletedProcess[str]:
    """Judge a document by the schema that the makers of Compose publish."""
    file = folder / "compose.json"
    file.write_text(json.dumps(document))
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


def test_the_file_for_compose_keeps_to_its_schema(tmp_path: Path) -> None:
    compose, _ = manifests()
    done = check_compose(compose, tmp_path)
    assert done.returncode == 0, done.stdout
    compose["services"]["worker"]["comand"] = compose["services"]["worker"].pop("command")
    assert "comand" in check_compose(compose, tmp_path).stdout


def find_missing(given: Any, read: Any, where: str = "") -> list[str]:
    """Return what was written and not read, by its path: kubectl leaves out what it does not know."""
    if isinstance(given, Mapping):
        return [miss for name, value in given.items() for miss in find_missing(value, read.get(name, ...), f"{where}.{name}")]
    if isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        return [
            miss
            for number, pair in enumerate(zip(given, read, strict=True))
            for miss in find_missing(*pair, f"{where}[{number}]")
        ]
    return [] if given == read else [where]


def read_by_kubectl(manifest: Any, folder: Path) -> subprocess.CompletedProcess[str]:
    """Let kubectl read a manifest into its own types, without a server, and write it again."""
    file = folder / "manifest.json"
    file.write_text(json.dumps(manifest))
    words = ["kubectl", "set", "image", "--local", "--filename", str(file), "worker=another", "--output", "json"]
    environ = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "KUBECONFIG": str(folder / "none")}
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is needed")
def test_kubectl_knows_every_field_of_the_manifest(tmp_path: Path) -> None:
    _, kubernetes = manifests()
    (container,) = kubernetes["spec"]["template"]["spec"]["containers"]
    done = read_by_kubectl(kubernetes, tmp_path)
    assert done.returncode == 0, done.stderr
    image = ".spec.template.spec.containers[0].image"
    assert find_missing(kubernetes, json.loads(done.stdout)) == [image], (
        "it is read into the types of Kubernetes, and changed there"
    )
    container["volumeMount"] = container.pop("volumeMounts")
    misspelt = find_missing(kubernetes, json.loads(read_by_kubectl(kubernetes, tmp_path).stdout))
    assert misspelt == [image, image.replace("image", "volumeMount")]
    kubernetes["spec"]["replicas"] = "four"
    assert "of type int32" in read_by_kubectl(kubernetes, tmp_path).stderr
