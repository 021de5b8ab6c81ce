"""Videos to watch are checked at once, and batches are half and half."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.tasks.anomaly.made import WIDTH, easy
from vidveil.core.errors import DataError, UsageError
from vidveil.tasks.anomaly import AnomalyVideos, BalancedBatches


@pytest.fixture(scope="module")
def data():
    return easy(videos=40)


def changed(data, row, clips):
    return replace(data, features=(*data.features[:row], clips, *data.features[row + 1 :]))


def test_a_batch_has_as_many_normal_videos_as_abnormal_ones(data):
    batches = BalancedBatches(data, batch=8, seed=0)
    for rows in batches.epoch(0):
        assert data.label[rows].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
        assert (data.split[rows] == "train").all()


def test_batches_depend_on_seed_and_epoch_alone(data):
    def drawn(seed, epoch, start=0):
        return np.stack(list(BalancedBatches(data, batch=8, seed=seed).epoch(epoch, start)))

    np.testing.assert_array_equal(drawn(0, 3), drawn(0, 3))
    np.testing.assert_array_equal(drawn(0, 3, start=2), drawn(0, 3)[2:])
    assert (drawn(0, 3) != drawn(0, 4)).any()
    assert (drawn(0, 3) != drawn(1, 3)).any()


def test_of_the_more_frequent_kind_all_are_seen_each_epoch_and_the_others_as_often():
    label = np.repeat([0, 1], [21, 4])
    clips = tuple(np.ones((2, 3), np.float32) for _ in label)
    data = AnomalyVideos("few", clips, label, np.full(25, "train"))
    batches = BalancedBatches(data, batch=12, seed=0)
    assert len(batches) == 4
    seen = np.bincount(np.concatenate(list(batches.epoch(0))), minlength=25)
    assert (seen[:21] >= 1).all()
    assert seen[:21].sum() == seen[21:].sum() == 24
    assert np.ptp(seen[21:]) == 0


def test_fewer_videos_than_a_batch_make_a_smaller_one(data):
    batches = list(BalancedBatches(data, batch=500, seed=0).epoch(0))
    assert len(batches) == 1
    assert len(set(batches[0].tolist())) == len(batches[0]) == len(data.indices("train"))


@pytest.mark.parametrize("batch", [0, 1, 7])
def test_an_odd_batch_is_refused(data, batch):
    with pytest.raises(UsageError, match="even"):
        BalancedBatches(data, batch=batch, seed=0)


@pytest.mark.parametrize(("label", "lacks"), [(0, "abnormal"), (1, "normal")])
def test_without_normal_or_without_abnormal_videos_there_is_nothing_to_tell_apart(data, label, lacks):
    one = replace(data, label=np.full(len(data.label), label), frames=None)
    with pytest.raises(DataError, match=f"no {lacks} videos in train"):
        BalancedBatches(one, batch=8, seed=0)


def test_clips_of_videos_come_one_after_the_other(data):
    clips, counts = data.clips([3, 0])
    assert counts == [len(data.features[3]), len(data.features[0])]
    np.testing.assert_array_equal(clips.numpy(), np.concatenate([data.features[3], data.features[0]]))
    assert clips.dtype == torch.float32


def test_frames_count_only_where_all_videos_of_a_split_have_them(data):
    assert len(data.frame_labels("test")) == len(data.indices("test"))
    row = int(data.indices("test")[0])
    partly = replace(data, frames=(*data.frames[:row], None, *data.frames[row + 1 :]))
    assert partly.frame_labels("test") is None
    assert partly.frame_labels("train") is not None
    assert replace(data, frames=None).frame_labels("test") is None


def test_videos_that_make_no_sense_are_named(data):
    with pytest.raises(DataError, match="video 4 has no clips"):
        changed(data, 4, np.zeros((0, WIDTH), np.float32))
    with pytest.raises(DataError, match="video 4 has features of 3 numbers, the first video 16"):
        changed(data, 4, np.zeros((5, 3), np.float32))
    with pytest.raises(DataError, match="video 4 has features that are not float32 and finite"):
        changed(data, 4, np.full((5, WIDTH), np.nan, np.float32))
    with pytest.raises(DataError, match=r"video 4 .* float32"):
        changed(data, 4, np.zeros((5, WIDTH)))
    with pytest.raises(DataError, match="no videos"):
        AnomalyVideos("none", (), np.zeros(0, np.int64), np.zeros(0, "<U5"))
    with pytest.raises(DataError, match="another number"):
        replace(data, label=data.label[:-1])
    with pytest.raises(DataError, match="0 or 1"):
        replace(data, label=data.label + 1, frames=None)
    with pytest.raises(DataError, match="splits train, val, test"):
        replace(data, split=np.full(len(data.split), "some"))
    with pytest.raises(DataError, match="do not agree"):
        replace(data, label=1 - data.label)
