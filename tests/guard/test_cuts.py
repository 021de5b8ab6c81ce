"""Where one scene ends and the next begins."""

import numpy as np
import pytest

from tests.guard.stage import Film, Head, Shot, frame_of, still
from vidveil.guard.cuts import difference, scenes, thumbnail
from vidveil.video.frame import Frame


def begins(frames):
    return [frame.index for frame, begins in scenes(frames) if begins]


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


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_first_frame_begins_a_scene(count):
    assert begins(flat([80] * count)) == [0][:count]


def test_a_cut_begins_a_scene():
    assert begins(flat([60] * 5 + [160] * 5 + [60] * 5)) == [0, 5, 10]


def test_a_cut_to_another_place_of_the_same_light_begins_a_scene():
    one, two = (Film(shots=[Shot([Head(still(60, 60))], 5)]), Film(shots=[Shot([], 5)]))
    frames = list(one.frames())
    for frame in two.frames():
        y, u, v = (plane.copy() for plane in frame.planes)
        y[:, :120] //= 2
        frames.append(frame_of([y, u, v], frame.index + 5, frame.seconds + 0.2))
    assert begins(frames) == [0, 5]


def test_a_small_change_is_no_cut():
    assert begins(flat([100] * 5 + [115] * 5)) == [0]


@pytest.mark.parametrize("flash", [235, 16])
def test_a_flash_of_one_frame_is_no_cut(flash):
    assert begins(flat([100] * 5 + [flash] + [100] * 5)) == [0]


@pytest.mark.xfail(strict=True, reason="on the last frame nobody waits whether the old picture comes back")
def test_a_flash_on_the_last_frame_is_no_cut():
    assert begins(flat([100] * 5 + [235])) == [0]


def test_a_fade_and_a_pan_are_no_cuts():
    assert begins(flat(range(20, 230, 15))) == [0]
    rng = np.random.default_rng(2)
    wide = np.repeat(np.repeat(rng.integers(20, 230, (4, 60)), 16, 0), 16, 1).astype(np.uint8)
    chroma = np.full((32, 64), 128, np.uint8)
    views = [np.ascontiguousarray(wide[:, 40 * i : 40 * i + 128]) for i in range(20)]
    pan = [frame_of([view, chroma, chroma], i, i / 25) for i, view in enumerate(views)]
    assert begins(pan)[1:] in ([], [1])


def test_a_cut_hidden_behind_lost_frames_is_found():
    assert begins(flat([60] * 5 + [None, None] + [160] * 5)) == [0, 7]
    assert begins(flat([60] * 5 + [160] + [None, None] + [160] * 5)) == [0, 5]
    assert begins(flat([60] * 5 + [None, None] + [60] * 5)) == [0]


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
