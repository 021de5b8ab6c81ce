"""A user's own detector: described in a JSON file next to it, and wrong descriptions are refused."""

import json
import os

import numpy as np
import pytest

import vidveil
from tests.detect.onnx_writer import constant, same
from tests.detect.stage import Film, Shot
from tests.media import lumas
from vidveil.core.errors import DetectorError, UsageError
from vidveil.detect.onnx_detector import UserDetector, describe


def own(folder, data, description, name="plates"):
    path = folder / f"{name}.onnx"
    path.write_bytes(data)
    path.with_suffix(".json").write_text(description if isinstance(description, str) else json.dumps(description))
    return path


def test_only_the_layout_has_to_be_said(tmp_path):
    description = describe(own(tmp_path, b"", {"layout": "yolov8"}))
    assert (description.size, description.start, description.carry, description.shape, description.fixed) == (
        640,
        0.3,
        0.15,
        "box",
        False,
    )


def test_what_is_said_is_used(tmp_path):
    description = {"layout": "boxes", "start": 0.6, "carry": 0.4, "pad": 0.5, "shape": "ellipse", "size": 320}
    detector = UserDetector(own(tmp_path, same(), description))
    assert (detector.kind, detector.start, detector.carry) == ("plates", 0.6, 0.4)
    assert (detector.pad, detector.ellipse) == (0.5, True)
    assert detector.scale(640, 480) == 0.5
    assert detector.weights.startswith("plates.onnx sha256:")
    assert str(tmp_path) not in detector.weights


@pytest.mark.parametrize(
    "description",
    [
        "nonsense",
        "[]",
        "{}",
        "7",
        '"yolov8"',
        {"layout": "yolov9"},
        {"layout": "boxes", "sizes": 640},
        {"layout": "boxes", "size": 100},
        {"layout": "boxes", "size": 0},
        {"layout": "boxes", "size": "640"},
        {"layout": "boxes", "colours": "yuv"},
        {"layout": "boxes", "shape": "star"},
        {"layout": "boxes", "start": 0.1, "carry": 0.2},
        {"layout": "boxes", "start": 1.0},
        {"layout": "boxes", "pad": -1},
        {"layout": "boxes", "classes": 3},
        {"layout": "boxes", "classes": ["cat"]},
        {"layout": "boxes", "classes": []},
        {"layout": "boxes", "classes": [-1]},
        {"layout": "boxes", "size": 640.0},
        {"layout": "boxes", "scale": 0},
        {"layout": "boxes", "fixed": "no"},
    ],
)
def test_a_wrong_description_is_refused_by_the_name_of_its_file(tmp_path, description):
    with pytest.raises(UsageError, match=r"plates.json"):
        describe(own(tmp_path, b"", description))


def test_missing_files_are_said(tmp_path):
    with pytest.raises(UsageError, match=r"plates.onnx is not there"):
        UserDetector(tmp_path / "plates.onnx")
    (tmp_path / "plates.onnx").write_bytes(b"")
    with pytest.raises(UsageError, match=r"plates.json is not there"):
        UserDetector(tmp_path / "plates.onnx")


@pytest.mark.timeout(20)
def test_a_network_that_is_a_pipe_or_too_large_is_refused_before_it_is_read(tmp_path):
    path = own(tmp_path, b"", {"layout": "boxes"})
    with path.open("wb") as file:
        file.truncate(6 << 30)
    with pytest.raises(UsageError, match=r"plates.onnx has 6,442,450,944 bytes, more than the 1,073,741,824 that are"):
        UserDetector(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UsageError, match=r"plates.onnx .*it is not a regular file"):
        UserDetector(path)


class Fake:
    """A network that notes its input and returns these outputs."""

    def __init__(self, *outputs, names=("out",)):
        self.result, self.outputs, self.seen = list(outputs), list(names), None

    def __call__(self, blob):
        self.seen = blob
        return self.result


def look(folder, description, network, picture=None):
    detector = UserDetector(own(folder, b"", description))
    detector._loaded = network
    return detector.look(np.zeros((64, 64, 3), np.uint8) if picture is None else picture).tolist()


def test_yolov8_has_centres_and_sizes_for_each_cell(tmp_path):
    cells = np.zeros((1, 4 + 3, 84), np.float32)
    cells[0, :, 7] = [30, 20, 16, 8, 0.1, 0.7, 0.2]
    cells[0, :, 50] = [50, 50, 8, 8, 0.9, 0.0, 0.0]
    found = look(tmp_path, {"layout": "yolov8"}, Fake(cells))
    assert sorted(f[4] for f in found) == pytest.approx([0.7, 0.9])
    (one,) = look(tmp_path, {"layout": "yolov8", "classes": [1]}, Fake(cells))
    assert one == pytest.approx([22, 16, 38, 24, 0.7])


def test_yolox_is_laid_on_its_grids(tmp_path):
    cells = np.zeros((1, 64 + 16 + 4, 5 + 2), np.float32)
    cells[0, 64 + 5] = [0.5, 0.5, np.log(2), 0, 0.8, 0.5, 0.9]  # second grid, row 1, column 1
    (one,) = look(tmp_path, {"layout": "yolox"}, Fake(cells))
    assert one == pytest.approx([24 - 16, 24 - 8, 24 + 16, 24 + 8, 0.72])


@pytest.mark.parametrize("names", [("boxes", "scores", "labels"), ("x", "y", "z")])
def test_boxes_are_taken_by_name_or_by_order(tmp_path, names):
    boxes = np.array([[[1, 2, 30, 40], [5, 5, 20, 10]]], np.float32)
    network = Fake(boxes, np.array([[0.9, 0.8]]), np.array([[2, 5]]), names=names)
    (one,) = look(tmp_path, {"layout": "boxes", "classes": [5]}, network)
    assert one == pytest.approx([5, 5, 20, 10, 0.8])


def test_boxes_with_names_come_in_any_order(tmp_path):
    network = Fake(np.array([0.9]), np.array([[1, 2, 30, 40]], np.float32), names=("scores", "boxes"))
    (one,) = look(tmp_path, {"layout": "boxes"}, network)
    assert one == pytest.approx([1, 2, 30, 40, 0.9])


BOXES = np.array([[1, 2, 30, 40]], np.float32)


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        ([BOXES, np.array(["sure"])], "returned a <U4 where numbers are expected"),
        ([BOXES, [0.9]], "returned a list where numbers are expected"),
        ([BOXES, {"plate": 0.9}], "returned a dict where numbers are expected"),
        ([BOXES, np.array([True])], "returned a bool where numbers are expected"),
        ([BOXES, np.array([0.9, 0.8])], r"boxes of shape \(1, 4\) and scores of shape \(2,\)"),
        ([BOXES.T, np.array([0.9])], r"boxes of shape \(4, 1\) and scores of shape \(1,\)"),
        ([BOXES, np.array([0.9]), np.array([np.nan])], "labels that are not finite"),
        ([BOXES, np.array([0.9]), np.array([5, 5])], "boxes of shape"),
        ([BOXES], "one output where boxes and scores are expected"),
    ],
)
def test_outputs_that_cannot_be_read_are_an_error_that_says_so(tmp_path, outputs, reason):
    with pytest.raises(DetectorError, match=reason):
        look(tmp_path, {"layout": "boxes", "classes": [5]}, Fake(*outputs, names=("a", "b", "c")[: len(outputs)]))


def test_a_class_that_the_network_does_not_have_is_an_error(tmp_path):
    with pytest.raises(DetectorError, match="scores of 3 classes"):
        look(tmp_path, {"layout": "yolov8", "classes": [3]}, Fake(np.zeros((1, 7, 84), np.float32)))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_numbers_may_have_any_precision(tmp_path, kind):
    cells = np.zeros((1, 5, 84), kind)
    cells[0, :, 7] = [30, 20, 16, 8, 0.75]
    assert look(tmp_path, {"layout": "yolov8"}, Fake(cells)) == [[22, 16, 38, 24, 0.75]]


@pytest.mark.parametrize(
    ("description", "values"),
    [({}, [200, 100, 50]), ({"colours": "bgr"}, [50, 100, 200]), ({"scale": 0.01}, [2, 1, 0.5])],
)
def test_the_network_gets_its_colours_and_scale(tmp_path, description, values):
    network = Fake(np.empty((0, 4)), np.empty(0), names=("boxes", "scores"))
    picture = np.full((64, 64, 3), (200, 100, 50), np.uint8)
    assert look(tmp_path, {"layout": "boxes"} | description, network, picture) == []
    assert network.seen[0, :, 3, 3].tolist() == pytest.approx(values)


def test_a_network_of_fixed_size_gets_no_other(tmp_path):
    network = Fake(np.empty((0, 4)), np.empty(0), names=("boxes", "scores"))
    look(tmp_path, {"layout": "boxes", "size": 128, "fixed": True}, network, np.ones((96, 50, 3), np.uint8))
    assert network.seen.shape == (1, 3, 128, 128)
    assert UserDetector(tmp_path / "plates.onnx").glance == 128


def test_a_detector_of_ones_own_hides_what_it_finds(tmp_path):
    data = constant({"boxes": ((1, 4), (20.0, 24.0, 60.0, 44.0)), "scores": ((1,), (0.9,))})
    plates = own(tmp_path, data, {"layout": "boxes", "size": 320, "pad": 0.0})
    source = Film(shots=[Shot([], 8)], width=320, height=160).make(tmp_path / "a.mp4")
    (outcome,) = vidveil.anonymize(source, method="solid", region=str(plates))
    assert outcome.error is None
    picture = lumas(outcome.output)[4]
    assert picture[26:42, 22:58].max() < 24
    assert picture[60:, :].min() > 50
    manifest = json.loads(outcome.output.with_suffix(".json").read_text())
    assert manifest["detection"]["looked_for"] == ["plates"]
    assert str(tmp_path) not in json.dumps(manifest)
