"""A message on a real desktop: `notify-send` tells dunst, which shows it on an X server that draws into memory."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.rig import ORC
from tests.notify.rig import NotifyRig

PROGRAMS = ("dunst", "Xvfb", "dbus-run-session", "notify-send")
DESKTOP = """
set -eu
mkfifo "$SIDE/number"
exec 3<>"$SIDE/number"
Xvfb -displayfd 3 -screen 0 400x300x24 -nolisten tcp >"$SIDE/xvfb.log" 2>&1 & server=$!
trap 'kill "$server" "${shows:-$server}" 2>/dev/null || true' EXIT
read -r number <&3
export DISPLAY=":$number"
dunst -config "$SIDE/dunstrc" >"$SIDE/dunst.log" 2>&1 & shows=$!
for _ in $(seq 600); do [ -e "$SIDE/shown" ] && break; notify-send ready now || true; sleep 0.1; done
"$@" || test $? = 1
for _ in $(seq 600); do grep -q 'coding' "$SIDE/shown" && break; sleep 0.1; done
"""
SHOWN = '#!/bin/sh\nprintf "%s\\n" "$1 | $2 | $3" >>"{side}/shown"\n'
DUNSTRC = '[global]\nmarkup = full\n[every]\nsummary = "*"\nscript = {side}/shown.sh\n'


@pytest.mark.skipif(any(shutil.which(one) is None for one in PROGRAMS), reason=f"needs {', '.join(PROGRAMS)}")
def test_a_real_desktop_shows_it_and_takes_no_word_for_markup(rig: NotifyRig) -> None:
    rig.configure('url = "desktop:"\non = ["failed"]')
    rig.workflow("name: '<b>demo</b> & co'\nsteps:\n  - {id: coding, agent: coder, prompt: prompt.md}\n")
    rig.play({"coding": {"report": {"status": "FAILED", "summary": "no"}, "exit": 3}})
    side: Path = rig.side
    (side / "dunstrc").write_text(DUNSTRC.format(side=side))
    (side / "shown.sh").write_text(SHOWN.format(side=side))
    (side / "shown.sh").chmod(0o755)
    wrapper = ("--wrapper", str(side / "wrapper.py"), "--max-attempts", "1")
    run = [*ORC, "run", "--workflow", "workflow.yaml", *wrapper, "--run-id", "f8c1"]
    done = subprocess.run(
        ["dbus-run-session", "--", "bash", "-c", DESKTOP, "bash", *run],
        cwd=rig.repo,
        env=rig.environment({"SIDE": str(side), "XDG_RUNTIME_DIR": str(side)}),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr, (side / "dunst.log").read_text())
    shown = (side / "shown").read_text()
    [told] = [line for line in shown.splitlines() if line.startswith("orc | ")]
    assert told.startswith("orc | orc: f8c1 failed | &lt;b&gt;demo&lt;/b&gt; &amp; co in repo: coding"), shown
