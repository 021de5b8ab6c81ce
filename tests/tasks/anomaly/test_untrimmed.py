"""The easy set: made of what it is given, the same each time, and of no feature in two splits."""

import numpy as np
import pytest

from vidveil.core.errors import DataError, UsageError
from vidveil.data.clips import SPLITS
from vidveil.tasks.anomaly.untrimmed import CLIPS, FRAMES, LASTS, kinds_of_noise, untrimmed_set


@pytest.fixture(scope="module")
def parts():
    return kinds_of_noise(width=5, each=40, seed=1)


@pytest.fixture(scope="module")
def data(parts):
    return untrimmed_set(*parts, videos=60, seed=2)


def happening(data, row):
    """(n,) by the clip."""
    return data.frames[row].reshape(-1, FRAMES)[:, 0].astype(bool)


def test_the_same_seed_makes_the_same_videos_and_another_others(parts, data):
    again, other = untrimmed_set(*parts, videos=60, seed=2), untrimmed_set(*parts, videos=60, seed=3)
    for one, two in zip(data.features, again.features, strict=True):
        np.testing.assert_array_equal(one, two)
    assert (again.split == data.split).all()
    assert any(one.shape != two.shape for one, two in zip(data.features, other.features, strict=True))


def test_half_of_each_split_is_abnormal(data):
    for split in SPLITS:
        assert data.label[data.indices(split)].mean() == 0.5
    assert [len(data.indices(split)) for split in SPLITS] == [36, 8, 16]


def test_what_is_abnormal_comes_in_one_piece_out_of_the_abnormal_features(parts, data):
    normal, abnormal = ({row.tobytes() for row in part} for part in parts)
    for row, (clips, label) in enumerate(zip(data.features, data.label, strict=True)):
        assert CLIPS[0] <= len(clips) <= CLIPS[1]
        happens = happening(data, row)
        assert len(data.frames[row]) == FRAMES * len(clips)
        assert np.abs(np.diff(np.pad(happens, 1).astype(int))).sum() == 2 * label
        if label:
            assert LASTS[0] - 0.03 <= happens.mean() <= LASTS[1] + 0.03
        for clip, is_one in zip(clips, happens, strict=True):
            assert clip.tobytes() in (abnormal if is_one else normal)


def test_no_feature_is_in_two_splits(data):
    seen = [{row.tobytes() for clips in data.of(split) for row in clips} for split in SPLITS]
    assert not seen[0] & seen[1]
    assert not seen[0] & seen[2]
    assert not seen[1] & seen[2]


def test_abnormal_features_are_no_longer_than_normal_ones(parts):
    """Their length alone gives nothing away."""
    normal, abnormal = (np.linalg.norm(part, axis=1).mean() for part in parts)
    assert normal == pytest.approx(abnormal, rel=0.1)


def test_what_cannot_be_made_is_refused(parts):
    normal, abnormal = parts
    with pytest.raises(DataError, match="5 numbers, abnormal ones 4"):
        untrimmed_set(normal, abnormal[:, :4])
    with pytest.raises(DataError, match="abnormal features"):
        untrimmed_set(normal, abnormal[:2])
    with pytest.raises(DataError, match="normal features"):
        untrimmed_set(normal * np.nan, abnormal)
    with pytest.raises(UsageError, match="20 or more"):
        untrimmed_set(normal, abnormal, videos=19)
