"""Jobs fail closed, resume, and never touch what is not theirs."""

import hashlib
import os
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from tests.media import Film, detail, lumas, picture
from tests.whole_frame import anonymize, anonymize_one, manifest_of
from vidveil.app.jobs import Options, Status
from vidveil.core.anonymizer import FrameMethod
from vidveil.core.errors import UsageError


class Fragile(FrameMethod):
    """A method that breaks on some pictures, in the worst way: after painting the original."""

    def __init__(self, bad: set[int]) -> None:
        super().__init__("fragile")
        self.bad = bad

    def hide(self, frame):
        safe = super().hide(frame)
        if frame.index in self.bad:
            raise RuntimeError("boom")
        return safe

    def paint(self, source, target, _, /):
        target[:] = source.mean()


def names(folder: Path) -> set[str]:
    return {p.name for p in folder.rglob("*") if p.is_file()}


def test_a_frame_that_cannot_be_anonymized_is_black_and_counted(tmp_path):
    path = Film(frames=12).make(tmp_path / "a.mp4")
    outcome = anonymize_one(path, method=Fragile({3, 4, 9}))
    means = lumas(outcome.output).mean((1, 2))
    assert outcome.hidden == 3
    assert all((means[i] < 20) == (i in (3, 4, 9)) for i in range(12))
    assert manifest_of(outcome)["hidden"] == [
        {"first": 3, "last": 4, "why": "could not be anonymized (RuntimeError)"},
        {"first": 9, "last": 9, "why": "could not be anonymized (RuntimeError)"},
    ]
    assert manifest_of(outcome)["frames"]["hidden"] == 3


def test_a_frame_that_cannot_be_decoded_is_black_and_counted(tmp_path):
    path = Film(frames=60, width=160, height=120, options={"movflags": "faststart"}).make(tmp_path / "a.mp4")
    data = bytearray(path.read_bytes())
    data[len(data) // 2 :][:4000] = b""
    half = len(data) // 2
    data[half : half + 3000] = np.random.default_rng(1).bytes(3000)
    path.write_bytes(data)
    outcome = anonymize_one(path)
    notes = manifest_of(outcome)
    hidden = {i for run in notes["hidden"] for i in range(run["first"], run["last"] + 1)}
    means = lumas(outcome.output).mean((1, 2))
    assert len(means) == 60
    assert outcome.status is Status.DONE
    assert len(hidden) == outcome.hidden == notes["frames"]["hidden"] > 0
    assert all(means[i] < 20 for i in hidden)
    assert all(means[i] > 30 for i in range(60) if i not in hidden)


def test_a_method_that_dies_leaves_nothing(tmp_path):
    class Dead(Fragile):
        def stream(self, frames):
            yield from super().stream(f for _, f in zip(range(5), frames, strict=False))
            raise RuntimeError("gone")

    path = Film().make(tmp_path / "a.mp4")
    outcome = anonymize_one(path, method=Dead(set()))
    assert outcome.status is Status.FAILED
    assert "internal error" in str(outcome.error)
    assert names(tmp_path) == {"a.mp4"}


def test_a_second_run_has_nothing_to_do(tmp_path):
    path = Film().make(tmp_path / "a.mp4")
    first = anonymize_one(path)
    when = first.output.stat().st_mtime_ns
    second = anonymize_one(path)
    assert second.status is Status.UP_TO_DATE
    assert second.frames == first.frames
    assert first.output.stat().st_mtime_ns == when


def test_an_input_that_changes_meanwhile_gives_no_output(tmp_path):
    path = Film().make(tmp_path / "a.mp4")

    class Meddling(Fragile):
        def stream(self, frames):
            yield from super().stream(frames)
            os.utime(path)

    outcome = anonymize_one(path, method=Meddling(set()))
    assert "changed while" in str(outcome.error)
    assert names(tmp_path) == {"a.mp4"}


def test_what_a_method_leaves_visible_stands_in_the_manifest(tmp_path):
    outcome = anonymize_one(Film().make(tmp_path / "a.mp4"), method="stride:2")
    assert outcome.warnings == tuple(manifest_of(outcome)["warnings"])
    assert "can be recognised" in outcome.warnings[0]


def test_a_file_in_a_tree_is_named_with_its_folder(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.mp4").write_text("nonsense")
    outcome = anonymize_one(tmp_path)
    assert outcome.name == "x/a.mp4"


def test_a_dry_run_writes_nothing(tmp_path):
    path = Film(frames=9).make(tmp_path / "a.mp4")
    outcome = anonymize_one(path, output=tmp_path / "new" / "folder", options=Options(dry_run=True))
    assert outcome.status is Status.WOULD_DO
    assert outcome.frames == 9
    assert names(tmp_path) == {"a.mp4"}
    assert not (tmp_path / "new").exists()


def test_a_truncated_file_is_done_as_far_as_it_goes_and_is_an_error_each_time(tmp_path):
    path = Film(frames=60, width=160, height=120, options={"movflags": "faststart"}).make(tmp_path / "a.mp4")
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    first = anonymize_one(path)
    assert first.status is Status.INCOMPLETE
    assert not first.ok
    assert detail(lumas(first.output)).max() < 2
    assert "of 60 frames" in manifest_of(first)["incomplete"]
    again = anonymize_one(path)
    assert again.status is Status.UP_TO_DATE
    assert not again.ok


def test_a_png_stays_a_png(tmp_path):
    path = tmp_path / "shot.png"
    path.write_bytes(cv2.imencode(".png", picture(3, 81, 47))[1].tobytes())
    outcome = anonymize_one(path)
    assert outcome.output.name == "shot_anonymized.png"
    assert cv2.imread(str(outcome.output)).shape == (47, 81, 3)


def test_the_manifest_names_no_folder(tmp_path):
    folder = tmp_path / "Station-Sieben"
    folder.mkdir()
    outcome = anonymize_one(Film().make(folder / "a.mp4"), output=tmp_path / "Ausgabe")
    text = outcome.output.with_suffix(".json").read_text()
    assert "Station" not in text
    assert "Ausgabe" not in text
    assert str(tmp_path) not in text


def test_the_manifest_has_the_hashes_of_both_files(tmp_path):
    path = Film().make(tmp_path / "a.mp4")
    outcome = anonymize_one(path)
    notes = manifest_of(outcome)
    assert notes["input"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert notes["output"]["sha256"] == hashlib.sha256(outcome.output.read_bytes()).hexdigest()
    assert notes["order"]["method"] == "blur:strong"
    assert notes["frames"]["read"] == notes["frames"]["written"] == 20


def test_a_preview_takes_one_source(tmp_path):
    Film().make(tmp_path / "a.mp4")
    Film().make(tmp_path / "b.mp4")
    with pytest.raises(UsageError, match="one source"):
        anonymize(tmp_path, options=Options(preview=tmp_path / "p.mp4"))


def test_a_preview_replaces_nothing(tmp_path):
    path = Film().make(tmp_path / "a.mp4")
    for target in (path, tmp_path / "a_anonymized.mp4", tmp_path / "look.avi"):
        with pytest.raises(UsageError):
            anonymize(path, options=Options(preview=target, overwrite=True))
    look = tmp_path / "look.mp4"
    look.write_text("precious")
    refused = anonymize_one(path, options=Options(preview=look))
    assert "look.mp4 exists" in str(refused.error)
    assert look.read_text() == "precious"


def test_a_preview_among_videos_is_not_taken_for_one_of_them(tmp_path):
    path = Film().make(tmp_path / "a.mp4")
    assert anonymize_one(path, options=Options(preview=tmp_path / "look.mp4")).ok
    outcomes = {outcome.name: outcome for outcome in anonymize(tmp_path, output=tmp_path / "safe")}
    assert outcomes["a.mp4"].ok
    assert "is a preview that vidveil made" in str(outcomes["look.mp4"].error)
    assert {file.name for file in (tmp_path / "safe").iterdir()} == {"a_anonymized.mp4", "a_anonymized.json"}


def test_a_preview_does_not_lie_in_the_folder_of_outputs(tmp_path):
    path = Film().make(tmp_path / "a.mp4")
    (tmp_path / "safe" / "below").mkdir(parents=True)
    for place in ("safe", "safe/below"):
        with pytest.raises(UsageError, match="would lie among the outputs"):
            anonymize(path, output=tmp_path / "safe", options=Options(preview=tmp_path / place / "look.mp4"))


@pytest.mark.parametrize(
    "bad", [{"crf": 52}, {"audio": "loud"}, {"metadata": "some"}, {"manifest": "some"}, {"start": 2, "end": 1}]
)
def test_senseless_options_are_refused(bad):
    with pytest.raises(UsageError):
        Options(**bad)


def test_a_stream_of_pictures_that_ends_without_one_is_an_error(tmp_path):
    path = Film(frames=25, rate=25).make(tmp_path / "a.mp4")
    outcome = anonymize_one(path, options=Options(start=Fraction(50)))
    assert outcome.status is Status.FAILED
    assert names(tmp_path) == {"a.mp4"}


def test_a_video_codec_that_nobody_knows_is_said(tmp_path):
    path = Film().make(tmp_path / "a.mp4")
    data = path.read_bytes()
    at = data.index(b"stsd") + 16  # the name of the codec in the sample description
    path.write_bytes(data[:at] + b"zz9z" + data[at + 4 :])
    outcome = anonymize_one(path)
    assert outcome.status is Status.FAILED
    assert "codec is not known" in str(outcome.error)


def test_a_build_without_an_encoder_is_said(tmp_path, monkeypatch):
    def none(name, _):
        raise ValueError(name)

    path = Film().make(tmp_path / "a.mp4")
    monkeypatch.setattr(av.codec, "Codec", none)
    outcome = anonymize_one(path)
    assert "no H.264 encoder" in str(outcome.error)
    assert names(tmp_path) == {"a.mp4"}
