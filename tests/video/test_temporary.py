"""Nobody's file is touched: not by a temporary name, not by a second run, not by two runs at once."""

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

import cv2
import pytest

from tests.media import Film, lumas, picture
from tests.whole_frame import anonymize
from vidveil.app import earlier, manifest
from vidveil.app.jobs import Options, Status
from vidveil.core import atomic
from vidveil.core.anonymizer import FrameMethod
from vidveil.core.atomic import part_of
from vidveil.core.errors import OutputError, UsageError


def only(outcomes):
    (outcome,) = outcomes
    return outcome


def names(folder: Path) -> set[str]:
    return {p.name for p in folder.rglob("*") if p.is_file()}


def test_processes_that_make_one_output_leave_it_whole(tmp_path):
    source = Film(frames=10).make(tmp_path / "a.mp4")
    code = (
        "import sys; from tests.whole_frame import anonymize; from vidveil.app.jobs import Options\n"
        "for crf in range(20, 40): print(anonymize(sys.argv[1], options=Options(crf=crf, overwrite=crf % 2))[0].error)"
    )
    command = [sys.executable, "-c", code, str(source)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    errors = {line for process in processes for line in process.communicate(timeout=120)[0].splitlines()}
    output = tmp_path / "a_anonymized.mp4"
    manifest = json.loads(output.with_suffix(".json").read_text())
    allowed = {f"a_anonymized.{suffix} is being written by another process" for suffix in ("mp4", "json")}
    assert "None" in errors
    assert errors <= {"None", *allowed}
    assert manifest["output"]["sha256"] == hashlib.sha256(output.read_bytes()).hexdigest()
    assert len(lumas(output)) == 10
    assert names(tmp_path) == {"a.mp4", "a_anonymized.mp4", "a_anonymized.json"}


def test_an_output_that_another_process_is_writing_is_left_to_it(tmp_path):
    path = Film().make(tmp_path / "a.mp4")
    with atomic.temporary(tmp_path / "a_anonymized.mp4"):
        outcome = only(anonymize(path))
        assert "another process" in str(outcome.error)
    assert only(anonymize(path)).ok


def test_part_files_of_others_are_left_as_they_are(tmp_path):
    unfinished = Film().make(tmp_path / "a.mp4").rename(tmp_path / "movie.mp4.part")
    before = unfinished.read_bytes()
    (tmp_path / "movie.json.part").write_text("precious")
    assert only(anonymize(unfinished, output=tmp_path / "movie.mp4")).ok
    assert unfinished.read_bytes() == before
    assert (tmp_path / "movie.json.part").read_text() == "precious"


def test_no_source_of_a_run_is_replaced_even_if_asked_to(tmp_path):
    first, second = Film().make(tmp_path / "a.mp4"), Film().make(tmp_path / "b.mp4")
    (tmp_path / "a_anonymized.mp4").hardlink_to(second)
    outcomes = {o.name: o for o in anonymize(first, second, options=Options(overwrite=True))}
    assert "a source of this run" in str(outcomes["a.mp4"].error)
    assert outcomes["b.mp4"].ok
    odd = Film().make(tmp_path / "c.mp4").rename(tmp_path / "out.json")
    before = odd.read_bytes()
    refused = only(anonymize(odd, output=tmp_path / "out.mp4", options=Options(overwrite=True)))
    assert "a source of this run" in str(refused.error)
    assert odd.read_bytes() == before


def test_a_preview_replaces_no_source_under_any_name(tmp_path):
    path = Film().make(tmp_path / "a.mp4")
    before = path.read_bytes()
    (tmp_path / "link.mp4").symlink_to(path)
    with pytest.raises(UsageError):
        anonymize(path, options=Options(preview=tmp_path / "link.mp4", overwrite=True))
    part_of(tmp_path / "look.mp4").hardlink_to(path)
    refused = only(anonymize(path, options=Options(preview=tmp_path / "look.mp4", overwrite=True)))
    assert "a source of this run" in str(refused.error)
    assert path.read_bytes() == before


def test_a_file_that_is_not_ours_is_not_replaced(tmp_path):
    path = Film().make(tmp_path / "a.mp4")
    (tmp_path / "a_anonymized.mp4").write_text("precious")
    refused = only(anonymize(path))
    assert isinstance(refused.error, OutputError)
    assert "--overwrite" in str(refused.error)
    assert (tmp_path / "a_anonymized.mp4").read_text() == "precious"
    assert only(anonymize(path, options=Options(overwrite=True))).ok


def test_a_json_file_that_is_no_manifest_is_not_replaced(tmp_path):
    path = Film().make(tmp_path / "a.mp4")
    (tmp_path / "safe.json").write_text('{"mine": true}')
    refused = only(anonymize(path, output=tmp_path / "safe.mp4"))
    assert "safe.json" in str(refused.error)
    assert (tmp_path / "safe.json").read_text() == '{"mine": true}'


def test_a_folder_in_place_of_an_output_is_reported(tmp_path):
    path = Film().make(tmp_path / "a.mp4")
    (tmp_path / "a_anonymized.mp4").mkdir()
    refused = only(anonymize(path, options=Options(overwrite=True)))
    assert "is a folder" in str(refused.error)
    assert names(tmp_path) == {"a.mp4"}


def test_an_output_made_from_a_file_of_another_name_is_not_replaced(tmp_path):
    first = Film(codec="mpeg4").make(tmp_path / "a.avi")
    assert only(anonymize(first)).output.name == "a_anonymized.mp4"
    second = Film().make(tmp_path / "a.mp4")
    refused = only(anonymize(second))
    assert "was made from a.avi" in str(refused.error)


def two_folders(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    return Film(frames=5).make(tmp_path / "x" / "a.mp4"), Film(frames=6).make(tmp_path / "y" / "a.mp4")


def test_an_output_made_from_another_file_of_that_name_is_not_replaced(tmp_path):
    first, second = two_folders(tmp_path)
    output = only(anonymize(first, output=tmp_path / "out")).output
    before = output.read_bytes()
    refused = only(anonymize(second, output=tmp_path / "out"))
    assert "was made from another file called a.mp4; --overwrite replaces it" in str(refused.error)
    assert output.read_bytes() == before
    assert only(anonymize(second, output=tmp_path / "out", options=Options(overwrite=True))).frames == 6


def test_a_video_that_was_moved_or_copied_is_still_the_same_video(tmp_path):
    first, second = two_folders(tmp_path)
    anonymize(first, output=tmp_path / "out")
    first.replace(second)
    assert only(anonymize(second, output=tmp_path / "out")).status is Status.UP_TO_DATE
    assert only(anonymize(second, output=tmp_path / "out", method="solid")).status is Status.DONE


def test_a_folder_can_be_moved_with_its_outputs_and_its_videos_changed(tmp_path):
    first, _ = two_folders(tmp_path)
    anonymize(first)
    moved = (tmp_path / "x").rename(tmp_path / "z") / "a.mp4"
    Film(frames=7).make(moved)
    assert only(anonymize(moved)).frames == 7


def test_the_manifest_of_another_output_is_not_replaced(tmp_path):
    first, _ = two_folders(tmp_path)
    anonymize(first, output=tmp_path / "out")
    notes = tmp_path / "out" / "a_anonymized.json"
    before = notes.read_bytes()
    photo = tmp_path / "y" / "photo" / "a.jpg"
    photo.parent.mkdir()
    photo.write_bytes(cv2.imencode(".jpg", picture(3, 80, 48))[1].tobytes())
    refused = only(anonymize(photo, output=tmp_path / "out"))
    assert "a_anonymized.json belongs to a_anonymized.mp4" in str(refused.error)
    assert notes.read_bytes() == before


def test_where_a_source_lies_is_recorded_as_three_digits_and_no_more(tmp_path):
    digits = manifest.place(tmp_path / "a.mp4", tmp_path)
    assert len(digits) == 3
    assert digits == manifest.place(Path("/home/somebody/a.mp4"), Path("/home/somebody"))
    assert digits != manifest.place(tmp_path / "x" / "a.mp4", tmp_path)


def test_a_failure_does_not_wait_for_the_hash_of_its_input(tmp_path):
    path = Film().make(tmp_path / "a.mp4")
    with path.open("ab") as file:
        file.truncate(20 << 30)  # nothing but a hole, and half a minute to hash

    class Dead(FrameMethod):
        def stream(self, frames):
            next(iter(frames))
            raise RuntimeError("gone")
            yield

        def paint(self, source, target, shrink, /): ...

    began = time.monotonic()
    outcome = only(anonymize(path, method=Dead("dead")))
    assert "gone" in str(outcome.error)
    assert time.monotonic() - began < 5


def test_an_output_that_another_process_finishes_meanwhile_is_no_stranger(tmp_path, monkeypatch):
    """It was not there when its manifest was looked for, and is there when it is looked for itself."""
    source = Film(frames=10).make(tmp_path / "a.mp4")
    read, theirs = earlier.read_manifest, []

    def too_early(path):
        if not theirs:
            theirs.append(None)
            anonymize(source)  # the other process, all of it
            return None
        return read(path)

    monkeypatch.setattr(earlier, "read_manifest", too_early)
    (outcome,) = anonymize(source)
    assert outcome.error is None
    assert outcome.status is Status.UP_TO_DATE
