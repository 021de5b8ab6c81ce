"""Where a method works: in regions, on top of another method, on the whole frame, in images."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

import vidveil
from tests.detect.hiding import hide
from tests.detect.stage import RED, Discs, Head, film, frame_of, still, walk
from vidveil.app.jobs import Options, Status
from vidveil.core.anonymizer import FrameMethod
from vidveil.core.errors import UsageError, WeightsError
from vidveil.detect import settings
from vidveil.detect.detectors import Detector
from vidveil.detect.settings import DetectionSettings
from vidveil.methods import load


def test_two_kinds_of_thing_are_hidden_each_in_its_own_way(tmp_path, monkeypatch):
    class Reds(Discs):
        kind, scores = "reds", (0.0, 0.9, 0.0)

    class Magentas(Discs):
        scores = (0.9, 0.0, 0.0)

    monkeypatch.setitem(settings.DETECTORS, "discs", Magentas)
    monkeypatch.setitem(settings.DETECTORS, "reds", Reds)
    red = Head(still(180, 80), lambda _: RED)
    done = hide(film(Head(still(60, 80)), red, frames=20), tmp_path, method="blur:strong", also_hide="reds")
    assert not done.bad
    inside = done.pictures[10]
    assert inside[75:85, 175:185].max() < 24
    assert 90 < inside[75:85, 55:65].mean() < 160


def test_also_hide_hides_on_top_of_a_method_that_paints(tmp_path):
    scene = film(Head(walk(60, 80, 30)), frames=40)
    done = hide(scene, tmp_path, method="blur:weak", region="frame", also_hide="discs")
    assert not done.bad
    assert min(done.pictures[i][78:83, 58 + round(1.2 * i) : 63 + round(1.2 * i)].mean() for i in range(40)) < 24


def test_also_hide_hides_on_top_of_a_method_that_leaves_frames_out(tmp_path):
    done = hide(film(Head(walk(60, 80, 30)), frames=40), tmp_path, method="stride:2", also_hide="discs", region=None)
    assert len(done.pictures) == 20
    spots = [p[70:90, round(50 + 2.4 * i) : round(70 + 2.4 * i)].max() for i, p in enumerate(done.pictures)]
    assert max(spots) < 24
    assert done.touched(0, 200, 20) == 0


def test_the_whole_frame_is_painted_as_it_was_before_there_were_regions(tmp_path):
    class Whole(FrameMethod):
        def paint(self, source, target, shrink, /):
            load("pixelate:8").paint(source, target, shrink)

    scene = film(Head(still(60, 60)), frames=10, width=121, height=81)
    source = scene.make(tmp_path / "film.mp4")
    vidveil.anonymize(source, method="pixelate:8", region="frame", output=tmp_path / "a.mp4")
    vidveil.anonymize(source, method=Whole("x"), region="frame", output=tmp_path / "b.mp4")
    assert (tmp_path / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()
    assert json.loads((tmp_path / "a.json").read_text())["detection"] is None


@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_image_is_hidden_in_the_right_place_whatever_its_exif_says(tmp_path, orientation):
    y, u, v = film(Head(still(60, 40)), frames=1).upright[0]
    shown = frame_of([y, u, v]).picture.to_ndarray(format="bgr24")
    stored = {
        1: lambda p: p,
        2: lambda p: p[:, ::-1],
        3: lambda p: p[::-1, ::-1],
        4: lambda p: p[::-1],
        5: lambda p: p.swapaxes(0, 1),
        6: lambda p: np.rot90(p, 1),
        7: lambda p: p[::-1, ::-1].swapaxes(0, 1),
        8: lambda p: np.rot90(p, -1),
    }[orientation](shown)
    jpeg = cv2.imencode(".jpg", np.ascontiguousarray(stored), [cv2.IMWRITE_JPEG_QUALITY, 98])[1].tobytes()
    tag = b"\x12\x01\x03\0\x01\0\0\0" + bytes([orientation]) + b"\0\0\0"
    exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0" + tag + b"\0\0\0\0"
    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + jpeg[2:])
    (outcome,) = vidveil.anonymize(path, method="solid", region="discs")
    result = cv2.imread(str(outcome.output), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    assert result.shape == shown.shape
    assert result[30:50, 50:70].max() < 40
    assert np.abs(result[100:150].astype(int) - shown[100:150]).mean() < 6


def test_a_network_that_cannot_be_had_fails_the_job_and_says_why(tmp_path, monkeypatch):
    class Absent(Discs):
        ready = Detector.ready

        def __init__(self):
            Detector.__init__(self, missing)

    def missing():
        raise WeightsError("centerface.onnx is missing")

    monkeypatch.setitem(settings.DETECTORS, "discs", Absent)
    outcome = hide(film(Head(still(60, 60)), frames=10), tmp_path).outcome
    assert outcome.status is Status.FAILED
    assert isinstance(outcome.error, WeightsError)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["film.mp4"]


@pytest.mark.parametrize(
    "bad",
    [
        {"on_lost": "forget"},
        {"shape": "star"},
        {"delay": -1.0},
        {"delay": 11.0},
        {"hide_for": -0.1},
        {"search_every": -0.1},
        {"search_every": 1.1},
        {"tracks_in": Path("a"), "tracks_out": Path("b")},
        {"region": "frame", "leave_visible": (1,)},
        {"region": "frame", "tracks_out": Path("a")},
        {"region": "frame", "tracks_in": Path("a")},
    ],
)
def test_senseless_detection_settings_are_refused(bad):
    with pytest.raises(UsageError):
        DetectionSettings(**bad)


@pytest.mark.parametrize("word", ["cats", "nowhere.onnx"])
def test_what_cannot_be_looked_for_is_said(tmp_path, word):
    path = film(Head(still(60, 60)), frames=2).make(tmp_path / "a.mp4")
    with pytest.raises(UsageError, match=r"faces, people"):
        vidveil.anonymize(path, method="solid", region=word)
    with pytest.raises(UsageError, match="does not work on regions"):
        vidveil.anonymize(path, method="stride:2", region="discs")
    options = Options(detection=DetectionSettings(also_hide="discs", also_hide_with="stride:2"))
    with pytest.raises(UsageError, match="cannot hide a region"):
        vidveil.anonymize(path, method="blur", region="frame", options=options)


def test_where_frames_are_left_out_the_summary_counts_those_that_were_read(tmp_path):
    scene = film(Head(still(100, 80)), frames=10)
    done = hide(scene, tmp_path, method="solid | stride:5")
    assert (done.outcome.frames, done.outcome.found) == (2, "discs found and hidden in 10 of the 10 frames read")
    done = hide(scene, tmp_path, again=True)
    assert (done.outcome.frames, done.outcome.found) == (10, "discs found and hidden in 10 of them")
