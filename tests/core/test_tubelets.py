"""The grid of tubelets, and what shows of a clip without the hidden ones."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from vidveil.core.errors import UsageError
from vidveil.core.tubelets import FILLS, grid, kept_count
from vidveil.models.layers.tubelets import as_mask, cut, over_pixels, paint

TUBELET = (2, 4, 4)


@pytest.fixture
def clip() -> torch.Tensor:
    return torch.rand(2, 3, 8, 8, 12, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def kept() -> torch.Tensor:
    """(B, T, H, W), tubelet by tubelet; the first place of the first clip is never shown."""
    cells = torch.rand(2, 4, 2, 3, generator=torch.Generator().manual_seed(2)) < 0.5
    cells[0, :, 0, 0] = False
    cells[1, :, 0, 0] = torch.tensor([True, False, False, True])
    return over_pixels(cells, TUBELET)


def test_a_grid_has_whole_tubelets_only():
    assert grid(16, 224, (2, 16, 16)) == (8, 14, 14)
    with pytest.raises(UsageError, match="no whole number of tubelets"):
        grid(16, 100, (2, 16, 16))


def test_three_selections_of_nine_tenths_leave_the_papers_numbers():
    live, left = 1568, []
    for _ in range(3):
        live = kept_count(live, 0.9)
        left.append(live)
    assert left == [1412, 1271, 1144]


@given(tenths=st.integers(1, 10), live=st.integers(1, 400))
def test_the_ceiling_of_the_share_stays(tenths, live):
    assert kept_count(live, tenths / 10) == -(
        -tenths * live // 10
    )  # in whole numbers, where 0.1 · 3 is not 0.30000000000000004


@given(keep=st.floats(0.001, 1), live=st.integers(1, 2000))
def test_never_nothing_never_more_than_all_and_monotone(keep, live):
    count = kept_count(live, keep)
    assert 1 <= count <= live
    assert count <= kept_count(live, min(1.0, keep * 1.5))
    assert abs(count - math.ceil(keep * live)) <= 1


@pytest.mark.parametrize("keep", [0.0, -0.1, 1.01, math.nan])
def test_no_share_is_refused(keep):
    with pytest.raises(UsageError, match="share"):
        kept_count(10, keep)


def test_numbers_become_a_mask():
    assert as_mask(torch.tensor([[2, 0], [1, 2]]), 4).tolist() == [[1, 0, 1, 0], [0, 1, 1, 0]]


def test_a_tubelets_value_covers_its_pixels_and_no_other():
    values = torch.zeros(1, 4, 2, 3)
    values[0, 1, 1, 2] = 1
    pixels = over_pixels(values, TUBELET)
    assert pixels.shape == (1, 8, 8, 12)
    assert pixels[0, 2:4, 4:8, 8:12].all()
    assert pixels.sum() == 2 * 4 * 4


def test_a_row_of_cut_pixels_is_what_a_convolution_sees(clip):
    kernel = torch.randn(5, 3, *TUBELET, generator=torch.Generator().manual_seed(3))
    convolved = F.conv3d(clip, kernel, stride=TUBELET)  # (B, 5, L, h, w)
    torch.testing.assert_close(
        cut(clip, TUBELET) @ kernel.flatten(1).T, convolved.flatten(3).permute(0, 2, 3, 1), atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("fill", FILLS)
def test_what_is_kept_is_untouched_and_no_hidden_pixel_reaches_the_output(fill, clip, kept):
    shown = kept.unsqueeze(1).expand_as(clip)
    out = paint(clip, kept, fill)
    assert torch.equal(out[shown], clip[shown])
    changed = torch.where(shown, clip, torch.rand_like(clip))
    assert torch.equal(paint(changed, kept, fill), out)


def test_black_is_black(clip, kept):
    assert paint(clip, kept)[(~kept).unsqueeze(1).expand_as(clip)].eq(0).all()


def test_mean_is_the_mean_of_what_shows_clip_by_clip(clip, kept):
    out = paint(clip, kept, "mean")
    for number in range(2):
        colour = clip[number][:, kept[number]].mean(1)  # (3,)
        painted = out[number][:, ~kept[number]]
        torch.testing.assert_close(painted, colour[:, None].expand_as(painted))


def test_temporal_takes_the_nearest_time_the_earlier_of_two_and_black_where_there_is_none(clip, kept):
    out = paint(clip, kept, "temporal")
    assert out[0, :, :, :4, :4].eq(0).all()
    # Shown at frames 0, 1 and 6, 7 of 8: 2 and 3 come from 1, 4 and 5 from 6.
    for frame, source in ((2, 1), (3, 1), (4, 6), (5, 6)):
        assert torch.equal(out[1, :, frame, :4, :4], clip[1, :, source, :4, :4])


@pytest.mark.parametrize("fill", FILLS)
def test_nothing_kept_shows_nothing(fill, clip):
    assert paint(clip, torch.zeros(2, 8, 8, 12, dtype=torch.bool), fill).eq(0).all()


def test_a_soft_mask_passes_gradients(clip, kept):
    mask = kept.float().requires_grad_()
    paint(clip, mask).sum().backward()
    torch.testing.assert_close(mask.grad, clip.sum(1))


def test_an_unknown_fill_is_refused(clip, kept):
    with pytest.raises(UsageError, match="black, mean or temporal"):
        paint(clip, kept, "pink")
