"""`make bench`: measures part by part, keeps the figures as JSON, and makes docs/performance.md from them.

Ratios are taken in one run: the floor goes right before and after whatever is compared with it. A target that is missed is
printed as missed; a part that fails is said to have failed, and the others are measured all the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks import entrants, page, results
from benchmarks.bench import MOST_ROUNDS, Bench
from benchmarks.measure import Plot, Row
from benchmarks.plan import PARTS, Part


def main() -> int:
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", metavar="PART,…", help=f"only these parts: {', '.join(PARTS)}")
    parser.add_argument("--peers", choices=("all", "none"), default="all", help="measure the other engines, too (all) or not")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="the size of everything: 1 is what counts, 0.01 shows that it runs"
    )
    parser.add_argument("--rounds", type=int, default=MOST_ROUNDS, help="at most so many rounds, for a busy machine")
    parser.add_argument("--results", type=Path, metavar="FILE", help="the file to keep the figures in")
    parser.add_argument("--page", action="store_true", help="measure nothing: make the page anew from the newest results")
    given = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("ORC_")]:
        del os.environ[name]  # Of whoever measures, neither the store nor the settings count.
    if given.page:
        return _make_page(given.results or results.newest())
    names = [name.strip() for name in given.only.split(",") if name.strip()] or list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}; there are {', '.join(PARTS)}")
    peers = given.peers == "all"
    path = given.results or results.place(results.today(), peers=peers)
    missing = _install() if peers else {}
    planned_s = sum(PARTS[name].budget_s if peers else PARTS[name].alone_s for name in names)
    print(f"{len(names)} parts, about {max(1, planned_s / 60):.0f} minutes on a quiet machine", file=sys.stderr, flush=True)
    for name in names:
        _measure(path, PARTS[name], given, missing)
    known = results.read(path)
    assert known is not None
    print("\n".join(page.lines_for_terminal(known, names)))
    print(f"\nKept in {_shown(path)}.")
    return _make_page(path) if peers and given.results is None and given.scale == 1 else 0


def _install() -> dict[str, str]:
    """Make the peers' environments; return why some are not there, by the name of the peer."""
    missing: dict[str, str] = {}
    for environment in dict.fromkeys(peer.environment for peer in entrants.PEERS):
        print(f"{environment}: installing, if need be", file=sys.stderr, flush=True)
        why = entrants.install(environment)
        if why:
            print(f"{environment}: {why}", file=sys.stderr, flush=True)
            missing |= {peer.name: why for peer in entrants.PEERS if peer.environment == environment}
    return missing


def _measure(path: Path, part: Part, given: argparse.Namespace, missing: dict[str, str]) -> None:
    peers, scale = given.peers == "all", given.scale
    budget_s = part.budget_s if peers else part.alone_s
    print(f"{part.name}: {part.about} (about {budget_s:.0f} s)", file=sys.stderr, flush=True)
    began, began_s, load = datetime.now(UTC), time.monotonic(), os.getloadavg()[0]
    rows: list[Row] = []
    plots: list[Plot] = []
    failed = ""
    with tempfile.TemporaryDirectory(prefix="orc-bench-") as folder:
        budget_s *= min(scale, 1)
        bench = Bench(
            Path(folder), peers=peers, scale=scale, budget_s=budget_s, missing=missing, most_rounds=max(1, given.rounds)
        )
        try:
            for figure in part.measure(bench):
                (rows if isinstance(figure, Row) else plots).append(figure)  # type: ignore[arg-type]
        except Exception as error:  # the other parts are measured all the same
            failed = f"{type(error).__name__}: {error}"
            traceback.print_exc()
    took_s = time.monotonic() - began_s
    made = results.PartResult(
        at=began.isoformat(timespec="seconds"),
        took_s=round(took_s, 1),
        load=(round(load, 1), round(os.getloadavg()[0], 1)),
        scale=scale,
        most_rounds=given.rounds if given.rounds < MOST_ROUNDS else None,
        rows=rows,
        plots=plots,
        failed=failed,
    )
    print(f"{part.name}: took {took_s:.0f} s", file=sys.stderr, flush=True)
    _merge(path, part.name, made, peers=peers)


def _merge(path: Path, name: str, made: results.PartResult, *, peers: bool) -> None:
    known = results.read(path)
    parts = {**(known.parts if known is not None else {}), name: made}
    pinned = {}
    if peers:
        for peer in entrants.PEERS:
            pinned[peer.environment] = entrants.versions(peer.environment)[peer.environment]
    fresh = results.Results(
        date=results.today(),
        machine=results.machine(),
        versions={**results.versions(), **pinned},
        command="make bench" if peers else "make bench PEERS=none",
        peers=peers,
        parts={known: parts[known] for known in PARTS if known in parts},
    )
    results.keep(path, fresh if known is None else msgspec.structs.replace(fresh, date=known.date))


def _make_page(path: Path | None) -> int:
    known = results.read(path) if path is not None else None
    if path is None or known is None:
        print("there are no results with peers yet: `make bench` makes them", file=sys.stderr)
        return 2
    page.write(known, path)
    print(f"Written: {_shown(page.PAGE)}")
    return 0


def _shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


if __name__ == "__main__":
    sys.exit(main())
