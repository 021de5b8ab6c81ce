"""Built-in sets of long videos: the same each time, nobody in two splits, with the times of what happens."""

import numpy as np
import pytest

from vidveil.core.errors import UsageError
from vidveil.data import load_data
from vidveil.data.clips import SPLITS
from vidveil.data.puppets.long import ANOMALIES, THINGS, TROUBLE, UNTRIMMED
from vidveil.data.untrimmed import NORMAL, frame_labels

SMALL = {"frames": 4, "size": 32}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """One for all tests here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIDVEIL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def actions():
    return load_data("puppets_untrimmed:share=0.03", **SMALL)


@pytest.fixture(scope="module")
def days():
    return load_data("puppets_anomalies:share=0.03", **SMALL)


def test_videos_last_as_long_at_a_rate_at_which_a_clip_lasts_as_in_puppets(actions):
    assert actions.rate == 2.5
    assert {len(actions.videos.frames(row)) for row in range(len(actions))} == {80}
    assert all(video.frames == 80 for video in actions.annotations)


def test_actions_are_whole_apart_and_of_six_kinds(actions):
    for video in actions.annotations:
        assert video.events
        last = 0
        for event in video.events:
            assert event.label in THINGS
            assert last < event.start <= event.end <= video.frames
            assert event.end - event.start + 1 >= 2 * actions.rate  # none shorter than two seconds
            last = event.end


def test_people_of_a_split_are_those_of_puppets_of_that_split(actions, days):
    for films in (actions, days):
        for low, high, split in ((0, 100, "train"), (100, 120, "val"), (120, 156, "test")):
            who = films.person[films.indices(split)]
            assert ((who >= low) & (who < high)).all()
        assert [len(films.indices(split)) > 1 for split in SPLITS] == [True] * 3


def test_in_every_second_video_of_a_split_something_happens_once(days):
    for split in SPLITS:
        rows = days.indices(split)
        assert abs(sum(days.action[rows] > 0) - len(rows) / 2) <= 0.5
    for video in days.annotations:
        assert len(video.events) == (video.label != NORMAL)
        assert all(event.label in TROUBLE for event in video.events)
        assert bool(frame_labels(video, 80).any()) == (video.label != NORMAL)


def test_the_same_seed_is_found_again_and_another_shows_others(actions):
    again, other = (load_data("puppets_untrimmed:share=0.03", **SMALL, seed=seed) for seed in (0, 1))
    assert again.annotations == actions.annotations
    assert again.videos.fingerprint == actions.videos.fingerprint != other.videos.fingerprint


def test_no_video_is_in_both_sets():
    counts = [sum(kind.videos) for kind in (UNTRIMMED, ANOMALIES)]
    assert UNTRIMMED.first + counts[0] <= ANOMALIES.first


@pytest.mark.parametrize("argument", ["half", "share=0", "share=2", "share=x", "rho=1"])
def test_an_argument_that_is_no_share_is_refused(argument):
    with pytest.raises(UsageError, match=r"share=0\.1"):
        load_data(f"puppets_untrimmed:{argument}", **SMALL)


def test_what_happens_is_seen(days):
    """Who runs moves more than who does anything else, or nothing."""
    odd = [row for row, video in enumerate(days.annotations) if video.events]
    moved = {True: [], False: []}
    for row in odd:
        change = np.abs(np.diff(days.videos.frames(row).astype(float), axis=0)).mean(axis=(1, 2, 3))
        happens = frame_labels(days.annotations[row], 80).astype(bool)
        for now in (True, False):
            moved[now] += change[(happens[1:] == now) & (happens[:-1] == now)].tolist()
    assert np.mean(moved[True]) > np.mean(moved[False])
