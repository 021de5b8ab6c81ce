"""The benchmark of naming outputs, on a few files."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "naming_speed.py"


def test_it_measures_each_number_of_files_and_the_slope(tmp_path):
    out = tmp_path / "new" / "speed.json"
    words = [sys.executable, str(SCRIPT), "--files", "40", "20", "--json", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    report = json.loads(out.read_text())
    assert [run["files"] for run in report["runs"]] == [20, 40]
    assert f"slope {report['slope']}" in done.stdout
