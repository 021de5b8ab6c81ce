"""THUMOS14 in its official layout and in the community's: a small set made for tests, and the real annotations."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.data.made_thumos14 import EVENTS, TESTED, TRAINED, as_json, as_lists, videos
from tests.media import level
from vidveil.core.errors import DataError
from vidveil.data import load_data
from vidveil.data.clips import SPLITS
from vidveil.data.readers import thumos14
from vidveil.data.untrimmed import Event, frame_labels, length_of


def loaded(root: Path) -> "thumos14.ClipSet":
    return thumos14.load(None, root=root, size=28)


def test_an_event_is_a_row_cut_out_of_its_video(tmp_path):
    as_json(videos(tmp_path, film=True))
    clips = load_data("thumos14", root=tmp_path, frames=4, size=28)
    assert clips.name == "thumos14"
    assert clips.actions == thumos14.CLASSES
    assert set(clips.person.tolist()) == {-1}
    first = list(clips.ids).index(f"{TRAINED[0]}.mp4#t=1.2,2")
    assert clips.group[first] == TRAINED[0]
    assert clips.actions[clips.action[first]] == "HighJump"
    video = clips.videos.frames(first)
    assert video.shape == (10, 32, 43, 3)  # every second of 20 frames, a little larger than the view
    np.testing.assert_allclose(video.mean((1, 2, 3)), [level(i) for i in range(30, 50, 2)], atol=3)
    assert len(clips.videos.frames(list(clips.ids).index(f"{TESTED[1]}.mp4#t=0,2.5"))) == 25  # to its end


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize("flat", [False, True])
def test_what_is_annotated_twice_is_one_row_with_the_first_label(tmp_path, flat):
    as_json(videos(tmp_path, flat=flat))
    clips = loaded(tmp_path)
    labels = dict(zip(clips.ids, [clips.actions[i] for i in clips.action], strict=True))
    assert len(clips) == 10
    assert labels[f"{TRAINED[0]}.mp4#t=0.2,0.6"] == "HighJump"
    assert labels[f"{TESTED[0]}.mp4#t=1,1.2"] == "CliffDiving"
    assert Counter(labels.values()) == {"HighJump": 6, "LongJump": 2, "CliffDiving": 2}
    listed = {video.name: video for video in thumos14.read_videos(tmp_path)}
    assert [event.label for event in listed[TESTED[0]].events] == ["HighJump", "CliffDiving", "Diving"]


@pytest.mark.usefixtures("undecoded")
def test_validation_is_whole_videos_of_the_official_validation(tmp_path):
    as_json(videos(tmp_path))
    clips = loaded(tmp_path)
    assert [{clips.group[i] for i in clips.indices(split)} for split in SPLITS] == [
        {TRAINED[0], TRAINED[1], TRAINED[3]},
        {TRAINED[2]},  # the third of those that jump high
        set(TESTED),
    ]


def test_whole_videos_come_with_their_events_in_order(tmp_path):
    as_json(videos(tmp_path, film=True), frames=50)
    listed = thumos14.read_videos(tmp_path)
    assert [video.name for video in listed] == [*TRAINED, *TESTED]
    assert [video.split for video in listed] == ["train", "train", "val", "train", "test", "test"]
    assert [video.label for video in listed] == ["HighJump"] * 3 + ["CliffDiving", "CliffDiving", "LongJump"]
    assert listed[0].events == (
        Event(0.2, 0.6, "HighJump"),
        Event(0.2, 0.6, "LongJump"),
        Event(1.2, 2, "HighJump"),
    )
    assert (listed[0].unit, listed[0].frames) == ("seconds", 50)
    assert listed[4].path == tmp_path / "thumos14/TH14_test_set_mp4" / f"{TESTED[0]}.mp4"
    assert length_of(listed[0]).frames == 50
    assert length_of(listed[0]).seconds == pytest.approx(2, abs=0.05)
    with pytest.raises(DataError, match="has its events in seconds: frame labels need"):
        frame_labels(listed[0], 50)


def test_an_event_after_the_end_of_the_file_is_refused_with_both_times(tmp_path):
    as_json(videos(tmp_path, film=True), EVENTS | {TESTED[1]: [(2.4, 2.5, "LongJump")]})
    with pytest.raises(DataError, match=rf"{TESTED[1]}\.mp4 has 2 seconds, but .* LongJump begins at 2\.4: copy the"):
        length_of(thumos14.read_videos(tmp_path)[-1])


def test_a_row_of_which_the_video_shows_nothing_is_left_out_and_named(tmp_path, capsys):
    as_json(videos(tmp_path, film=True), EVENTS | {TESTED[1]: [(0, 1.5, "LongJump"), (2.4, 2.5, "LongJump")]})
    clips = load_data("thumos14", root=tmp_path, frames=4, size=28)
    assert len(clips) == 10
    assert f"{TESTED[1]}.mp4#t=0,1.5" in clips.ids
    assert f"1 of 11 videos cannot be decoded and is left out: {TESTED[1]}.mp4#t=2.4,2.5" in capsys.readouterr().err


@pytest.mark.parametrize(
    "place", ["thumos14/annotations/thumos_14_anno.json", "thumos14.json", "labels/thumos/thumos14.json"]
)
def test_annotations_may_lie_elsewhere_and_in_a_database(tmp_path, place):
    as_json(videos(tmp_path), place=place)
    assert sum(len(video.events) for video in thumos14.read_videos(tmp_path)) == 13


def test_the_official_lists_say_the_same_and_ambiguous_is_no_class(tmp_path):
    as_lists(videos(tmp_path))
    lists = {video.name: video for video in thumos14.read_videos(tmp_path)}
    assert set(lists) == set(EVENTS)
    assert [(event.start, event.end, event.label) for event in lists[TRAINED[0]].events] == sorted(EVENTS[TRAINED[0]])
    labels = {event.label for video in lists.values() for event in video.events}
    assert labels == set(thumos14.CLASSES)
    assert lists[TESTED[0]].frames is None


def test_annotations_of_one_part_alone_are_refused(tmp_path):
    as_json(videos(tmp_path), {TESTED[0]: EVENTS[TESTED[0]]})
    with pytest.raises(DataError, match=r"annotations of .*thumos14 have events of no validation video"):
        thumos14.read_videos(tmp_path)


def test_faulty_videos_are_left_out_unless_they_are_asked_for(tmp_path):
    faulty = {
        "video_test_0000270": [(1.0, 700.0, "HammerThrow")],
        "video_test_0001081": [(1.0, 2.0, "Diving"), (127.5, 130.1, "Diving")],
    }
    as_json(videos(tmp_path), EVENTS | faulty, frames=50)
    for name in faulty:
        (tmp_path / "thumos14" / f"{name}.mp4").write_bytes(b"video")
    kept = {video.name: len(video.events) for video in thumos14.read_videos(tmp_path)}
    assert "video_test_0000270" not in kept
    assert kept["video_test_0001081"] == 1
    every = {video.name: len(video.events) for video in thumos14.read_videos(tmp_path, faulty=True)}
    assert every == kept | {"video_test_0000270": 1, "video_test_0001081": 2}


@pytest.fixture
def real_root(tmp_path, real_labels):
    """The real annotations, and empty files in place of the videos."""
    (tmp_path / "labels").symlink_to(real_labels / "labels")
    (tmp_path / "thumos14").mkdir()
    for name in json.loads((tmp_path / "labels" / "thumos" / "thumos14.json").read_text()):
        (tmp_path / "thumos14" / f"{name}.mp4").touch()
    return tmp_path


def test_the_real_annotations_have_as_many_videos_and_events_as_the_field_says(real_root):
    every = thumos14.read_videos(real_root, faulty=True)
    events = {
        part: [e for v in every if (v.split == "test") == (part == "test") for e in v.events]
        for part in ("val", "test")
    }
    assert [sum(video.split == split for video in every) for split in SPLITS] == [160, 40, 212]
    assert {part: len(those) for part, those in events.items()} == {"val": 3007, "test": 3358}
    counts = Counter(event.label for event in events["test"])
    assert set(counts) == set(thumos14.CLASSES) == {event.label for event in events["val"]}
    assert (counts["BasketballDunk"], counts["Diving"], counts["CliffDiving"], counts["GolfSwing"]) == (
        488,
        388,
        217,
        36,
    )
    diving = {(video.name, e.start, e.end) for video in every for e in video.events if e.label == "Diving"}
    cliffs = {(video.name, e.start, e.end) for video in every for e in video.events if e.label == "CliffDiving"}
    assert cliffs < diving
    sound = thumos14.read_videos(real_root)
    assert [sum(video.split == split for video in sound) for split in SPLITS] == [160, 40, 210]
    assert sum(len(video.events) for video in sound if video.split == "test") == 3307
    assert sum(len(video.events) for video in sound if video.split != "test") == 3003


def test_real_events_lie_within_their_videos_at_the_rates_that_there_are(real_root):
    late = set()
    for video in thumos14.read_videos(real_root):
        assert video.frames is not None
        assert all(0 <= event.start < event.end for event in video.events)
        last = max(event.end for event in video.events)
        assert last <= video.frames / 24 + 0.5
        if last > video.frames / 30 + 0.5:
            late.add(video.name)
    assert len(late) == 12  # of 25 frames a second, whatever the JSON says
    assert not late & set(thumos14.ENDS)


@pytest.mark.usefixtures("undecoded")
def test_the_real_rows_have_all_classes_in_all_splits(real_root):
    clips = loaded(real_root)
    assert [len(clips.indices(split)) for split in SPLITS] == [2294, 566, 3089]
    for split in SPLITS:
        assert set(clips.action[clips.indices(split)].tolist()) == set(range(20))
    assert "video_test_0000896.mp4#t=18.6,24.8" in clips.ids
