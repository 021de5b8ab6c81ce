"""Features of videos: which frames are in which clip, and that a clip's vector is its own."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.features.made import Summing, hashes
from tests.data.made import InMemory, clip_set, noise, numbered
from vidveil.core.errors import DataError
from vidveil.data.features.extract import clip_picks, extract, progress_of
from vidveil.data.store.features import fill

SUM = 3 * 4 * 4
"""Of a frame that is 1 everywhere, as `Summing` encodes it."""


def flat(*lengths):
    """Frame t of video i is a flat 16 · i + t."""
    return clip_set(InMemory([video[:length] for video, length in zip(numbered(16, 4, 9), lengths, strict=False)]))


def shown(store, kind="clips"):
    """Which values each clip's frames had."""
    return (store.all(kind) / SUM).tolist()


@given(st.integers(1, 200), st.integers(1, 20), st.integers(1, 5))
def test_clips_do_not_overlap_and_leave_out_less_than_one_more_clip(length, frames, stride):
    picks = clip_picks(length, frames, stride)
    assert picks.shape[1] == frames
    assert picks.min() == 0
    assert picks.max() <= length - 1
    if (frames - 1) * stride + 1 > length:  # too short for one
        np.testing.assert_array_equal(picks, [np.minimum(stride * np.arange(frames), length - 1)])
        assert picks[0, -1] == length - 1
        return
    flat_picks = picks.ravel()
    assert (np.diff(flat_picks) == stride).all()  # every stride-th frame, none twice, none left out between clips
    assert length - 1 - flat_picks[-1] < frames * stride
    np.testing.assert_array_equal(picks[:, 0], frames * stride * np.arange(len(picks)))


def test_clips_are_consecutive_frames_and_short_videos_repeat_their_last(tmp_path):
    store = extract(flat(9, 2, 4), Summing(), tmp_path / "set", static=0)
    assert shown(store) == [[0, 1, 2, 3], [4, 5, 6, 7], [16, 17, 17, 17], [32, 33, 34, 35]]
    assert store.counts().tolist() == [2, 1, 1]


def test_a_stride_skips_frames(tmp_path):
    store = extract(flat(16, 5), Summing(), tmp_path / "set", static=0, stride=2)
    assert shown(store) == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18, 20, 20]]


@given(st.integers(1, 200), st.integers(1, 20), st.integers(1, 5), st.integers(1, 40))
def test_with_a_hop_every_frame_has_one_clip_around_its_middle(length, frames, stride, hop):
    picks = clip_picks(length, frames, stride, hop)
    assert len(picks) == -(-length // hop)
    assert picks.min() >= 0
    assert picks.max() <= length - 1
    for i, pick in enumerate(picks):
        if pick[0] > 0 and pick[-1] < length - 1:  # nothing is repeated
            middle = i * hop + (hop - 1) / 2
            assert abs((pick[0] + pick[-1]) / 2 - middle) <= 0.5
            assert (np.diff(pick) == stride).all()


def test_a_hop_makes_clips_overlap_and_repeats_the_first_and_the_last_frame(tmp_path):
    store = extract(flat(8, 3), Summing(), tmp_path / "set", static=0, hop=2)
    assert shown(store) == [[0, 0, 1, 2], [1, 2, 3, 4], [3, 4, 5, 6], [5, 6, 7, 7], [16, 16, 17, 18], [17, 18, 18, 18]]
    assert store.about["clips"]["hop"] == 2


def test_without_a_hop_a_store_says_nothing_of_one(tmp_path):
    store = extract(flat(8), Summing(), tmp_path / "set")
    assert store.about["clips"] == {"stride": 1, "static": 4}


class Read(InMemory):
    """Videos that are read frame by frame, of headers that may tell of too many."""

    more = 0

    def length(self, i):
        return len(self.frames(i)) + self.more

    def pictures(self, i):
        yield from (np.array(picture) for picture in self.frames(i))


@pytest.mark.parametrize("hop", [0, 1, 3, 7])
def test_a_video_that_is_read_frame_by_frame_has_the_same_features(tmp_path, hop):
    videos = noise(*((length, 4, 4) for length in (9, 1, 4, 17, 3, 8)))
    at_once = extract(clip_set(InMemory(videos)), Summing(), tmp_path / "a", hop=hop)
    read = extract(clip_set(Read(videos)), Summing(), tmp_path / "b", hop=hop)
    for kind in ("clips", "static"):
        np.testing.assert_array_equal(read.counts(kind), at_once.counts(kind))
        np.testing.assert_array_equal(read.all(kind), at_once.all(kind))


def test_the_last_frame_stands_for_those_that_only_a_header_knows(tmp_path, monkeypatch):
    monkeypatch.setattr(Read, "more", 3)
    videos = [numbered(16, 4, 1)[0][:5]]
    store = extract(clip_set(Read(videos)), Summing(), tmp_path / "set", static=0, hop=4)
    assert shown(store) == [[0, 1, 2, 3], [4, 4, 4, 4]]


def test_static_clips_are_single_frames_shown_again_and_again_from_the_first_to_the_last(tmp_path):
    store = extract(flat(10, 1), Summing(), tmp_path / "set", static=4)
    assert shown(store, "static") == [[t] * 4 for t in (0, 3, 6, 9)] + [[16] * 4] * 4
    assert store.counts("static").tolist() == [4, 4]
    middle = extract(flat(9), Summing(), tmp_path / "one", static=1)
    assert shown(middle, "static") == [[4] * 4]


def test_no_static_clips_are_made_where_none_are_wanted(tmp_path):
    encoder = Summing()
    store = extract(flat(4, 4), encoder, tmp_path / "set", static=0)
    assert store.counts("static").tolist() == [0, 0]
    assert store.all("static").shape == (0, 4)
    assert shown(store) == [[0, 1, 2, 3], [16, 17, 18, 19]]


@pytest.mark.parametrize("batch", [1, 2, 3, 7, 64])
def test_a_clips_vector_depends_neither_on_the_batch_nor_on_its_neighbours(tmp_path, batch):
    videos = noise(*((length, 4, 4) for length in (9, 1, 4, 17, 3, 8)))
    together = extract(clip_set(InMemory(videos)), encoder := Summing(), tmp_path / "set", batch=batch)
    assert set(encoder.batches) == {batch}  # the last is filled up: some kernels depend on how many there are
    for i, video in enumerate(videos):
        alone = extract(clip_set(InMemory([video])), Summing(), tmp_path / str(i))
        for kind in ("clips", "static"):
            count = together.counts(kind)
            first = int(count[:i].sum())
            np.testing.assert_array_equal(together.all(kind)[first : first + count[i]], alone.all(kind))


def test_videos_keep_their_order_where_one_batch_holds_many_and_one_video_needs_many(tmp_path):
    lengths = (1, 16, 1, 1, 12, 2, 16, 1, 5)
    store = extract(flat(*lengths), Summing(), tmp_path / "set", batch=5, static=2)
    first = np.cumsum(store.counts()) - store.counts()
    assert (store.all()[first, 0] / SUM).tolist() == [16 * i for i in range(9)]
    assert store.counts().tolist() == [1, 4, 1, 1, 3, 1, 4, 1, 1]
    assert store.ids == [f"clip {i}" for i in range(9)]


def test_pictures_are_cut_to_the_square_in_their_middle(tmp_path):
    wide = np.full((4, 4, 10, 3), 7, np.uint8)
    wide[:, :, 3:7] = np.arange(4, dtype=np.uint8)[:, None, None, None]
    store = extract(clip_set(InMemory([wide])), Summing(), tmp_path / "set", static=0)
    assert shown(store) == [[0, 1, 2, 3]]


def test_what_was_cut_off_goes_on_and_becomes_the_same(tmp_path, monkeypatch):
    monkeypatch.setitem(fill.__kwdefaults__, "videos", 2)
    data = flat(9, 2, 4, 16, 3)
    whole = extract(data, once := Summing(), tmp_path / "whole", batch=2)

    class Dying(Summing):
        def encode(self, clip):
            if len(self.batches) == 6:
                raise KeyboardInterrupt
            return super().encode(clip)

    with pytest.raises(KeyboardInterrupt):
        extract(data, Dying(), tmp_path / "set", batch=2)
    resumed = extract(data, again := Summing(), tmp_path / "set", batch=2)
    assert 0 < len(again.batches) < len(once.batches)
    assert resumed.fingerprint == whole.fingerprint
    assert hashes(tmp_path / "set") == hashes(tmp_path / "whole")
    extract(data, third := Summing(), tmp_path / "set", batch=2)
    assert third.batches == []


def test_another_encoder_or_another_cut_is_refused_and_computes_nothing(tmp_path):
    extract(flat(9, 2), Summing(), tmp_path / "set")
    before = hashes(tmp_path / "set")
    for encoder, more, message in (
        (Summing(fingerprint="other"), {}, "another encoder"),
        (Summing(), {"stride": 2}, "other clips"),
        (Summing(), {"static": 3}, "other clips"),
    ):
        with pytest.raises(DataError, match=message):
            extract(flat(9, 2), encoder, tmp_path / "set", **more)
        assert encoder.batches == []
    other = clip_set(InMemory(noise((9, 4, 4), (2, 4, 4))))
    other.videos.fingerprint = "others"
    with pytest.raises(DataError, match="other videos"):
        extract(other, Summing(), tmp_path / "set")
    assert hashes(tmp_path / "set") == before


def test_an_encoder_that_makes_nan_leaves_no_shard(tmp_path):
    class Broken(Summing):
        def encode(self, clip):
            return torch.where(torch.arange(len(clip))[:, None] == 1, torch.nan, super().encode(clip))

    with pytest.raises(DataError, match="of video 0 are not all finite"):
        extract(flat(9, 2), Broken(), tmp_path / "set")
    assert sorted(hashes(tmp_path / "set")) == ["store.json"]


def test_progress_is_told_video_by_video_and_by_a_bar_only_on_a_terminal(tmp_path, capfd):
    heard = []
    extract(flat(9, 2, 4), Summing(), tmp_path / "set", progress=lambda done, of: heard.append((done, of)))
    assert heard == [(1, 3), (2, 3), (3, 3)]
    with progress_of("features", 3) as progress:
        progress(1, 3)
    assert capfd.readouterr() == ("", "")
