"""Where one scene ends and the next begins."""

import numpy as np
import pytest

from tests.detect.stage import Film, Head, Shot, frame_of, still
from vidveil.core.frame import Frame
from vidveil.detect.cuts import FLASH, difference, scenes, thumbnail


def begins(frames):
    return [frame.index for frame, change in scenes(frames) if change.cut]


def doubts(frames):
    return [frame.index for frame, change in scenes(frames) if change.doubtful and not change.cut]


def flat(levels, size=(64, 48)):
    width, height = size
    for i, level in enumerate(levels):
        if level is None:
            yield Frame(index=i, pts=i, duration=1, width=width, height=height, lost="gone", seconds=i / 25)
        else:
            chroma = np.full((height // 2, width // 2), 128, np.uint8)
            yield frame_of([np.full((height, width), level, np.uint8), chroma, chroma], i, i / 25)


def test_frames_come_out_as_they_went_in():
    frames = list(flat([60] * 5 + [160] * 5))
    assert [frame for frame, _ in scenes(frames)] == frames


@pytest.mark.parametrize(
    ("levels", "scenes_begin"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([80], [0], id="one frame"),
        pytest.param([80] * 2, [0], id="no change"),
        pytest.param([60] * 15 + [160] * 15 + [60] * 15, [0, 15, 30], id="cuts"),
        pytest.param([60] * 10 + [130] * 8 + [210] * 15, [0, 10, 18], id="a cut soon after a cut"),
        pytest.param([60] * 10 + [200] * 8 + [120] * 15, [0, 10, 18], id="a cut soon after, halfway back"),
        pytest.param([60] * 10 + [230] + [60] * 2 + [150] * 15, [0, 13], id="a cut right after a flash"),
        pytest.param([100] * 5 + [200, 100, 100] * 10 + [100] * 15, [0], id="a strobe"),
        pytest.param([100] * 5 + [200, 200, 200, 100, 100, 100] * 5 + [100] * 15, [0], id="a slow strobe"),
        pytest.param([100] * 5 + [235], [0], id="a flash on the last frame"),
        pytest.param(range(20, 230, 15), [0], id="a fade"),
        pytest.param([60] * 5 + [None, None] + [160] * 5, [0, 7], id="a cut behind lost frames"),
        pytest.param([60] * 5 + [160] + [None, None] + [160] * 5, [0, 5], id="a cut before lost frames"),
        pytest.param([60] * 5 + [None, None] + [60] * 5, [0], id="lost frames"),
    ],
)
def test_a_scene_begins_where_a_large_change_stays(levels, scenes_begin):
    assert begins(flat(levels)) == scenes_begin


def test_a_cut_to_another_place_of_the_same_light_begins_a_scene():
    one, two = (Film(shots=[Shot([Head(still(60, 60))], 5)]), Film(shots=[Shot([], 5)]))
    frames = list(one.frames())
    for frame in two.frames():
        y, u, v = (plane.copy() for plane in frame.planes)
        y[:, :120] //= 2
        frames.append(frame_of([y, u, v], frame.index + 5, frame.seconds + 0.2))
    assert begins(frames) == [0, 5]


def test_a_small_change_is_no_cut_but_a_doubt():
    assert begins(flat([100] * 5 + [115] * 5)) == [0]
    assert doubts(flat([100] * 5 + [115] * 5)) == [5]
    assert doubts(flat([100] * 5 + [104] * 5)) == []


@pytest.mark.parametrize("flash", [235, 16])
@pytest.mark.parametrize("frames", [1, 3])
def test_a_flash_is_no_cut_and_no_doubt(flash, frames):
    levels = [100] * 5 + [flash] * frames + [100] * 15
    assert begins(flat(levels)) == [0]
    assert doubts(flat(levels)) == []


def test_no_frame_waits_longer_than_a_flash_and_one_frame():
    taken, late = [], []

    def source():
        for frame in flat([100] * 20 + [200] * 20 + [60, 220] * 10):
            taken.append(frame.seconds)
            yield frame

    for frame, _ in scenes(source()):
        late.append(taken[-1] - frame.seconds)
    assert max(late[:20]) <= 0.04 + 1e-6
    assert max(late) <= FLASH + 0.04 + 1e-6


def test_a_pan_is_no_cut():
    rng = np.random.default_rng(2)
    wide = np.repeat(np.repeat(rng.integers(20, 230, (4, 60)), 16, 0), 16, 1).astype(np.uint8)
    chroma = np.full((32, 64), 128, np.uint8)
    views = [np.ascontiguousarray(wide[:, 40 * i : 40 * i + 128]) for i in range(20)]
    pan = [frame_of([view, chroma, chroma], i, i / 25) for i, view in enumerate(views)]
    assert begins(pan)[1:] in ([], [1])


def test_whatever_a_live_source_shows_after_a_gap_is_another_scene():
    frames = list(flat([100] * 6))
    frames[3].after_gap = True
    assert begins(frames) == [0, 3]


@pytest.mark.parametrize("size", [(2, 2), (31, 17), (640, 480), (20, 2000)])
def test_thumbnails_keep_the_brightness_of_any_size(size):
    width, height = size
    chroma = np.full(((height + 1) // 2, (width + 1) // 2), 128, np.uint8)
    small = thumbnail(frame_of([np.full((height, width), 77, np.uint8), chroma, chroma]))
    assert small.shape == (32, 32)
    assert (small == 77).all()
    assert difference(small, small) == 0
    assert difference(small, None) == 0
