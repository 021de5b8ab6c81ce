"""A network's mask over clips of any length and size."""

import math
from itertools import pairwise

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.methods.known_masks import CELL, FRAMES, GRID, SIZE, KeepsBrightest, clip, masker, only
from vidveil.core.errors import UsageError
from vidveil.methods.learned.cells import rectangles
from vidveil.methods.learned.windows import Plan, area_weights, squashed, squashed_clips
from vidveil.methods.masking.masker import Decision

PLANS = st.builds(
    lambda segments, depth, stride: Plan(segments * depth, depth, stride),
    st.integers(1, 8), st.integers(1, 3), st.integers(1, 4),
)  # fmt: skip


@given(PLANS, st.integers(1, 200))
def test_every_frame_is_decided_by_a_window_that_saw_the_frames_around_it(plan, length):
    windows = plan.windows(length)
    for frame in range(length):
        deciding = [window for window in windows if window.layers(frame)]
        assert deciding
        assert any(min(abs(frame - sample) for sample in window.samples) < plan.stride for window in deciding)
    for window in windows:
        assert len(window.samples) == plan.frames
        assert 0 <= min(window.samples) <= max(window.samples) < length
        assert list(window.samples) == sorted(window.samples)
        for begin, end in window.spans:
            assert begin >= 0
            assert end <= length


@given(PLANS, st.integers(1, 200))
def test_a_tubelet_decides_about_every_frame_that_it_showed_unless_two_windows_did_already(plan, length):
    windows = plan.windows(length)
    for number, window in enumerate(windows):
        for position, sample in enumerate(window.samples):
            if position // plan.depth not in window.layers(sample):
                assert window is windows[-1]
                assert any(earlier.layers(sample) for earlier in windows[:number])


@given(st.integers(1, 40))
def test_a_clip_of_the_networks_length_is_one_window_of_all_its_frames(stride):
    assert [window.samples for window in Plan(FRAMES, 2, stride).windows(FRAMES)] == [tuple(range(FRAMES))]


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 97), st.integers(1, 97), st.integers(0, GRID - 1), st.integers(0, GRID - 1))
def test_no_pixel_that_a_hidden_cell_touches_shows(height, width, row, column):
    masked = masker(only((None, row, column))).anonymize(clip(2, height, width))
    top, bottom = row * height / GRID, (row + 1) * height / GRID
    left, right = column * width / GRID, (column + 1) * width / GRID
    y, x = np.mgrid[:height, :width]
    touched = (y + 1 > top) & (y < bottom) & (x + 1 > left) & (x < right)
    assert (masked.mask.numpy() == ~touched).all()
    assert (masked.video.numpy()[:, :, touched] == 0).all()
    assert (masked.video.numpy()[:, :, ~touched] > 0).all()


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 97), st.integers(1, 97), st.integers(0, 2**16 - 1))
def test_the_rectangles_of_a_picture_cover_hidden_cells_and_less_than_three_pixels_more(height, width, bits):
    kept = np.array([bits >> i & 1 for i in range(16)], bool).reshape(4, 4)
    painted = np.zeros((height, width), bool)
    for top, bottom, left, right in rectangles(kept, width, height):
        assert {top % 2, bottom % 2, left % 2, right % 2} == {0}
        painted[top:bottom, left:right] = True
    y, x = np.mgrid[:height, :width]
    for reach, least in (0, True), (3, False):
        touched = np.zeros_like(painted)
        for row, column in np.argwhere(~kept):
            touched |= (
                (y + 1 + reach > row * height / 4) & (y - reach < (row + 1) * height / 4)
                & (x + 1 + reach > column * width / 4) & (x - reach < (column + 1) * width / 4)
            )  # fmt: skip
        assert (painted >= touched).all() if least else (painted <= touched).all()


# ---- clips ----------------------------------------------------------------------------------------------------------


def test_a_clip_of_the_networks_size_is_shown_to_it_untouched_and_in_one_call():
    scorer, raw = KeepsBrightest(), torch.stack([clip(seed=i) for i in range(5)])
    done = masker(scorer).anonymize_batch(raw)
    assert len(scorer.calls) == 1
    assert torch.equal(scorer.calls[0][0], raw)
    assert done.mask.shape == done.scores.shape == (5, FRAMES, SIZE, SIZE)
    assert done.mask[:, ::2, ::CELL, ::CELL].float().mean() == 0.75
    assert torch.equal(done.video, raw * done.mask.unsqueeze(1))


def test_a_batch_gives_what_each_clip_gives_by_itself():
    raw = torch.stack([clip(37, 41, 50, seed=i) for i in range(3)])
    together = masker().anonymize_batch(raw)
    for i in range(3):
        alone = masker().anonymize(raw[i])
        assert torch.equal(alone.mask, together.mask[i])
        torch.testing.assert_close(alone.scores, together.scores[i])
        torch.testing.assert_close(alone.video, together.video[i])


def test_clips_of_bytes_stay_bytes_and_get_the_same_mask():
    raw = (clip(20, 33, 47)[None] * 255).byte()
    done = masker().anonymize_batch(raw)
    assert done.video.dtype == torch.uint8
    assert torch.equal(done.mask, masker().anonymize_batch(raw / 255).mask)
    assert torch.equal(done.video, raw * done.mask.unsqueeze(1))


def test_the_whole_picture_reaches_the_network_to_its_last_row_and_column():
    raw = torch.zeros(3, FRAMES, 2 * SIZE, 4 * SIZE)
    raw[:, :, -2:], raw[..., -4:] = 1.0, 1.0
    scorer = KeepsBrightest()
    masker(scorer).anonymize(raw)
    seen = scorer.calls[0][0]
    assert (seen[..., -1, :] == 1).all()
    assert (seen[..., -1] == 1).all()
    assert (seen[..., :-1, :-1] == 0).all()


def test_squashing_averages_so_that_single_pixels_do_not_flicker_through():
    raw = (torch.arange(8 * SIZE) % 2).float().expand(3, FRAMES, 8 * SIZE, 8 * SIZE)
    scorer = KeepsBrightest()
    masker(scorer).anonymize(raw)
    torch.testing.assert_close(scorer.calls[0][0], torch.full((1, 3, FRAMES, SIZE, SIZE), 0.5))


@pytest.mark.parametrize("shape", [(720, 1280), (576, 720), (359, 641), (20, 300), (31, 31), (480, 16)])
def test_a_plane_of_a_stream_is_squashed_as_a_clip_is(shape):
    plane = np.random.default_rng(2).integers(0, 256, shape).astype(np.uint8)
    plane = cv2.normalize(cv2.GaussianBlur(plane, (0, 0), 2), None, 0, 255, cv2.NORM_MINMAX)  # details of a few pixels
    exact = area_weights(112, shape[0]) @ plane @ area_weights(112, shape[1]).T
    assert np.abs(squashed(plane, 112) - exact).mean() <= 1.5  # a plain interpolation is wrong by more than 2
    torch.testing.assert_close(
        squashed_clips(torch.from_numpy(plane / 255).float().expand(1, 3, 2, *shape), 112)[0, 0, 0],
        torch.from_numpy(exact / 255).float(), atol=1e-4, rtol=0,
    )  # fmt: skip


def test_a_tubelet_hides_the_frames_between_those_that_it_was_shown():
    hidden = ~masker(only((1, 0, 0)), stride=3).anonymize(clip(3 * FRAMES)).mask
    assert hidden[:, 0, 0].nonzero().flatten().tolist() == [6, 7, 8, 9, 10, 11]


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 70), st.integers(1, 3), st.integers(0, 99))
def test_what_any_window_hides_is_hidden(length, stride, seed):
    scorer, raw = KeepsBrightest(), clip(length, 40, 56, seed)
    method = masker(scorer, stride=stride)
    mask = method.anonymize(raw).mask
    again = masker(stride=stride)
    hidden = torch.zeros_like(mask)
    shown_to_it = torch.cat([call[0] for call in scorer.calls])
    for window, seen in zip(method.plan.windows(length), shown_to_it, strict=True):
        kept = again.ask(seen[None]).kept[0]
        for layer, (begin, end) in enumerate(window.spans):
            one = masker(KeepsBrightest(answer=lambda s, k=kept[layer]: Decision(k.expand(s.shape), s)))
            hidden[begin:end] |= ~one.anonymize(raw[:, :1]).mask
    assert torch.equal(~mask, hidden)


def test_a_video_that_stands_still_has_one_mask_from_its_first_frame_to_its_last():
    still_clip = clip(1).expand(3, 90, SIZE, SIZE)

    def answer(scores):  # by place alone, as of a network that sees the same in all segments
        kept = scores > scores.flatten(1).median(1).values[:, None, None, None]
        return Decision(kept, scores)

    mask = masker(KeepsBrightest(answer=answer)).anonymize(still_clip).mask
    assert 0 < mask[0].float().mean() < 1
    assert (mask == mask[0]).all()


def test_knobs_of_a_call_go_before_the_methods_own_and_those_before_the_networks():
    scorer = KeepsBrightest()
    method = masker(scorer, keep=0.5, privacy_weight=2.0)
    method.anonymize(clip())
    method.anonymize(clip(), keep=0.25, privacy_weight=0.0)
    masker(scorer).anonymize(clip())
    assert [call[1:] for call in scorer.calls] == [(0.5, 2.0), (0.25, 0.0), (None, None)]


def test_less_is_kept_with_a_smaller_share():
    shares = [masker().anonymize(clip(40, 50, 60), keep=keep).mask.float().mean() for keep in (0.2, 0.5, 0.8, 1.0)]
    assert all(a < b for a, b in pairwise(shares))
    assert shares[-1] == 1


@pytest.mark.parametrize("knobs", [{"keep": 0}, {"keep": 1.1}, {"keep": math.nan}, {"privacy_weight": -1}])
def test_knobs_that_make_no_sense_are_refused(knobs):
    with pytest.raises(UsageError, match=r"keep is a share|privacy weight"):
        masker(**knobs)
    with pytest.raises(UsageError, match=r"keep is a share|privacy weight"):
        masker().anonymize(clip(), **knobs)


@pytest.mark.parametrize("fill", ["black", "mean", "temporal"])
def test_no_hidden_pixel_reaches_the_output(fill):
    method = masker(only((1, 0, 0), (None, 2, 3)), fill=fill)
    raw = clip(30, 45, 61)
    before = method.anonymize(raw)
    changed = torch.where(before.mask, raw, torch.rand_like(raw))
    torch.testing.assert_close(method.anonymize(changed).video, before.video)


@pytest.mark.parametrize(
    "answer",
    [
        lambda s: Decision(s > 0, s[:, :1]),
        lambda s: Decision(s[:, :, :2] > 0, s),
        lambda s: Decision(s, s),
        lambda s: Decision(s > 0, s * math.nan),
    ],
    ids=["scores of another shape", "mask of another shape", "mask of numbers", "scores that are no numbers"],
)
def test_an_answer_that_is_no_decision_passes_for_none(answer):
    with pytest.raises(ValueError, match="the network"):
        masker(KeepsBrightest(answer=answer)).anonymize(clip())


def test_one_clip_of_bytes_is_taken_as_many_are():
    raw = (clip(20, 33, 47) * 255).byte()
    one = masker().anonymize(raw)
    assert one.video.dtype == torch.uint8
    assert torch.equal(one.video, masker().anonymize_batch(raw[None]).video[0])
    with pytest.raises(ValueError, match="uint8"):
        masker().anonymize(raw[0])
    with pytest.raises(ValueError, match="got ndarray"):
        masker().anonymize(raw.numpy())
