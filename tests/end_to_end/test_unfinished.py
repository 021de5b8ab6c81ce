"""What a killed run left behind shows originals: the next run removes it, whatever its own options are."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.detect.onnx_writer import constant
from tests.media import Film
from vidveil.cli.app import app
from vidveil.core.atomic import part_of

COMMAND = [sys.executable, "-m", "vidveil", "anonymize"]


@pytest.fixture
def detector(tmp_path) -> Path:
    """Sees somebody in the middle of every picture."""
    path = tmp_path / "models" / "somebody.onnx"
    path.parent.mkdir()
    path.write_bytes(constant({"boxes": ((1, 4), (20.0, 20.0, 60.0, 60.0)), "scores": ((1,), (0.9,))}))
    path.with_suffix(".json").write_text(json.dumps({"layout": "boxes", "size": 64}))
    return path


def vidveil(*words: object) -> Result:
    return CliRunner().invoke(app, ["anonymize", *map(str, words)])


def hidden(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name.startswith(".")}


def kill_half_way(words: list[object], part: Path) -> None:
    process = subprocess.Popen([*COMMAND, *map(str, words)], stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while not (part.exists() and part.stat().st_size > 0):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_a_preview_and_tracks_of_a_killed_run_are_removed_by_a_run_that_asks_for_neither(tmp_path, detector):
    films, elsewhere = tmp_path / "films", tmp_path / "elsewhere"
    films.mkdir()
    elsewhere.mkdir()
    film = Film(frames=400, width=320, height=240).make(films / "a.mp4")
    preview, tracks = elsewhere / "look.mp4", elsewhere / "t.jsonl"
    words: list[object] = [film, "--region", detector, "--preview", preview, "--tracks-out", tracks]
    kill_half_way(words, part_of(preview))
    assert hidden(films)
    assert part_of(preview).name in hidden(elsewhere)

    done = vidveil(film, "--region", detector)
    assert done.exit_code == 0, done.stderr
    assert hidden(films) == set()
    assert hidden(elsewhere) == set()
    assert "note: removed what an earlier run left unfinished: " in done.stderr
    assert ".look.mp4.vidveil.part" in done.stderr


def test_what_another_video_of_the_folder_left_is_removed_and_a_dry_run_removes_nothing(tmp_path):
    film = Film().make(tmp_path / "a.mp4")
    part_of(tmp_path / "gone_anonymized.mp4").write_bytes(b"somebody")
    assert vidveil(film, "--region", "frame", "--dry-run").exit_code == 0
    assert hidden(tmp_path)
    assert vidveil(film, "--region", "frame").exit_code == 0
    assert hidden(tmp_path) == set()


def test_a_preview_is_removed_by_a_run_that_writes_to_another_folder(tmp_path):
    film = Film(frames=400, width=320, height=240).make(tmp_path / "a.mp4")
    for name in ("one", "two", "look"):
        (tmp_path / name).mkdir()
    preview = tmp_path / "look" / "p.mp4"
    kill_half_way([film, "-o", tmp_path / "one", "--preview", preview, "--region", "frame"], part_of(preview))
    assert hidden(tmp_path / "look")
    assert vidveil(film, "-o", tmp_path / "two", "--region", "frame").exit_code == 0
    assert hidden(tmp_path / "look") == set()


def test_a_list_of_unfinished_files_can_make_nobody_delete_another_file(tmp_path, monkeypatch):
    lists = tmp_path / "lists"
    lists.mkdir()
    monkeypatch.setenv("VIDVEIL_UNFINISHED", str(lists))
    film = Film().make(tmp_path / "a.mp4")
    precious = tmp_path / "precious"
    (precious / ".thing.vidveil.part").mkdir(parents=True)  # a folder that only looks like one of ours
    (precious / ".thing.vidveil.part" / "letter.txt").write_text("precious")
    (precious / "thesis.txt").write_text("precious")
    files = [str(precious / "thesis.txt"), str(precious / "thing"), "/etc/passwd", 3]
    part_of(lists / "0.json").write_text(json.dumps(files))
    assert vidveil(film, "--region", "frame").exit_code == 0
    assert (precious / "thesis.txt").read_text() == "precious"
    assert (precious / ".thing.vidveil.part" / "letter.txt").read_text() == "precious"
    assert not list(lists.iterdir())


def test_no_name_next_to_the_tracks_can_be_planted_to_empty_a_file(tmp_path, detector):
    """Every name that vidveil could write to on the way is a link to somebody's file."""
    film = Film().make(tmp_path / "a.mp4")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for ending in (".body", ".tmp", "~"):
        for stem in (".t.jsonl.vidveil.part", "t.jsonl", ".t.jsonl"):
            (tmp_path / f"{stem}{ending}").symlink_to(victim)
    done = vidveil(film, "--region", detector, "--tracks-out", tmp_path / "t.jsonl")
    assert done.exit_code == 0, done.stderr
    assert victim.read_text() == "precious"
    assert json.loads((tmp_path / "t.jsonl").read_text().splitlines()[0])["frames"] > 0


def test_tracks_that_are_being_written_have_no_name_but_the_temporary_one(tmp_path, detector):
    film = Film(frames=400, width=320, height=240).make(tmp_path / "a.mp4")
    kill_half_way(
        [film, "--region", detector, "--tracks-out", tmp_path / "t.jsonl"], part_of(tmp_path / "a_anonymized.mp4")
    )
    assert {path.name for path in tmp_path.iterdir() if "t.jsonl" in path.name} == {".t.jsonl.vidveil.part"}
