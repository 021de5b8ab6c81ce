"""Which frames and which part of the picture a view takes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import interpolate

from tests.data.made import noise, numbered
from vidveil.core.errors import UsageError
from vidveil.data.views import (
    CONTROL,
    DRAWS,
    GAIN,
    MOVE,
    STRETCH,
    TURN,
    VIEW,
    augmented,
    cropped,
    draw,
    even_picks,
    parse_views,
    training_picks,
    turned,
)

MIDDLE = np.full(DRAWS, 0.5)


def tensor(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(noise(shape, seed=seed)[0])


def training_view(video, numbers, *, frames, size, stride=1, augment="crop", **options):
    """(T, H, W, 3), numbers (DRAWS,) → (3, frames, size, size)."""
    clip = video[training_picks(len(video), frames, stride, numbers[0])]
    return augmented(clip[None], numbers[None], size=size, augment=augment, **options)[0]


def even_views(video, spec, *, frames, size):
    """(T, H, W, 3) → (V, 3, frames, size, size), the crops of a clip one after the other."""
    clips, crops = parse_views(spec)
    return cropped(video[even_picks(len(video), frames, 1, clips)][None], size=size, crops=crops)[0]


def resized(video: torch.Tensor, size: int) -> torch.Tensor:
    """By torch's own filter: (3, T, size, size)."""
    pictures = video.permute(0, 3, 1, 2).float() / 255
    return interpolate(pictures, (size, size), mode="bilinear", antialias=True).transpose(0, 1)


@given(st.integers(1, 60), st.integers(1, 16), st.integers(1, 4), st.floats(0, 1, exclude_max=True))
@settings(max_examples=100, deadline=None)
def test_picks_are_in_order_inside_the_video_and_stride_apart_where_it_is_long_enough(length, frames, stride, number):
    for picks in (training_picks(length, frames, stride, number), *even_picks(length, frames, stride, 5)):
        assert picks.shape == (frames,)
        assert picks.min() >= 0
        assert picks.max() < length
        steps = np.diff(picks)
        assert (steps >= 0).all()
        if length >= (frames - 1) * stride + 1:
            assert (steps == stride).all()
        else:
            assert picks[0] == 0  # nothing of a short video is left out but by the stride


def test_every_start_is_drawn_and_all_are_equally_likely():
    starts = [training_picks(12, 8, 1, n)[0] for n in np.linspace(0, 1, 1000, endpoint=False)]
    assert np.bincount(starts).tolist() == [200] * 5


def test_five_clips_reach_from_the_first_frame_to_the_last():
    picks = even_picks(100, 16, 2, 5)
    assert picks[0, 0] == 0
    assert picks[-1, -1] == 99
    assert np.diff(picks[:, 0]).tolist() == [17, 18, 17, 17]
    assert even_picks(10, 4, 1, 1).tolist() == [[3, 4, 5, 6]]


def test_a_short_video_gives_its_last_frame_again():
    assert even_picks(3, 6, 1, 1).tolist() == [[0, 1, 2, 2, 2, 2]]


def test_a_video_of_the_asked_size_is_seen_pixel_for_pixel():
    video = tensor(8, 32, 32)
    views = even_views(video, "1x1", frames=8, size=32)
    assert views.shape == (1, 3, 8, 32, 32)
    assert torch.equal(views[0], video.permute(3, 0, 1, 2).float() / 255)
    assert torch.equal(training_view(video, MIDDLE, frames=8, size=32, augment="none"), views[0])


@pytest.mark.parametrize(("height", "width", "size"), [(40, 56, 24), (40, 56, 40), (24, 20, 33), (31, 31, 16)])
def test_the_middle_square_is_resized_as_torch_would(height, width, size):
    video = tensor(3, height, width)
    side = min(height, width)
    y, x = (height - side) // 2, (width - side) // 2
    view = even_views(video, "1x1", frames=3, size=size)[0]
    torch.testing.assert_close(view, resized(video[:, y : y + side, x : x + side], size), atol=2e-6, rtol=0)


@pytest.mark.parametrize(("height", "width", "size"), [(40, 56, 24), (24, 20, 33)])
def test_squashed_the_whole_picture_is_seen_sides_included(height, width, size):
    video = tensor(3, height, width)
    view = cropped(video[None, None], size=size, crops=1, whole=True)[0, 0]
    torch.testing.assert_close(view, resized(video, size), atol=2e-6, rtol=0)
    still = np.where(np.arange(DRAWS) == 5, 0.9, 0.5)  # no shift, no mirror, no change of light
    torch.testing.assert_close(augmented(video[None], still[None], size=size, augment="squash")[0], view)


def test_three_crops_lie_along_the_long_side():
    for wide in (True, False):
        video = tensor(2, 20, 32) if wide else tensor(2, 32, 20)
        views = even_views(video, "1x3", frames=2, size=20)
        for view, at in zip(views, (0, 6, 12), strict=True):
            part = video[:, :, at : at + 20] if wide else video[:, at : at + 20]
            torch.testing.assert_close(view, part.permute(3, 0, 1, 2).float() / 255, atol=1e-6, rtol=0)


def test_the_views_of_5x3_are_the_crops_of_each_clip_side_by_side():
    video = tensor(30, 20, 32)
    views = even_views(video, "5x3", frames=4, size=20)
    assert views.shape == (15, 3, 4, 20, 20)
    for clip, start in enumerate(even_picks(30, 4, 1, 5)[:, 0]):
        alone = even_views(video[start : start + 4], "1x3", frames=4, size=20)
        torch.testing.assert_close(views[3 * clip : 3 * clip + 3], alone)


@pytest.mark.parametrize("spec", ["5", "0x1", "5x2", "5x5", "x1", "1x1x1", "-1x1"])
def test_views_that_make_no_sense_are_refused_with_an_example(spec):
    with pytest.raises(UsageError, match="such as 5x1 or 5x3"):
        parse_views(spec)


def test_a_random_box_is_what_cropping_resizing_and_mirroring_give():
    video = tensor(2, 40, 50)
    numbers = draw(3, VIEW, 1, [7])[0]
    numbers[0], numbers[5] = 0.0, 0.1  # first frames, mirrored
    view = training_view(video, numbers, frames=2, size=16, scale=(0.25, 0.5))
    matches = []
    for flip in (False, True):
        for w in range(10, 51):
            for h in range(10, 41):
                if not 0.24 <= w * h / 2000 <= 0.51:
                    continue
                x, y = int(numbers[3] * (50 - w + 1)), int(numbers[4] * (40 - h + 1))
                part = video[:1, y : y + h, x : x + w]
                part = part.flip(2) if flip else part
                if (resized(part, 16)[:, 0] - view[:, 0]).abs().max() < 1e-5:
                    matches.append((w, h, flip))
    assert len(matches) == 1
    assert matches[0][2]


def test_random_boxes_cover_the_asked_share_of_the_picture():
    ramp = torch.zeros(1, 64, 64, 3, dtype=torch.uint8)
    ramp[..., 0] = torch.arange(64) * 4
    ramp[..., 1] = (torch.arange(64) * 4)[:, None]
    shares = []
    for numbers in draw(0, VIEW, 0, range(200)):
        red, green, _ = training_view(ramp, numbers, frames=1, size=32, flip=False)
        step = 4 / 255 * 64
        width = (red[0, 0, -1] - red[0, 0, 0]) / step * 32 / 31
        height = (green[0, -1, 0] - green[0, 0, 0]) / step * 32 / 31
        shares.append(float(width * height))
    assert 0.45 < min(shares) < 0.6
    assert 0.85 < max(shares) < 1.05


def test_flat_pictures_stay_flat_and_in_range_under_every_augmentation():
    white = torch.full((4, 20, 28, 3), 255, dtype=torch.uint8)
    for numbers in draw(0, VIEW, 0, range(20)):
        view = training_view(white, numbers, frames=4, size=12, augment="crop")
        torch.testing.assert_close(view, torch.ones(3, 4, 12, 12))
        light = training_view(white, numbers, frames=4, size=12, augment="light")
        assert light.max() <= 1
        assert light.std() < 1e-6


def test_light_shifts_all_frames_alike_by_a_sixteenth_at_most():
    video = torch.zeros(4, 64, 64, 3, dtype=torch.uint8)
    video[:, 32, 20] = 255
    seen = set()
    for numbers in draw(0, VIEW, 0, range(300)):
        view = training_view(video, numbers, frames=4, size=64, augment="light")
        peaks = view[0].flatten(1).argmax(1)
        assert (peaks == peaks[0]).all()
        y, x = divmod(int(peaks[0]), 64)
        assert abs(y - 32) <= 4
        assert min(abs(x - 20), abs(x - 43)) <= 4
        seen.add((y, x))
    assert len(seen) > 100


def test_chance_depends_on_seed_stream_epoch_and_row_and_on_nothing_else():
    rows = [5, 3, 8]
    first = draw(1, VIEW, 2, rows)
    np.random.default_rng().random(10)
    np.testing.assert_array_equal(draw(1, VIEW, 2, rows[::-1]), first[::-1])
    for other in ((2, VIEW, 2, rows), (1, CONTROL, 2, rows), (1, VIEW, 3, rows), (1, VIEW, 2, [6, 4, 9])):
        assert not np.isclose(draw(*other), first).any()


def test_a_training_view_says_which_frames_it_took():
    video = torch.from_numpy(numbered(12, 8, 1)[0])
    view = training_view(video, np.array([0.99, *MIDDLE[1:]]), frames=4, size=8, stride=2, augment="crop")
    assert (view[0, :, 0, 0] * 255).round().int().tolist() == [5, 7, 9, 11]


def test_a_turned_view_is_turned_stretched_mirrored_and_moved_as_the_numbers_say():
    views = torch.zeros(1, 3, 2, 41, 41)
    views[..., 8:13, 18:23] = 0.5  # above the middle, 10 pixels from it
    still = np.full((1, DRAWS), 0.5)

    def middle(column, number, *, mirror=False):
        numbers = still.copy()
        numbers[0, column] = number
        made = turned(views, numbers, np.array([mirror]))
        assert made.shape == views.shape
        assert torch.equal(made[0, 0, 0], made[0, 2, 1])
        seen = made[0, 0, 0]
        rows, columns = torch.meshgrid(torch.arange(41.0), torch.arange(41.0), indexing="ij")
        return [float((seen * at).sum() / seen.sum()) for at in (columns, rows)], float(seen.max())

    assert middle(0, 0.9) == (pytest.approx([20, 10], abs=0.05), pytest.approx(0.5))  # the start in time
    assert middle(4, 0.0)[0] == pytest.approx([20, 10 + MOVE * 20.5], abs=0.1)
    assert middle(2, 1.0)[0] == pytest.approx([20, 20 - 10 / np.exp(STRETCH)], abs=0.1)
    turn = np.deg2rad(TURN)
    assert middle(7, 1.0)[0] == pytest.approx([20 - 10 * np.sin(turn), 20 - 10 * np.cos(turn)], abs=0.1)
    assert middle(7, 1.0, mirror=True)[0] == pytest.approx([20 + 10 * np.sin(turn), 20 - 10 * np.cos(turn)], abs=0.1)
    assert middle(6, 1.0)[1] == pytest.approx(0.5 * np.exp(GAIN), rel=0.01)
