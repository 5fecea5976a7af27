"""Types that several threads need in the same moment."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from agent_orchestrator import typed

RACE = """
import sys, threading, typing
import msgspec
from agent_orchestrator import typed

sys.setswitchinterval(1e-6)

def decode_at_once(number, decode):
    leaf = msgspec.defstruct(f"Leaf{number}", [(f"f{i}", dict[str, list[int]] | None, None) for i in range(30)])
    fields = [(f"g{i}", leaf | None, None) for i in range(20)]
    kinds = [msgspec.defstruct(f"Kind{number}_{k}", fields, tag=f"k{k}") for k in range(5)]
    all_here, read = threading.Barrier(4), []

    def work(k):
        kind = typing.Union[tuple(kinds[k:] + kinds[:k])]
        all_here.wait()
        read.append(decode(b'{"type":"k%d","g3":{"f7":{"a":[1]}}}' % k, kind).g3.f7)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for one in threads: one.start()
    for one in threads: one.join()
    assert read == [{"a": [1]}] * 4, read

ways = {
    "decode": typed.decode,
    "decoder": lambda content, kind: typed.decoder(kind)(content),
    "convert": lambda content, kind: typed.convert(msgspec.json.decode(content), kind),
}
for number in range(60):
    decode_at_once(number, ways[sys.argv[1]])
"""


@pytest.mark.parametrize("way", ["decode", "decoder", "convert"])
def test_threads_that_need_a_new_type_at_once_all_get_it(way: str) -> None:
    done = subprocess.run([sys.executable, "-c", RACE, way], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_does_not_fit_is_said_with_its_path() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Expected `int`.*\$\["):
        typed.decode(b'{"a": "one"}', dict[str, int])
    with pytest.raises(msgspec.ValidationError, match=r"\$\[0\]"):
        typed.convert(["one"], list[int])
    assert typed.convert(["1"], list[int], strict=False) == [1]
