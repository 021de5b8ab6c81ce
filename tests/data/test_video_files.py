"""Videos that stay in their files."""

import numpy as np
import pytest

from tests.media import Film
from vidveil.core.errors import DataError
from vidveil.data.decode import decode
from vidveil.data.video_files import FrameStreams, VideoFiles


@pytest.fixture
def film(tmp_path):
    path = tmp_path / "film.mp4"
    Film(frames=30, width=96, height=64).make(path)
    return path


def test_pictures_one_after_the_other_are_those_that_are_decoded_at_once(film):
    videos = VideoFiles([film], short_side=32)
    assert isinstance(videos, FrameStreams)
    pictures = np.stack(list(videos.pictures(0)))
    assert pictures.shape == (30, 32, 48, 3)
    np.testing.assert_array_equal(pictures, videos.frames(0))
    np.testing.assert_array_equal(pictures, decode(film, short_side=32))
    assert videos.length(0) == 30


def test_another_file_or_size_is_another_set(film):
    first = VideoFiles([film], short_side=32)
    assert first.fingerprint == VideoFiles([film], short_side=32).fingerprint
    assert first.fingerprint != VideoFiles([film], short_side=48).fingerprint
    Film(frames=31, width=96, height=64).make(film)
    assert first.fingerprint != VideoFiles([film], short_side=32).fingerprint


def test_what_is_missing_or_no_video_is_named(tmp_path):
    with pytest.raises(DataError, match=r"gone\.mp4 is not there"):
        VideoFiles([tmp_path / "gone.mp4"], short_side=32)
    (tmp_path / "bad.mp4").write_bytes(b"video")
    with pytest.raises(DataError, match=r"bad\.mp4"):
        list(VideoFiles([tmp_path / "bad.mp4"], short_side=32).pictures(0))
