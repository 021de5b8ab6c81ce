import numpy as np
from vidveil.data.medians import medians

from tests.evaluation.toy import toy


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
