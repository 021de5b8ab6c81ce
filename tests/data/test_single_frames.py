"""Frames as clips: taken out of whole videos, also out of those that a method left."""

from dataclasses import replace

import numpy as np

from tests.data.made import InMemory, clip_set, noise, stored
from vidveil.data.loader import Loader
from vidveil.data.single_frames import SingleFrames, by_frame
from vidveil.data.store.anonymized import forget
from vidveil.methods.anonymized_data import Setting, anonymized

SHAPES = ((20, 32, 32), (3, 32, 32), (13, 32, 32))


def test_a_long_video_has_more_rows_than_a_short_one_and_each_has_one():
    whole = clip_set(InMemory(noise(*SHAPES)))
    clips = by_frame(whole, {})
    assert clips.ids == ["clip 0 8", "clip 0 24", "clip 1 4", "clip 2 8", "clip 2 24"]
    np.testing.assert_array_equal(clips.videos.frames(1)[0], whole.videos.frames(0)[12])
    np.testing.assert_array_equal(clips.videos.frames(2)[0], whole.videos.frames(1)[2])


def test_a_view_of_a_frame_is_that_frame(tmp_path):
    clips = by_frame(stored(tmp_path / "store", noise(*SHAPES)), {})
    (batch,) = Loader(clips, np.arange(5), frames=1, size=32, batch=8, order="sequential").views("1x1")
    shown = (batch.video[4, 0, :, 0] * 255).round().byte().movedim(0, -1).numpy()
    np.testing.assert_array_equal(shown, clips.videos.frames(4)[0])


def test_a_frame_that_is_black_in_both_of_two_films_is_no_overlap():
    black = [np.zeros((9, 4, 4, 3), np.uint8) for _ in range(2)]
    for i, video in enumerate(black):
        video[8] = 50 + i
    whole = replace(clip_set(InMemory(black)), split=np.array(["train", "test"]))
    clips = by_frame(whole, {})
    assert clips.split.tolist() == ["train", "test"]


def test_a_method_goes_over_whole_videos_and_frames_are_taken_out_of_what_it_left(tmp_path):
    whole = stored(tmp_path / "store", noise(*SHAPES))
    clips = by_frame(whole, {})
    setting = Setting(method="random:8", keep=0.5)  # random tubelets of two frames, video by video
    after, videos = anonymized(clips, setting), anonymized(whole, setting)
    assert isinstance(after.videos, SingleFrames)
    np.testing.assert_array_equal(after.videos.frames(3)[0], videos.videos.frames(2)[4])
    assert after.videos.fingerprint != clips.videos.fingerprint
    assert after.name == "made after random:8, keeping 0.5"
    assert anonymized(clips, Setting(method="raw")) is clips


def test_after_a_method_that_leaves_fewer_frames_it_is_the_one_at_the_same_time():
    whole = clip_set(InMemory(noise((20, 4, 4))))
    half = whole.with_videos(InMemory([whole.videos.frames(0)[::2].copy()]))
    frames = by_frame(whole, {}).videos
    np.testing.assert_array_equal(frames.of(half).frames(1), half.videos.frames(0)[6:7])  # 12 of 20 is 6 of 10


def test_anonymized_videos_are_deleted_when_their_frames_were_judged(tmp_path):
    clips = by_frame(stored(tmp_path / "store", noise(*SHAPES)), {})
    after = anonymized(clips, Setting(method="noise"))
    folder = after.videos.whole.videos.folder
    assert folder.is_dir()
    forget([after])
    assert not folder.exists()
