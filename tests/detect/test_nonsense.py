"""Detectors that return nonsense, through the whole pipeline: nobody is ever shown for it."""

import json

import numpy as np
import pytest

from tests.detect.hiding import hide
from tests.detect.onnx_writer import constant, halving
from tests.detect.stage import GREEN, YELLOW, Discs, Head, film, still, turned, walk
from vidveil.app.jobs import Status
from vidveil.core.errors import DetectorError
from vidveil.detect import settings
from vidveil.detect.detections import Cells

NAN, INF = float("nan"), float("inf")
CELLS = 64 + 16 + 4  # of YOLOX on 64 × 64 pixels


def corners(*rows):
    """For the layout `boxes`: left, top, right, bottom, score."""
    boxes = [v for row in rows for v in row[:4]]
    return {"boxes": ((len(rows), 4), boxes), "scores": ((len(rows),), [row[4] for row in rows])}


def centres(x, y, width, height, score):
    """For yolov8: two cells, one of them empty."""
    return {"out": ((1, 5, 2), [x, 0, y, 0, width, 0, height, 0, score, 0])}


def cell(x, y, width, height, sure, score):
    """For YOLOX: all cells alike."""
    return {"out": ((1, CELLS, 6), [x, y, width, height, sure, score] * CELLS)}


HOSTILE = [
    ("boxes", corners((10, 10, 30, 30, NAN)), "scores that are not finite"),
    ("boxes", corners((10, 10, 30, 30, 0.9), (NAN, NAN, NAN, NAN, 0.9)), "boxes that are not finite"),
    ("boxes", corners((0.4, 0.4, 0.6, 0.6, 0.9), (0.1, 0.1, 0.2, 0.2, 0.8)), "shares of the picture"),
    ("boxes", corners(*[(10, 10, 30, 30, 0.9)] * 20_001), "more than 20,000 boxes"),
    ("boxes", {"boxes": ((1, 4), [1, 1, 9, 9])}, "one output"),
    ("yolov8", centres(NAN, 20, 9, 9, 0.9), "boxes that are not finite"),
    ("yolov8", centres(20, 20, -9, 9, 0.9), "end before they begin"),
    ("yolov8", centres(0.5, 0.5, 0.1, 0.1, 0.9), "shares of the picture"),
    ("yolov8", {"out": ((1, 3), [1, 2, 3])}, "output of shape"),
    ("yolov8", {"out": ((1, 4, 2), [1.0] * 8)}, "4 numbers for each cell"),
    ("yolox", cell(0.5, 0.5, 1, 1, NAN, 0.9), "scores that are not finite"),
    ("yolox", cell(0.5, 0.5, 200, 1, 0.9, 0.9), "boxes that are not finite"),
    ("yolox", cell(0.5, 0.5, 20, 1, 0.9, 0.9), "far outside"),
    ("yolox", {"out": ((1, 3, 6), [0.5] * 18)}, "where YOLOX has"),
]


@pytest.mark.parametrize(("layout", "outputs", "reason"), HOSTILE)
def test_a_network_that_returns_nonsense_ends_the_file_and_says_what_to_check(tmp_path, layout, outputs, reason):
    plates = tmp_path / "plates.onnx"
    plates.write_bytes(constant(outputs))
    plates.with_suffix(".json").write_text(json.dumps({"layout": layout, "size": 64, "fixed": True}))
    outcome = hide(film(Head(still(100, 80))), tmp_path, region=str(plates)).outcome
    assert outcome.status is Status.FAILED
    assert isinstance(outcome.error, DetectorError)
    message = str(outcome.error)
    assert message.startswith("5 searches in a row failed: the detector of plates returned ")
    assert reason in message
    assert "; check in plates.json `" in message
    assert "\n" not in message
    assert str(tmp_path) not in message
    assert sorted(p.name for p in tmp_path.iterdir()) == ["film.mp4", "plates.json", "plates.onnx"]


def test_a_network_that_cannot_take_the_picture_ends_the_file(tmp_path):
    plates = tmp_path / "plates.onnx"
    plates.write_bytes(halving(listed=False))
    plates.with_suffix(".json").write_text('{"layout": "yolov8", "size": 64, "fixed": true}')  # and not 32
    outcome = hide(film(frames=20), tmp_path, region=str(plates)).outcome
    assert outcome.status is Status.FAILED
    assert "could not take in a picture of 64 × 64 pixels (InvalidArgument); check in plates.json `size`" in str(
        outcome.error
    )


class Nonsense(Discs):
    """Sees what is yellow as something else."""

    bad = Cells(np.array([np.nan]), np.zeros((1, 4)).__getitem__)

    def run(self, picture):
        try:
            return super().run(picture)
        except RuntimeError:
            return self.bad


ODD = {
    "scores that are not finite": Nonsense.bad,
    "boxes far outside of the picture": Cells(np.array([0.9]), np.array([[0, 0, 9.0, 1e6]]).__getitem__),
}


@pytest.mark.parametrize("reason", ODD)
def test_one_odd_frame_is_black_with_those_around_it_and_the_file_goes_on(tmp_path, monkeypatch, reason):
    monkeypatch.setitem(settings.DETECTORS, "discs", Nonsense)
    monkeypatch.setattr(Nonsense, "bad", ODD[reason])
    done = hide(film(Head(walk(60, 80, 30), turned((0.78, 0.82), hue=YELLOW)), frames=50), tmp_path)
    assert not done.bad
    assert done.outcome.status is Status.DONE
    why = f"could not be searched (the detector returned {reason})"
    assert done.manifest["hidden"] == [{"first": 16, "last": 24, "why": why}]
    assert all(done.black(i) == (16 <= i <= 24) for i in range(50))


@pytest.mark.parametrize("frames", [1, 2, 3])
def test_a_short_file_of_which_no_search_succeeded_fails(tmp_path, monkeypatch, frames):
    monkeypatch.setitem(settings.DETECTORS, "discs", Nonsense)
    outcome = hide(film(Head(still(100, 80), lambda _: YELLOW), frames=frames), tmp_path).outcome
    assert outcome.status is Status.FAILED
    assert f"{min(frames, 2)} of {min(frames, 2)} searches failed: the detector of discs returned" in str(outcome.error)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["film.mp4"]


def test_a_file_of_which_most_searches_failed_fails(tmp_path, monkeypatch):
    monkeypatch.setitem(settings.DETECTORS, "discs", Nonsense)
    odd = [(t - 0.01, t + 0.01) for t in (0.2, 0.4, 0.6, 1.0, 1.2, 1.4)]  # key frames are at 0, 0.2, … 1.8
    outcome = hide(film(Head(still(100, 80), turned(*odd, hue=YELLOW)), frames=46), tmp_path).outcome
    assert outcome.status is Status.FAILED
    assert str(outcome.error).startswith("6 of 10 searches failed: ")


def test_who_was_being_followed_back_when_a_close_look_failed_is_not_shown(tmp_path, monkeypatch):
    """Key frames do not find them before 0.8 s; looking back closely would."""

    class FailsOnce(Discs):
        looks = 0

        def run(self, picture):
            if picture.shape[:2] == (96, 96):
                FailsOnce.looks += 1
                if FailsOnce.looks == 6:
                    return Nonsense.bad
            return super().run(picture)

    monkeypatch.setitem(settings.DETECTORS, "discs", FailsOnce)
    missed = [(t - 0.01, t + 0.01) for t in (0.0, 0.2, 0.4, 0.6)]
    done = hide(film(Head(walk(20, 80, 100), turned(*missed, hue=GREEN)), frames=45), tmp_path)
    assert FailsOnce.looks > 6
    assert not done.bad
    assert not done.black(44)
