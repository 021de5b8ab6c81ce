"""Squares around people, and the place alone."""

import numpy as np
import pytest

from tests.evaluation.toy import toy
from vidveil.data.store.videos import VideoStore
from vidveil.data.video_parts import medians, person_boxes, person_crops, square


def test_the_square_holds_everybody_who_was_found():
    boxes = np.array([[10, 20, 30, 60], [15, 22, 35, 61]], dtype=float)
    left, top, right, bottom = square(boxes, 100, 80)
    assert right - left == bottom - top == 50  # 41 high, a tenth more above and below, rounded up
    assert left <= 10
    assert right >= 35
    assert top <= 20
    assert bottom >= 61


def test_the_square_stays_inside_the_picture():
    assert square(np.array([[0.0, 0.0, 90.0, 79.0]]), 100, 80) == (5, 0, 85, 80)
    assert square(np.array([[95.0, 70.0, 100.0, 80.0]]), 100, 80) == (88, 68, 100, 80)


def test_without_anybody_it_is_the_middle_of_the_picture():
    assert square(np.empty((0, 4)), 100, 80) == (10, 0, 90, 80)


@pytest.fixture
def marked(tmp_path, monkeypatch):
    """The toy's clips with a ground truth: a block that stands at another place in each clip."""
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path))
    data = toy()
    masks = np.zeros((len(data), 4, 16, 16), np.uint8)
    for i in range(len(data)):
        masks[i, :, 4:8, i % 9 : i % 9 + 4] = 1
    pairs = ((data.videos.frames(i), {"masks": mask}) for i, mask in enumerate(masks))
    return data.with_videos(VideoStore.write(tmp_path / "store", pairs, {})), masks


def test_the_ground_truth_is_inside_its_crop_and_little_else(marked):
    data, masks = marked
    for mask, (left, top, right, bottom) in zip(masks, person_boxes(data), strict=True):
        assert mask[:, top:bottom, left:right].sum() == mask.sum()
        assert right - left == bottom - top == 5


def test_crops_are_the_pixels_of_the_videos(marked):
    data, _ = marked
    crops = person_crops(data)
    for i in (0, 7, 100):
        left, top, right, bottom = person_boxes(data)[i]
        np.testing.assert_array_equal(crops.videos.frames(i), data.videos.frames(i)[:, top:bottom, left:right])
    assert crops.person is data.person


def test_whoever_moves_is_gone_and_the_place_remains(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path))
    data = toy()
    data.videos.clips[:] = data.videos.clips[:, :1]  # nothing moves
    data.videos.clips[0, 1] = 255  # but one frame of the first clip
    still = medians(data)
    assert still.videos.frames(0).shape == (1, 16, 16, 3)
    np.testing.assert_array_equal(still.videos.frames(0)[0], data.videos.frames(0)[0])
    np.testing.assert_array_equal(still.videos.frames(5)[0], data.videos.frames(5)[3])


def test_it_is_a_value_that_was_seen(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path))
    data = toy()
    data.videos.clips[0] = np.array([10, 200, 30, 20], np.uint8)[:, None, None, None]
    assert (medians(data).videos.frames(0) == 20).all()
