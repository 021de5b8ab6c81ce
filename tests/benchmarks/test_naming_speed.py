"""The benchmark of naming outputs: that it runs, and what it says of the published run."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "naming_speed.py"


def test_it_measures_each_number_of_files_and_the_slope(tmp_path):
    out = tmp_path / "new" / "speed.json"
    words = [sys.executable, str(SCRIPT), "--files", "40", "20", "--json", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    report = json.loads(out.read_text())
    assert [run["files"] for run in report["runs"]] == [20, 40]
    assert f"slope {report['slope']}" in done.stdout


def test_the_published_run_is_linear_and_fast():
    report = json.loads((ROOT / "benchmarks/results/naming_speed.json").read_text())
    seconds = {run["files"]: run["total_s"] for run in report["runs"]}
    assert seconds[5000] < 2
    assert seconds[100_000] < 60
    assert report["slope"] < 1.2
