"""Numbers that come out of networks, and the boxes they mean."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.detect.stage import Discs, Film, Head, Shot, frame_of, matrix_of, still, stored_as
from vidveil.core.errors import WeightsError
from vidveil.core.rotation import piece, whole
from vidveil.detect.detections import OVERLAP, overlaps, without_doubles
from vidveil.detect.detectors import CenterFace, Yolox, grid, inside, planar


@st.composite
def finds(draw):
    rows = draw(st.lists(st.tuples(*[st.integers(0, 60)] * 2, *[st.integers(1, 40)] * 2, st.floats(0, 1)), max_size=12))
    return np.array([(x, y, x + w, y + h, s) for x, y, w, h, s in rows], np.float32).reshape(-1, 5)


@given(finds())
def test_of_overlapping_boxes_the_best_stays(found):
    kept = without_doubles(found)
    assert (np.diff(kept[:, 4]) <= 0).all()
    for i, one in enumerate(kept):
        assert (overlaps(one, np.delete(kept, i, 0)) <= OVERLAP).all()
    for one in found:
        near = kept[overlaps(one, kept) > OVERLAP]
        assert any((one == k).all() for k in kept) or near[:, 4].max() >= one[4]
    assert (without_doubles(kept) == kept).all()


def test_boxes_overlap_by_their_shared_part():
    one = np.array([0, 0, 10, 10, 1], np.float32)
    many = np.array([[0, 0, 10, 10, 1], [5, 0, 15, 10, 1], [10, 0, 20, 10, 1], [3, 3, 3, 3, 1]], np.float32)
    assert overlaps(one, many) == pytest.approx([1, 1 / 3, 0, 0])


def test_boxes_whose_middle_is_outside_are_let_go_and_others_may_stick_out():
    found = np.array([[-10, 0, 20, 9, 1], [-30, 0, 20, 9, 1], [90, 90, 120, 108, 1], [5, 5, 5.5, 9, 1]], np.float32)
    assert inside(found, 100, 100)[:, 0].tolist() == [-10]


def test_planes_are_padded_with_black_to_whole_cells():
    picture = np.random.default_rng(0).integers(1, 255, (33, 70, 3)).astype(np.uint8)
    blob = planar(picture)
    assert blob.shape == (1, 3, 64, 96)
    assert (blob[0, :, :33, :70].transpose(1, 2, 0) == picture).all()
    assert blob[0, :, 33:].max() == blob[0, :, :, 70:].max() == 0


def test_centre_face_reads_its_maps(monkeypatch):
    heat, size, offset = (np.zeros((1, c, 16, 32), np.float32) for c in (1, 2, 2))
    heat[0, 0, 5, 10] = 0.8
    size[0, :, 5, 10] = np.log([6.0, 4.0])  # 24 high, 16 wide
    offset[0, :, 5, 10] = [0.25, -0.25]
    heat[0, 0, 1, 1] = 0.1

    class Network:
        def __call__(self, blob, names):
            assert blob.shape == (1, 3, 64, 128)
            assert names == ["537", "538", "539"]
            return [heat, size, offset]

    face = CenterFace()
    monkeypatch.setattr(face, "_loaded", Network())
    (found,) = face.look(np.zeros((64, 128, 3), np.uint8)).tolist()
    assert found == pytest.approx([41 - 8, 23 - 12, 41 + 8, 23 + 12, 0.8])
    (twice,) = face.look(np.zeros((128, 256, 3), np.uint8), 0.5).tolist()
    assert twice == pytest.approx([2 * v for v in found[:4]] + [0.8])


def test_yolox_reads_its_grids_and_knows_people_only(monkeypatch):
    corner, stride = grid(64, 96)
    assert len(corner) == 8 * 12 + 4 * 6 + 2 * 3
    assert stride.ravel().tolist() == [8] * 96 + [16] * 24 + [32] * 6
    cells = np.zeros((1, len(corner), 85), np.float32)
    cells[0, 96 + 6 + 2, :6] = [0.5, 0.5, np.log(2), np.log(3), 0.9, 0.8]  # second grid, column 2, row 1
    cells[0, 3, [4, 6]] = 0.9  # a bicycle

    class Network:
        def __call__(self, blob):
            assert blob[0, 2, 0, 0] == 200  # red comes last
            return [cells]

    people = Yolox()
    monkeypatch.setattr(people, "_loaded", Network())
    picture = np.zeros((64, 96, 3), np.uint8)
    picture[..., 0] = 200
    (found,) = people.look(picture).tolist()
    assert found == pytest.approx([40 - 16, 24 - 24, 40 + 16, 24 + 24, 0.72])


@pytest.mark.parametrize(("size", "scale"), [((320, 240), 2), ((640, 480), 2), ((1280, 720), 1), ((3840, 2160), 0.5)])
def test_faces_are_searched_at_full_size_and_small_pictures_enlarged(size, scale):
    assert CenterFace().scale(*size) == scale


def test_a_network_is_loaded_once_and_not_before_it_is_needed():
    made = []
    discs = Discs()
    discs._bring = lambda: made.append(1) or object()
    assert not made
    assert discs.network is discs.network
    assert made == [1]


def portrait():
    data = pytest.importorskip("skimage.data", reason="scikit-image has the portrait: pip install -e '.[dev]'")
    from vidveil.weights import weights

    try:
        weights("centerface")
    except WeightsError as error:
        pytest.skip(f"CenterFace cannot be had here: {error}")
    return data.astronaut()


def planes_of(rgb):
    import cv2

    height, width = rgb.shape[:2]
    block = cv2.cvtColor(np.ascontiguousarray(rgb), cv2.COLOR_RGB2YUV_I420)
    return [block[:height], *block[height:].reshape(2, height // 2, width // 2)]


@pytest.mark.parametrize("name", [None, "90", "mirrored"])
def test_centre_face_finds_a_face_in_a_portrait_whole_in_a_piece_and_turned(name):
    matrix = None if name is None else matrix_of(name)
    frame = frame_of([stored_as(plane, matrix) for plane in planes_of(portrait())], matrix=matrix)
    face = CenterFace()
    picture = whole(frame)
    best = face.look(picture, face.scale(512, 512))[0]
    assert best[4] > 0.5
    assert 170 < (best[0] + best[2]) / 2 < 280
    assert 60 < (best[1] + best[3]) / 2 < 200
    cut, left, top, step = piece(frame, (60, 0, 390, 330), face.glance)
    again = face.look(cut)[0]
    assert again[4] > 0.5
    np.testing.assert_allclose(again[:4] * step + [left, top, left, top], best[:4], atol=20)


def test_the_stand_in_detector_finds_discs_whole_and_in_pieces():
    frame = next(Film(shots=[Shot([Head(still(100, 80))], 1)]).frames())
    (found,) = Discs().look(whole(frame)).tolist()
    assert found[:4] == pytest.approx([86, 66, 115, 95], abs=2)
    cut, left, top, step = piece(frame, (60, 40, 140, 120), 96)
    (again,) = Discs().look(cut).tolist()
    assert [left + again[0] * step, top + again[1] * step] == pytest.approx(found[:2], abs=2)
