"""A set of clips refuses to be made where its splits overlap."""

from dataclasses import replace

import numpy as np
import pytest

from tests.data.made import InMemory, clip_set, noise, stored
from vidveil.core.errors import DataError
from vidveil.data.clips import ClipSet

SPLIT = np.array(["train", "train", "val", "test"])


@pytest.fixture
def clips(tmp_path) -> ClipSet:
    return replace(stored(tmp_path / "set", noise(*[(2, 4, 4)] * 4)), split=SPLIT)


def test_each_split_knows_its_rows(clips):
    assert [clips.indices(split).tolist() for split in ("train", "val", "test")] == [[0, 1], [2], [3]]


def test_a_group_in_two_splits_is_an_error(clips):
    with pytest.raises(DataError, match="the group of clip 3 is in both train and test"):
        replace(clips, group=np.array(["a", "b", "c", "a"]))
    assert len(replace(clips, group=np.array(["a", "a", "c", "d"]))) == 4


def test_the_very_same_pixels_in_two_splits_are_an_error_under_any_name(tmp_path):
    one, two, three = noise(*[(2, 4, 4)] * 3)
    clips = stored(tmp_path / "set", [one, two, three, one.copy()])
    with pytest.raises(DataError, match="the video of clip 3 is in both train and test"):
        replace(clips, split=SPLIT)


def test_an_id_that_is_there_twice_is_an_error(clips):
    with pytest.raises(DataError, match="the id of b is in both val and test"):
        replace(clips, ids=["a", "c", "b", "b"])
    with pytest.raises(DataError, match="an id is there twice"):
        replace(clips, ids=["a", "a", "b", "c"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"split": np.array(["train", "train", "val", "testing"])}, "no split is called testing"),
        ({"action": np.zeros(3, np.int64)}, "4 videos, but 3 entries of action"),
        ({"tags": {"camera": np.zeros(5, np.int64)}}, "5 entries of camera"),
        ({"action_labels": np.zeros((4, 2), np.float32)}, r"action labels are \(4, 2\), actions 1"),
        (
            {"action_labels": np.zeros((4, 1), np.float32), "gallery": "same action"},
            "a gallery of same action needs clips of one action each",
        ),
        ({"attributes": np.zeros((4, 2), np.float32)}, r"attributes are \(4, 2\), names 0"),
    ],
)
def test_columns_that_do_not_fit_are_refused(clips, change, message):
    with pytest.raises(DataError, match=message):
        replace(clips, **change)


def test_a_method_that_paints_all_videos_black_is_no_overlap(clips):
    black = InMemory([np.zeros((2, 4, 4, 3), np.uint8)] * 4)
    painted = clips.with_videos(black, "black")
    assert painted.name == "black"
    assert painted.videos is black
    assert clips.videos is not black
    np.testing.assert_array_equal(painted.split, clips.split)
    with pytest.raises(DataError, match="4 videos, but 3 after the method"):
        clips.with_videos(clip_set(InMemory(noise(*[(1, 2, 2)] * 3))).videos)
