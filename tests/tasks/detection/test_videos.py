"""Sets of untrimmed videos are checked when they are made."""

from dataclasses import replace

import numpy as np
import pytest

from tests.tasks.detection.made import easy
from vidveil.core.errors import DataError
from vidveil.tasks.detection import DetectionVideos


@pytest.fixture
def video():
    return {
        "features": [np.zeros((10, 3), np.float32)],
        "seconds": [0.5],
        "segments": [[(1.0, 2.5, 0)]],
        "split": ["train"],
        "classes": ("jump", "fall"),
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": [np.zeros((0, 3), np.float32)]}, "video 0 is empty: it has no features"),
        ({"features": [np.zeros((10, 3))]}, "float32, it is .* of float64"),
        ({"features": [np.zeros(10, np.float32)]}, r"must be \(T, D\)"),
        ({"features": [np.full((10, 3), np.nan, np.float32)]}, "not finite"),
        ({"seconds": [0.0]}, "0.0 seconds a feature"),
        ({"seconds": [0.5, 0.5]}, "1 features, 2 seconds"),
        ({"split": ["tain"]}, "split 'tain'"),
        ({"classes": ()}, "needs videos and classes"),
        ({"segments": [[(-0.1, 2.0, 0)]]}, "goes from 0 to 5 s, and a segment in it from -0.1 to 2 s"),
        ({"segments": [[(4.0, 5.5, 0)]]}, "goes from 0 to 5 s, and a segment in it from 4 to 5.5 s"),
        ({"segments": [[(2.0, 2.0, 0)]]}, "a segment in it from 2 to 2 s"),
        ({"segments": [[(2.0, float("nan"), 0)]]}, "a segment in it from 2 to nan s"),
        ({"segments": [[(1.0, 2.0, 2)]]}, "class 2, and there are 2"),
    ],
)
def test_a_set_that_makes_no_sense_is_refused_with_the_reason(video, changes, words):
    with pytest.raises(DataError, match=words):
        DetectionVideos(**video | changes)


def test_all_videos_have_features_of_one_width(video):
    twice = {name: value * 2 if isinstance(value, list) else value for name, value in video.items()}
    twice["features"] = [np.zeros((10, 3), np.float32), np.zeros((10, 4), np.float32)]
    with pytest.raises(DataError, match="video 1 has features of 4 numbers, and video 0 of 3"):
        DetectionVideos(**twice)


def test_there_must_be_videos(video):
    none = {name: [] if isinstance(value, list) else value for name, value in video.items()}
    with pytest.raises(DataError, match="needs videos"):
        DetectionVideos(**none)


def test_the_truth_is_a_list_over_videos_and_nothing_may_happen_in_some():
    data = easy(videos=(3, 1, 1))
    data = replace(data, segments=[data.segments[0], [], *data.segments[2:]])
    truth = data.truth(np.array([0, 1, 3]))
    assert len(truth) == len(data.segments[0]) + len(data.segments[3])
    assert set(truth.video.tolist()) == {0, 3}
    assert truth.span.tolist() == [list(s[:2]) for row in (0, 3) for s in data.segments[row]]


def test_features_can_be_changed_and_what_happens_stays():
    data = easy(videos=(2, 1, 1))
    doubled = data.with_features(lambda features: 2 * features[:, :5])
    assert doubled.width == 5
    assert doubled.segments == data.segments
    np.testing.assert_array_equal(doubled.features[1], 2 * data.features[1][:, :5])
