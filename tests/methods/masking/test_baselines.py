"""Which tubelets each control keeps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidveil.core.errors import UsageError
from vidveil.core.tubelets import kept_count
from vidveil.methods.masking.baselines import CONTROLS, Grid, pruning_control, select

GRID = Grid(2, 8)
SHAPE = (8, 32, 32)


def still():
    return np.full((*SHAPE, 3), 100, np.uint8)


def kept(name, frames, keep, row=0, truth=None):
    return pruning_control(name, keep).choose(frames, row, truth)[0]


def test_moving_keeps_what_moves():
    frames = still()
    frames[4, 8:16, 16:24] = 200  # a flash in one frame of segment 2
    chosen = np.argwhere(kept("moving", frames, 1 / 64))
    assert chosen.tolist() == [[2, 1, 2]]


def test_moving_sees_a_change_between_two_segments():
    frames = still()
    frames[4:, 8:16, 16:24] = 200  # between the last frame of segment 1 and the first of segment 2
    assert sorted(np.argwhere(kept("moving", frames, 2 / 64)).tolist()) == [[1, 1, 2], [2, 1, 2]]


def test_of_still_tubelets_the_first_are_kept():
    assert np.flatnonzero(kept("moving", still(), 3 / 64)).tolist() == [0, 1, 2]


def test_a_single_frame_does_not_move():
    assert kept("moving", still()[:1], 0.5).sum() == 8


def test_the_centre_is_the_same_in_every_segment():
    chosen = kept("centre", still(), 4 / 16)
    assert (chosen == chosen[0]).all()
    assert np.argwhere(chosen[0]).tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]


@given(keep=st.floats(0.01, 1.0))
def test_the_centre_hardly_changes_over_time_at_any_share(keep):
    chosen = kept("centre", still(), keep)
    assert (chosen.any(0) & ~chosen.all(0)).sum() <= 1


def test_the_oracle_hides_identity_first_and_the_action_last():
    truth = np.zeros(SHAPE, np.uint8)
    truth[:, :8, :8] = 1  # 4 tubelets of identity
    truth[:, 24:, 24:] = 3  # and 4 of both, which the action needs
    chosen = kept("oracle", still(), 60 / 64, truth=truth)
    assert not chosen[:, 0, 0].any()
    assert chosen.sum() == 60
    chosen = kept("oracle", still(), 4 / 64, truth=truth)
    assert chosen[:, 3, 3].all()
    assert chosen.sum() == 4


def test_the_oracle_weighs_pixels_against_each_other():
    truth = np.zeros(SHAPE, np.uint8)
    truth[:, :8, :5], truth[:, :8, 5:8] = 1, 2  # 5 columns of identity, 3 of the action: worse than background
    truth[:, :8, 8:11], truth[:, :8, 11:16] = 1, 2  # the other way round: better
    scores = CONTROLS["oracle"](still(), 0, truth, GRID)
    assert scores[0, 0, 0] < scores[0, 3, 3] < scores[0, 0, 1]


def test_an_oracle_needs_truth():
    with pytest.raises(UsageError, match="synthetic people"):
        kept("oracle", still(), 0.5)


def test_random_choices_differ_from_clip_to_clip_and_stay_the_same_for_one():
    first, again, other = (kept("random", still(), 0.5, row) for row in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()


def test_what_is_kept_at_random_at_a_low_share_is_kept_at_a_higher_one():
    assert not (kept("random", still(), 0.2) & ~kept("random", still(), 0.5)).any()


@given(keep=st.floats(0.001, 1.0), name=st.sampled_from(["random", "moving", "centre"]))
def test_keeps_the_ceiling_of_the_share(keep, name):
    assert kept(name, still(), keep).sum() == kept_count(64, keep)


def test_of_equal_scores_the_first_stay():
    assert select(np.array([[[0.0, 1.0, 1.0, 0.0]]]), 0.75).ravel().tolist() == [True, True, True, False]


@given(steps=st.integers(1, 5), height=st.integers(1, 40), width=st.integers(1, 40), side=st.sampled_from([8, 16]))
def test_sums_and_pixels_fit_clips_that_tubelets_do_not_divide(steps, height, width, side):
    grid = Grid(2, side)
    counts = grid.sums(np.ones((steps, height, width)))
    assert counts.shape == grid.shape(steps, height, width)
    assert counts.sum() == steps * height * width
    numbers = np.arange(counts.size).reshape(counts.shape)
    laid = grid.pixels(numbers, (steps, height, width))
    assert laid.shape == (steps, height, width)
    np.testing.assert_array_equal(np.bincount(laid.ravel(), minlength=counts.size), counts.ravel())


def test_large_pictures_have_large_tubelets_unless_told():
    assert pruning_control("random", 0.5).grid(64, 64).side == 8
    assert pruning_control("random", 0.5).grid(112, 112).side == 16
    assert pruning_control("random:8", 0.5).grid(112, 112).side == 8
    assert pruning_control("blur", None) is None


@pytest.mark.parametrize("name", CONTROLS)
def test_without_a_share_a_control_would_keep_everything_and_is_refused(name):
    with pytest.raises(UsageError, match=rf"{name} needs a share of tubelets to keep: keep=\[0.5\]"):
        pruning_control(name, None)
