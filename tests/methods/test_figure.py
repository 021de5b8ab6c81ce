"""`figure`: what moves, coarsely, in the middle and at one size, in streams and in clips alike."""

import numpy as np
import pytest
import torch

from tests.methods.test_motion import frame, scene, shown
from vidveil import load
from vidveil.core.errors import UsageError
from vidveil.core.frame import Frame
from vidveil.methods import figure
from vidveil.methods.figure import SPAN, Box, box_of, movement_of, parts

HEIGHT, WIDTH = 96, 128


def room(count=12, *, y=20, x=20, side=8, bright=200, wall=0):
    """A bright square that goes to and fro by its own side, before a wall that stands still."""
    still = np.asarray(scene(wall, low=40, high=120)).repeat(2, 0).repeat(2, 1)
    pictures = [still.copy() for _ in range(count)]
    for i, picture in enumerate(pictures):
        left = x + (i % 4) * side // 4
        picture[y : y + side, left : left + side] = bright
    return pictures


def grey(spec: str, pictures: list[np.ndarray]) -> np.ndarray:
    """(T, H, W)"""
    return np.stack([one.planes[0] for one in shown(spec, pictures, full_range=True)]).astype(float)


def middle(picture: np.ndarray) -> tuple[float, float]:
    return tuple(
        float(np.average((np.arange(side) + 0.5) / side, weights=picture.sum(axis=1 - axis)))
        for axis, side in enumerate(picture.shape)
    )


def test_what_moves_comes_to_the_middle_wherever_it_was():
    for y, x in ((10, 10), (70, 100), (44, 60)):
        whole = grey("figure:12", room(y=y, x=x)).sum(axis=0)
        assert whole.max() > 0
        assert middle(whole) == pytest.approx((0.5, 0.5), abs=0.05)


def test_what_is_far_away_is_as_large_as_what_is_near():
    widths = []
    for side in (16, 32):
        across = grey("figure:16", room(side=side)).sum(axis=(0, 1))
        widths.append(np.count_nonzero(across > 0.1 * across.max()))
    assert widths[1] == pytest.approx(widths[0], rel=0.25)


def test_neither_the_wall_nor_how_bright_somebody_is_shows():
    """But for a little where somebody passes: against another wall they differ by more, or by less."""
    one, other = grey("figure:12", room(wall=1)), grey("figure:12", room(wall=2, bright=240))
    assert np.abs(one - other).mean() < 0.2 * one.mean()


def test_blocks_have_one_brightness_and_there_is_no_colour():
    made = shown("figure:12", room())
    cells = made[5].planes[0].reshape(12, 8, 16, 8)
    assert np.all(cells == cells[:, :1, :, :1])
    assert np.ptp(cells) > 0
    assert all(np.all(plane == 128) for one in made for plane in one.planes[1:])


def test_a_movement_is_still_a_movement():
    """The frame follows slowly: what jumps within it jumps."""
    pictures = room(60, side=12)
    for i, picture in enumerate(pictures):
        picture[:] = room(1)[0]
        top = 20 if i % 20 < 10 else 60
        picture[top : top + 12, 20 + i % 3 * 4 : 32 + i % 3 * 4] = 220
    made = grey("figure:12", pictures)
    high, low = (np.mean([middle(made[i])[0] for i in range(start, start + 6)]) for start in (22, 32))
    assert low - high > 0.25


@pytest.mark.parametrize("spec", ["figure", "figure:5"])
@pytest.mark.parametrize("count", [2, SPAN, 2 * SPAN + 20])
def test_a_clip_shows_what_a_stream_shows(spec, count):
    pictures = room(count)
    clip = torch.from_numpy(np.stack(pictures)).float().div(255).expand(3, -1, -1, -1)
    theirs = load(spec).anonymize(clip).video
    assert theirs.shape == clip.shape
    np.testing.assert_allclose(theirs[1].numpy() * 255, grey(spec, pictures), atol=1.5)
    limited = np.stack([one.planes[0] for one in shown(spec, pictures)]).astype(float)
    np.testing.assert_allclose((limited - 16) * 255 / 219, grey(spec, pictures), atol=1.5)


def test_every_frame_sees_as_far_behind_as_ahead():
    count = 3 * SPAN
    buffer = figure.LookaheadBuffer()
    one_hot = np.eye(count)
    left = []
    for i in range(count):
        left += buffer.take(i, figure.Movement(np.zeros((1, 1), np.float32), (1, 1), one_hot[i]))
        assert len(left) == max(0, i - SPAN + 1)  # none waits longer than it must
    left += buffer.end()
    assert [frame for frame, _, _ in left] == list(range(count))
    windows = [np.flatnonzero(context.sums).tolist() for _, _, context in left]
    assert windows == [list(range(max(0, i - SPAN), min(count, i + SPAN + 1))) for i in range(count)]


def test_a_small_thing_is_not_drawn_larger_than_five_times():
    change = np.zeros((100, 100), np.uint8)
    change[50:52, 50:52] = 90
    assert box_of(movement_of(change).sums).half == pytest.approx(2.2 * 0.045)


def test_a_cut_is_black_and_begins_anew():
    before, after = room(6, y=10, x=10, wall=1), room(6, y=70, x=90, wall=7)
    made = grey("figure:12", before + after)
    assert not made[0].any()
    assert not made[6].any()
    np.testing.assert_array_equal(made[6:], grey("figure:12", after))
    np.testing.assert_array_equal(made[:6], grey("figure:12", before))


def test_frames_come_in_order_and_lost_ones_are_told():
    frames = [frame(i, picture) for i, picture in enumerate(room(9))]
    frames[4] = Frame(index=4, pts=4, duration=1, width=WIDTH, height=HEIGHT, lost="could not be decoded")
    made = list(load("figure").stream(frames))
    assert [one.index for one in made] == list(range(9))
    assert [one.index for one in made if one.hidden] == [4]
    frames[4].lost = None
    assert list(load("figure").stream(frames))[4].hidden == "had no picture"
    assert np.all(made[5].planes[0] == 16)  # nothing to compare with


@pytest.mark.parametrize("broken", ["parts", "movement_of", "box_of"])
def test_a_frame_that_cannot_be_drawn_is_black(monkeypatch, broken):
    monkeypatch.setattr(figure, broken, lambda *_: 1 / 0)
    made = shown("figure", room(4))
    assert [one.hidden for one in made] == [None, *["could not be anonymized (ZeroDivisionError)"] * 3]
    assert all(np.all(one.planes[0] == 16) for one in made)


def test_where_nothing_moves_everything_is_black():
    assert not grey("figure", [room(1)[0]] * 5).any()


def test_the_box_is_around_what_moved_and_large_pictures_are_remembered_small():
    change = np.zeros((720, 1280), np.uint8)
    change[180:540, 640:960] = 50
    seen = movement_of(change)
    assert seen.small.shape == (256, 455)
    box = box_of(seen.sums)
    assert (box.y, box.x, box.level) == pytest.approx((0.5, 0.625, 50), rel=0.02)
    assert box.half == pytest.approx(2.2 * 0.5 / np.sqrt(12), rel=0.02)  # of an even spread over half of the height
    assert box_of(np.zeros(6)) is None


@pytest.mark.parametrize(("middle_", "half"), [(0.5, 0.5), (0.3, 0.2), (0.0, 0.4), (0.9, 0.7)])
def test_parts_average_what_they_cover_and_count_the_outside_as_nothing(middle_, half):
    weights = parts(5, 40, middle_, half)
    inside = min(1, middle_ + half) - max(0, middle_ - half)
    assert weights.sum() == pytest.approx(5 * inside / (2 * half), rel=1e-5)
    assert weights.min() >= 0
    assert weights.sum(axis=1).max() <= 1 + 1e-5


def test_a_box_may_stick_out_of_the_picture(monkeypatch):
    monkeypatch.setattr(figure, "box_of", lambda _: Box(0.0, 0.0, 0.5, 90.0))
    method = load("figure:4")
    seen = movement_of(np.full((40, 40), 90, np.uint8))
    drawn = method._picture(seen, figure.FrameContext(np.ones(6), seen.small))
    assert np.all(drawn[:20] == 0)
    assert np.all(drawn[20:, 20:] == 255)


def test_many_blocks_get_a_caution():
    assert load("figure").caution(720) is None
    assert "N = 10 or less hides it" in load("figure:14").caution(720)


def test_regions_words_and_knobs_that_it_does_not_have_are_refused():
    with pytest.raises(UsageError, match="a whole number from 2 to 64"):
        load("figure:1")
    with pytest.raises(UsageError, match="are settings of learned methods"):
        load("figure").anonymize(torch.zeros(3, 2, 8, 8), keep=0.5)
    for spec in ("figure", "blur:strong | figure"):
        with pytest.raises(UsageError, match="does not work on regions"):
            load(spec, region="faces")
