"""How long `vidveil anonymize` takes to find the files of a folder and to name their outputs, before any other work.

    python benchmarks/naming_speed.py                       1,000 to 100,000 empty files: half a minute
    python benchmarks/naming_speed.py --files 1000 5000     less of it

    find, name   seconds; the least of three rounds
    slope        of log(seconds) over log(files), by least squares: 1 is linear, 2 is quadratic

All files have one extension, which is not .mp4: their neighbours have to be known before their outputs can be named.
Writes benchmarks/results/naming_speed.json, or what --json names.
"""

import argparse
import json
import math
import os
import platform
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import linear_regression
from time import perf_counter
from typing import Any

from vidveil import __version__
from vidveil.app.naming import name_outputs
from vidveil.video.sources import find

RESULTS = Path(__file__).resolve().parent / "results" / "naming_speed.json"
FILES = (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
ROUNDS = 3


def measure(files: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        for i in range(files):
            Path(folder, f"clip{i:06}.mov").touch()
        rounds = [_once(folder, files) for _ in range(ROUNDS)]
    found, named = (round(min(times), 3) for times in zip(*rounds, strict=True))
    return {"files": files, "find_s": found, "name_s": named, "total_s": round(min(map(sum, rounds)), 3)}


def _once(folder: str, files: int) -> tuple[float, float]:
    begin = perf_counter()
    sources, _, _ = find([folder])
    middle = perf_counter()
    named, _ = name_outputs(sources, None)
    end = perf_counter()
    assert len(named) == files
    return middle - begin, end - middle


def slope(runs: Sequence[dict[str, Any]]) -> float | None:
    if len(runs) < 2:
        return None
    x, y = ([math.log(run[key]) for run in runs] for key in ("files", "total_s"))
    return round(linear_regression(x, y).slope, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=FILES)
    parser.add_argument("--json", type=Path, default=RESULTS)
    given = parser.parse_args()
    runs = []
    print("| files | find, s | name, s | together, s |\n|---:|---:|---:|---:|")
    for files in sorted(given.files):
        runs.append(measure(files))
        print("| {files:,} | {find_s:.3f} | {name_s:.3f} | {total_s:.3f} |".format(**runs[-1]), flush=True)
    print(f"\nslope {slope(runs)}")
    machine = {"system": platform.system(), "cores": os.cpu_count(), "python": platform.python_version()}
    report = {"vidveil": __version__, "machine": machine, "rounds": ROUNDS, "runs": runs, "slope": slope(runs)}
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
