"""Clips to segments and back, at lengths that divide by nothing."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vidveil.core.errors import DataError, UsageError
from vidveil.tasks.anomaly.segments import all_into_segments, into_segments, spans, to_clips, to_frames

LENGTHS = [1, 2, 3, 5, 31, 32, 33, 63, 65, 97, 1001]


@given(clips=st.integers(1, 500), segments=st.integers(1, 64))
def test_spans_are_in_order_and_every_clip_is_in_one(clips, segments):
    first, end = spans(clips, segments).T
    assert first[0] == 0
    assert end[-1] == clips
    assert (np.diff(first) >= 0).all()
    assert (end > first).all()
    seen = [clip for a, b in zip(first, end, strict=True) for clip in range(a, b)]
    if clips >= segments:
        assert seen == list(range(clips))  # each in exactly one
        assert np.ptp(end - first) <= 1
    else:
        assert (end - first == 1).all()
        assert set(seen) == set(range(clips))  # repeated, none left out


@pytest.mark.parametrize("clips", LENGTHS)
def test_a_segment_is_the_mean_of_its_clips(clips):
    own = torch.randn(clips, 3, generator=torch.Generator().manual_seed(clips))
    made = into_segments(own)
    for number in range(32):
        first = number * clips // 32
        end = max((number + 1) * clips // 32, first + 1)
        torch.testing.assert_close(made[number], own[first:end].mean(0))


def test_videos_one_after_the_other_are_cut_each_by_itself():
    clips = torch.randn(7 + 40 + 1, 3)
    made = all_into_segments(clips, [7, 40, 1], 8)
    assert made.shape == (3, 8, 3)
    torch.testing.assert_close(made[1], into_segments(clips[7:47], 8))
    with pytest.raises(UsageError, match="48"):
        all_into_segments(clips, [7, 40], 8)


def test_gradients_reach_every_clip():
    clips = torch.randn(65, 3, requires_grad=True)
    into_segments(clips).pow(2).sum().backward()
    assert (clips.grad.abs().sum(1) > 0).all()


@pytest.mark.parametrize("clips", LENGTHS)
def test_a_frame_has_the_score_of_the_segment_that_its_clip_is_in(clips):
    scores, frames = np.random.default_rng(0).random(32), 16 * clips + 5
    found = to_frames(scores, clips, frames)
    assert found.shape == (frames,)
    ends = spans(clips)
    for frame in {0, 1, frames // 3, frames // 2, frames - 2, frames - 1}:
        clip = frame * clips // frames
        holding = [scores[i] for i, (first, end) in enumerate(ends) if first <= clip < end]
        assert found[frame] == pytest.approx(np.mean(holding))


def test_scores_of_clips_come_back_where_they_were():
    happens = np.zeros(97)
    happens[40:55] = 1
    back = to_clips(into_segments(torch.from_numpy(happens)[:, None])[:, 0].numpy(), 97)
    assert (back[43:52] == 1).all()
    assert not back[:37].any()
    assert not back[58:].any()


def test_nothing_can_be_cut_out_of_nothing():
    with pytest.raises(DataError, match="without clips"):
        spans(0)
    with pytest.raises(DataError, match="without clips"):
        into_segments(torch.zeros(0, 4))
    with pytest.raises(DataError, match="without frames"):
        to_frames(np.zeros(32), 4, 0)
    with pytest.raises(UsageError, match=r"\(n, D\)"):
        into_segments(torch.zeros(4))
    with pytest.raises(UsageError, match="1 segment or more"):
        spans(4, 0)
    with pytest.raises(UsageError, match=r"\(T,\)"):
        to_clips(np.zeros((2, 3)), 4)
