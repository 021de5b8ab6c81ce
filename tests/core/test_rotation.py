"""Pictures upright, whole and in pieces, and boxes between the stored and the upright picture."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.detect.stage import TURNS, frame_of, matrix_of, stored_as
from vidveil.core.rotation import Rotation, piece, quarter_turns, turn, turn_of, whole

turns = st.builds(Rotation, st.integers(1, 40), st.integers(1, 40), st.booleans(), st.integers(0, 3))
NAMES = [None, *TURNS]
TINY = 1e-6


def noise(width, height, seed=1):
    """Planes of smooth noise: no colour conversion of a part differs from that of the whole."""
    rng = np.random.default_rng(seed)
    chroma = ((height + 1) // 2, (width + 1) // 2)
    return [rng.integers(16, 235, s).astype(np.uint8) for s in ((height, width), chroma, chroma)]


def matrix(name):
    return None if name is None else matrix_of(name)


@settings(deadline=None)
@given(turns, st.data())
def test_a_box_marks_the_same_pixels_on_the_stored_and_on_the_upright_picture(placed, data):
    width, height = placed.size
    x0, y0 = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    x1, y1 = data.draw(st.integers(x0 + 1, width)), data.draw(st.integers(y0 + 1, height))
    picture = np.zeros((placed.height, placed.width, 3), np.uint8)
    a, b, c, d = (int(v) for v in placed.stored((x0, y0, x1, y1)))
    picture[b:d, a:c] = 1
    upright = placed.upright(picture)
    assert upright.shape[:2] == (height, width)
    wanted = np.zeros_like(upright)
    wanted[y0:y1, x0:x1] = 1
    assert (upright == wanted).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_display_matrix_brings_a_stored_picture_upright(name):
    upright = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    stored = upright if name is None else np.ascontiguousarray(TURNS[name][1](upright))
    assert (turn(stored.shape[1], stored.shape[0], matrix(name)).upright(stored) == upright).all()


@pytest.mark.parametrize(("degrees", "quarters"), [(0, 0), (44, 0), (46, 1), (91, 1), (180, 2), (-90, 3), (-100, 3)])
def test_crooked_matrices_turn_to_the_nearest_quarter(degrees, quarters):
    c, s = (round(65536 * f(np.radians(degrees))) for f in (np.cos, np.sin))
    assert quarter_turns((c, s, 0, -s, c, 0, 0, 0, 1 << 30)) == (False, quarters)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [(40, 30), (41, 31), (40, 31)])
def test_the_whole_picture_is_upright_and_in_rgb(name, size):
    upright = noise(*size)
    y, u, v = (stored_as(plane, matrix(name)) for plane in upright)
    u[:], v[:] = 128, 200  # reddish all over
    seen = whole(frame_of([y, u, v], matrix=matrix(name)))
    assert seen.shape == (size[1], size[0], 3)
    grey = np.clip((upright[0].astype(float) - 16) * 255 / 219, 0, 255)
    assert np.abs(seen[..., 2].astype(float) - grey).max() < 3
    assert seen[..., 0].mean() > seen[..., 1].mean() + 50


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None)
@given(x=st.floats(-60, 120), y=st.floats(-60, 90), side=st.floats(2, 150))
def test_a_piece_is_cut_from_the_upright_picture(name, x, y, side):
    frame = frame_of([stored_as(plane, matrix(name)) for plane in noise(90, 61)], matrix=matrix(name))
    upright = whole(frame)
    probe, *_ = piece(frame, (x, y, x + side, y + side), 8)
    assert probe.shape == (8, 8, 3)
    _, left, top, step = piece(frame, (x, y, x + side, y + side), 8)
    size = round(step * 8)
    cut, left_again, top_again, one = piece(frame, (x, y, x + side, y + side), size)
    assert (left_again, top_again, one) == (left, top, 1)
    assert left <= x + 0.5 + TINY
    assert top <= y + 0.5 + TINY
    assert left + size >= x + side - 0.5 - TINY
    assert top + size >= y + side - 0.5 - TINY
    assert size <= side + 5 + TINY
    framed = np.zeros((61 + 2 * 400, 90 + 2 * 400, 3), np.uint8)
    framed[400:461, 400:490] = upright
    x0, y0 = int(left) + 400, int(top) + 400
    assert np.abs(cut.astype(int) - framed[y0 : y0 + size, x0 : x0 + size]).max() <= 1


def test_a_frame_is_turned_by_its_own_matrix():
    frame = frame_of(noise(40, 30), matrix=matrix_of("90"))
    assert turn_of(frame).size == (30, 40)
