"""The benchmark of learned masks, on a second of video: that it runs, and counts what it says it counts."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "masked_video_speed.py"


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="the system has no ffmpeg to compare with")
def test_both_sides_are_run_alternately_and_the_ratio_is_that_of_their_medians(tmp_path: Path) -> None:
    out = tmp_path / "speed.json"
    words = ["--video", "testsrc2", "--seconds", "1", "--rounds", "1", "--json", str(out)]
    done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text("utf-8"))
    assert (report["clip"]["height"], report["clip"]["frames"]) == (720, 30)
    walls = report["median_wall_s"]
    assert list(walls) == ["ffmpeg", "vidveil", "ffmpeg, one frame", "vidveil, one frame"]
    assert report["ratio"] == round(walls["ffmpeg"] / walls["vidveil"], 4)
    assert f"ratio {report['ratio']:.2f}" in done.stdout
    assert str(tmp_path) not in out.read_text("utf-8")
