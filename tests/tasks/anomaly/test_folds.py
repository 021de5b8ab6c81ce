"""Folds: each video once, both labels in each, and a camera on one side."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.toy import toy
from vidveil.core.errors import DataError, UsageError
from vidveil.data import load_data
from vidveil.tasks.anomaly.folds import FOLDS, cut_into_folds, folds_of, split_of

REAL = Path(os.environ.get("VIDVEIL_DATA", "nowhere"))


@given(normal=st.integers(5, 60), abnormal=st.integers(5, 60), seed=st.integers(0, 5))
def test_each_fold_has_its_share_of_both_labels(normal, abnormal, seed):
    label = np.repeat([0, 1], [normal, abnormal])
    fold = cut_into_folds(label, seed=seed)
    for kind in (0, 1):
        counts = np.bincount(fold[label == kind], minlength=FOLDS)
        assert np.ptp(counts) <= 1


def test_the_same_seed_gives_the_same_folds_and_another_others():
    label = np.arange(60) % 2
    np.testing.assert_array_equal(cut_into_folds(label, seed=1), cut_into_folds(label, seed=1))
    assert (cut_into_folds(label, seed=1) != cut_into_folds(label, seed=2)).any()


def test_a_group_stays_together_and_folds_stay_even():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), rng.integers(1, 9, 60))
    label = rng.integers(0, 2, len(group))
    fold = cut_into_folds(label, group)
    assert all(len(set(fold[group == one])) == 1 for one in range(60))
    for kind in (0, 1):
        share = np.bincount(fold[label == kind], minlength=FOLDS) / (label == kind).sum()
        assert np.abs(share - 1 / FOLDS).max() < 0.04


def test_each_fold_is_tested_once_and_validated_once():
    fold = cut_into_folds(np.arange(50) % 2)
    splits = np.stack([split_of(fold, number) for number in range(FOLDS)])
    assert ((splits == "test").sum(0) == 1).all()
    assert ((splits == "val").sum(0) == 1).all()
    assert ((splits == "train").sum(0) == 3).all()


def test_a_set_is_cut_by_its_own_groups():
    data = toy(people=(12, 6, 8), clips=4)
    fold = folds_of(data, "right")
    assert all(len(set(fold[data.group == one])) == 1 for one in set(data.group))
    with pytest.raises(UsageError, match="no action 'none'"):
        folds_of(data, "none")


def test_too_few_videos_or_too_large_groups_are_refused():
    with pytest.raises(DataError, match="abnormal videos, there are 4"):
        cut_into_folds(np.repeat([0, 1], [20, 4]))
    with pytest.raises(DataError, match="normal videos, there are 1"):
        cut_into_folds(np.repeat([0, 1], [20, 20]), np.where(np.arange(40) < 20, 0, np.arange(40)))
    with pytest.raises(UsageError, match="groups are"):
        cut_into_folds([0, 1], [1, 2, 3])
    with pytest.raises(UsageError, match="0 or 1"):
        cut_into_folds([0, 2])
    with pytest.raises(UsageError, match="two folds"):
        cut_into_folds([0, 1], count=1)
    with pytest.raises(UsageError, match="three folds"):
        split_of(np.array([0, 1]), 0)


@pytest.mark.skipif(not (REAL / "surveillance_fight").is_dir(), reason="VIDVEIL_DATA has no surveillance_fight")
def test_scenes_of_real_cameras_are_on_one_side():
    data = load_data("surveillance_fight", frames=8, size=32, root=REAL)
    fold = folds_of(data, "none")
    assert all(len(set(fold[data.group == one])) == 1 for one in set(data.group))
    for kind in (0, 1):
        assert np.bincount(fold[data.action == kind]).tolist() == [30] * FOLDS
