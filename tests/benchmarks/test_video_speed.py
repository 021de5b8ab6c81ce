"""The benchmark of speed and memory, on clips of a second: it runs, reports what it documents, and names no file."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vidveil.app.demo import draw_video

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "video_speed.py"
needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="the system has no ffmpeg to compare with")


def bench(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *words]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("private") / "visitor.mp4"
    draw_video(path, frames=25)
    return path


@pytest.fixture(scope="module")
def report(clip: Path) -> dict[str, Any]:
    out = clip.parent / "out" / "speed.json"
    done = bench("--clip", str(clip), "--rounds", "1", "--methods", "blur:strong", "--json", str(out))
    assert done.returncode == 0, done.stderr
    assert "| blur:strong | gblur " in done.stdout
    found: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return found


@needs_ffmpeg
def test_the_json_describes_the_machine_the_clips_and_the_settings(report: dict[str, Any]) -> None:
    assert report["machine"].keys() == {"cpu", "cores", "ram_gb", "load_before"}
    assert report["versions"].keys() >= {"vidveil", "python", "av", "ffmpeg_in_av", "ffmpeg", "numpy", "opencv"}
    assert report["settings"] == {"preset": "veryfast", "crf": 20, "rounds": 1}
    assert report["clips"][0]["frames"] == 25
    assert "commit" in report
    assert report["x264"].keys() == {"vidveil", "ffmpeg"}
    assert report["notes"] == []


@needs_ffmpeg
def test_every_run_has_its_rounds_and_their_medians(report: dict[str, Any]) -> None:
    contestants = [(run["tool"], run["method"], run["against"]) for run in report["runs"]]
    assert contestants == [
        ("ffmpeg", "", "plain transcode"),
        ("vidveil", "blur:strong", ""),
        ("ffmpeg", "blur:strong", "gblur"),
        ("ffmpeg", "blur:strong", "scale+gblur"),
    ]
    for run in report["runs"]:
        assert run["output_frames"] == 25
        assert len(run["rounds"]) == 1
        assert all(run["rounds"][0][key] > 0 for key in ("wall_s", "cpu_s", "peak_mb"))
        assert all(run["median"][key] > 0 for key in ("wall_s", "cpu_s", "peak_mb", "fps", "output_mb"))


@needs_ffmpeg
def test_ratios_are_those_of_the_walls(report: dict[str, Any]) -> None:
    walls = {(run["tool"], run["against"]): run["median"]["wall_s"] for run in report["runs"]}
    for found in report["ratios"]:
        assert found["median"] > 0
        assert found["median"] == pytest.approx(walls["ffmpeg", found["against"]] / walls["vidveil", ""], abs=1e-3)


@needs_ffmpeg
def test_the_json_names_no_file_and_no_folder(report: dict[str, Any], clip: Path) -> None:
    text = json.dumps(report)
    assert not [name for name in (clip.name, str(clip.parent), str(ROOT), str(Path.home()) + "/") if name in text]


def test_memory_is_reported_for_a_short_and_a_long_video(tmp_path: Path) -> None:
    out = tmp_path / "memory.json"
    done = bench("--memory", "--sizes", "90p", "--short", "1", "--long", "2", "--json", str(out))
    assert done.returncode == 0, done.stderr
    row = json.loads(out.read_text("utf-8"))["memory"][0]
    assert [clip["frames"] for clip in row["clips"]] == [30, 60]
    assert all(peak > 10 for peak in row["peak_mb"])
    assert row["difference_mb"] == pytest.approx(row["peak_mb"][1] - row["peak_mb"][0], abs=0.06)


def test_without_ffmpeg_it_says_so_in_one_line(tmp_path: Path) -> None:
    done = bench(PATH=str(tmp_path))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "ffmpeg is not installed" in done.stderr
