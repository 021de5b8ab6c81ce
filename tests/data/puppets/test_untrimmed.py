"""Longer videos: one thing after another."""

from itertools import pairwise

import numpy as np
import pytest

from vidveil.data.puppets.motion import ACTIONS, PAIRS
from vidveil.data.puppets.style import Performance, Style
from vidveil.data.puppets.timeline import Part, along
from vidveil.data.puppets.untrimmed import segments, untrimmed

TURN = Performance(phase=0.2, onset=0.15, tempo=1.0, size=1.0, side=0, way=1)


@pytest.fixture(scope="module")
def videos():
    return untrimmed(6, seconds=10, frames_per_second=4, size=32, seed=3)


def test_segments_are_in_order_apart_and_within_the_video(videos):
    for video in videos:
        assert video.frames.shape == (40, 32, 32, 3)
        assert video.masks.shape == (40, 32, 32)
        assert video.segments
        last = -1
        for action, first, end in video.segments:
            assert action in ACTIONS
            assert last < first <= end < 40
            last = end


def test_nobody_stays_lying_or_sitting_when_the_next_thing_begins(videos):
    undone = {a: b for a, b in PAIRS if not ACTIONS[a].cyclic}
    for video in videos:
        names = [name for name, *_ in video.segments]
        for name, following in pairwise(names):
            assert undone.get(name, following) == following


def test_there_is_more_movement_in_a_segment_than_between_them(videos):
    moving, resting = [], []
    for video in videos:
        people = (video.masks > 0).astype(float)
        change = np.abs(np.diff(people, axis=0)).mean(axis=(1, 2))
        inside = np.zeros(40, bool)
        for _, first, last in video.segments:
            inside[first : last + 1] = True
        moving += change[inside[1:] & inside[:-1]].tolist()
        resting += change[~inside[1:] & ~inside[:-1]].tolist()
    assert np.mean(moving) > 1.15 * np.mean(resting)


def test_the_same_seed_gives_the_same_video_and_another_one_another(videos):
    np.testing.assert_array_equal(
        untrimmed(1, seconds=10, frames_per_second=4, size=32, seed=3)[0].frames, videos[0].frames
    )
    other = untrimmed(1, seconds=10, frames_per_second=4, size=32, seed=4)[0]
    assert other.segments != videos[0].segments


def test_a_body_does_not_jump_from_one_action_to_the_next():
    times = np.arange(0, 8, 1 / 60)
    names = ("running", "squatting", "raising arms", None)
    moved = along([Part(name, 2.0 * k, 2.0 * k + 2, TURN) for k, name in enumerate(names)], times, Style())
    for name, values in moved.items():
        assert np.abs(np.diff(values)).max() < 0.45, name


def test_an_action_that_is_cut_off_ends_with_the_video():
    parts = [Part(None, 0, 1, TURN), Part("waving", 1, 9, TURN), Part("falling", 9, 10.6, TURN)]
    assert segments(parts, np.arange(12) / 4) == (("waving", 4, 11),)
