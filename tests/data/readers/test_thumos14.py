"""THUMOS14 in its official layout and in the community's: a made up small one, and the real annotations."""

import json
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.data.made_thumos14 import EVENTS, TESTED, TRAINED, Told, as_json, videos
from tests.media import level
from vidveil.core.errors import DataError, UsageError
from vidveil.data import load_data
from vidveil.data.clips import SPLITS
from vidveil.data.readers import thumos14
from vidveil.data.untrimmed import Event, frame_labels, length_of


def as_lists(root: Path, told: Told = EVENTS) -> Path:
    """All 42 of them: other classes have an event in the second video to train on and in the first one to test."""
    for part, own in (("val", TRAINED), ("test", TESTED)):
        folder = root / "thumos14" / f"TH14_Temporal_annotations_{part}" / "annotation"
        folder.mkdir(parents=True)
        for name in (*thumos14.CLASSES, "Ambiguous"):
            lines = [
                f"{video}  {start} {end}" for video in own for start, end, label in told.get(video, []) if label == name
            ]
            lines = lines or [f"{own[part == 'val']}  {0.1 * len(name):.1f} 2.0"]
            (folder / f"{name}_{part}.txt").write_text("\r\n".join(lines) + "\r\n")
    return root / "thumos14"


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
    told = {video.name: video for video in thumos14.read_videos(tmp_path)}
    assert [event.label for event in told[TESTED[0]].events] == ["HighJump", "CliffDiving", "Diving"]


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
    with pytest.raises(DataError, match="has its events in seconds: only frames"):
        frame_labels(listed[0], 50)


def test_an_event_after_the_end_of_the_file_is_told_with_both_times(tmp_path):
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


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"{TESTED[0]} 1 2 3 4", f"HighJump_test.txt: a line is a video and two times, .*, not '{TESTED[0]} 1 2 3 4'"),
        (f"{TESTED[0]} 1", "a line is a video and two times"),
        (f"{TESTED[0]} one 2", "an event has two times in seconds and a class"),
        (f"{TESTED[0]} 2 1", "HighJump ends at 1, before it begins at 2"),
        ("holiday 1 2", "a video is called video_validation_0000051 or video_test_0000004, not 'holiday'"),
        (f"{TRAINED[0]} 1 2", f"{TRAINED[0]} is not of this part"),
    ],
)
def test_a_line_that_makes_no_sense_is_refused_with_its_file(tmp_path, line, said):
    path = as_lists(videos(tmp_path)) / "TH14_Temporal_annotations_test" / "annotation" / "HighJump_test.txt"
    path.write_text(line)
    with pytest.raises(DataError, match=f"HighJump_test.txt.*{said}" if "HighJump_test" not in said else said):
        thumos14.read_videos(tmp_path)


def test_lists_that_are_missing_or_of_no_class_are_named(tmp_path):
    folder = as_lists(videos(tmp_path)) / "TH14_Temporal_annotations_val" / "annotation"
    (folder / "Juggling_val.txt").write_text(f"{TRAINED[0]} 1 2")
    with pytest.raises(DataError, match=r"Juggling_val\.txt: no class is called 'Juggling'; there are BaseballPitch, "):
        thumos14.read_videos(tmp_path)
    for name in ("Juggling", "Diving", "Shotput"):
        (folder / f"{name}_val.txt").unlink()
    with pytest.raises(DataError, match=r"annotation has no Diving_val\.txt: 2 of 40 lists are missing"):
        thumos14.read_videos(tmp_path)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ([(2, 1, "Diving")], f"{TESTED[0]}: Diving ends at 1, before it begins at 2"),
        ([(1, 1, "Diving")], "Diving ends at 1, before it begins at 1"),
        ([(-1, 1, "Diving")], "an event has two times in seconds and a class, not "),
        ([("x", 1, "Diving")], "an event has two times in seconds and a class, not "),
        ([(1, float("nan"), "Diving")], "an event has two times in seconds and a class, not "),
        ([(1, 2, "Juggling")], "no class is called 'Juggling'; there are BaseballPitch, "),
        ([(1, 9, "Diving")], "Diving ends at 9 s, but 50 frames are over after 2.5 s at the latest"),
    ],
)
def test_an_event_that_makes_no_sense_is_refused_with_its_video(tmp_path, changed, said):
    as_json(videos(tmp_path), EVENTS | {TESTED[0]: changed}, frames=50)
    with pytest.raises(DataError, match=rf"thumos14\.json: {TESTED[0]}.*{said.removeprefix(TESTED[0])}"):
        thumos14.read_videos(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON: Expecting property name enclosed in double quotes in line 1, column 2: copy it again"),
        ("[1]", "is JSON of another form: it should be {"),
        ('{"video_test_0000004": {"events": []}}', "is JSON of another form"),
        ('{"video_test_0000004": {"annotations": [{"label": "Diving"}]}}', "is JSON of another form"),
        ('{"video_test_0000004": {"annotations": [{"segment": [1], "label": "Diving"}]}}', "two times in seconds"),
        ('{"holiday": {"annotations": [{"segment": [1, 2], "label": "Diving"}]}}', "not 'holiday'"),
        (
            '{"video_test_0000004": {"annotations": [], "frames": "many"}}',
            "has 'many' frames, which should be a number",
        ),
        ('{"video_test_0000004": {"annotations": [{"segment": [1, 2], "label": "Diving"}]}}', "of no validation video"),
        ("{}", "events of no validation video"),
    ],
)
def test_json_of_another_form_is_told_how_it_should_look(tmp_path, content, said):
    as_json(videos(tmp_path)).write_text(content)
    with pytest.raises(DataError, match=said) as error:
        thumos14.read_videos(tmp_path)
    assert "thumos14" in str(error.value)


def test_a_layout_that_is_not_thumos_and_a_half_copied_one_are_told_what_is_missing(tmp_path):
    with pytest.raises(DataError, match="no thumos14 or THUMOS14 in"):
        load_data("thumos14", root=tmp_path, frames=4, size=28)
    videos(tmp_path)
    with pytest.raises(DataError, match=r"thumos14 has no annotations: thumos14\.json, or CLASS_val\.txt and"):
        load_data("thumos14", root=tmp_path, frames=4, size=28)
    as_json(tmp_path)
    with pytest.raises(UsageError, match="thumos14 takes nothing after a colon, not '2'"):
        load_data("thumos14:2", root=tmp_path, frames=4, size=28)
    (tmp_path / "thumos14/TH14_test_set_mp4" / f"{TESTED[1]}.mp4").unlink()
    with pytest.raises(
        DataError,
        match=rf"thumos14: 1 of 6 videos are not in .*: {TESTED[1]}\.mp4; they belong in .*validation and .*TH14_test",
    ):
        load_data("thumos14", root=tmp_path, frames=4, size=28)
    for path in (tmp_path / "thumos14").glob("*/*.mp4"):
        path.unlink()
    with pytest.raises(
        DataError, match=r"6 of 6 videos are not in .*0000052\.mp4, video_validation_0000053\.mp4 and 1 more"
    ):
        load_data("thumos14", root=tmp_path, frames=4, size=28)


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


def unpacked(root: Path) -> Path:
    """The real annotations, and empty files in the places of the videos."""
    path = root / "thumos14" / "thumos14.json"
    path.parent.mkdir()
    with tarfile.open(REAL / "labels.tar.xz") as archive:
        file = archive.extractfile("labels/thumos/thumos14.json")
        assert file is not None
        path.write_bytes(file.read())
    for name in json.loads(path.read_text()):
        (root / "thumos14" / f"{name}.mp4").touch()
    return root


@real
def test_the_real_annotations_have_as_many_videos_and_events_as_the_field_says(tmp_path):
    told = thumos14.read_videos(unpacked(tmp_path), faulty=True)
    events = {
        part: [e for v in told if (v.split == "test") == (part == "test") for e in v.events] for part in ("val", "test")
    }
    assert [sum(video.split == split for video in told) for split in SPLITS] == [160, 40, 212]
    assert {part: len(those) for part, those in events.items()} == {"val": 3007, "test": 3358}
    counts = Counter(event.label for event in events["test"])
    assert set(counts) == set(thumos14.CLASSES) == {event.label for event in events["val"]}
    assert (counts["BasketballDunk"], counts["Diving"], counts["CliffDiving"], counts["GolfSwing"]) == (
        488,
        388,
        217,
        36,
    )
    diving = {(video.name, e.start, e.end) for video in told for e in video.events if e.label == "Diving"}
    cliffs = {(video.name, e.start, e.end) for video in told for e in video.events if e.label == "CliffDiving"}
    assert cliffs < diving
    sound = thumos14.read_videos(tmp_path)
    assert [sum(video.split == split for video in sound) for split in SPLITS] == [160, 40, 210]
    assert sum(len(video.events) for video in sound if video.split == "test") == 3307
    assert sum(len(video.events) for video in sound if video.split != "test") == 3003


@real
def test_real_events_lie_within_their_videos_at_the_rates_that_there_are(tmp_path):
    late = set()
    for video in thumos14.read_videos(unpacked(tmp_path)):
        assert video.frames is not None
        assert all(0 <= event.start < event.end for event in video.events)
        last = max(event.end for event in video.events)
        assert last <= video.frames / 24 + 0.5
        if last > video.frames / 30 + 0.5:
            late.add(video.name)
    assert len(late) == 12  # of 25 frames a second, whatever the JSON says
    assert not late & set(thumos14.ENDS)


@real
@pytest.mark.usefixtures("undecoded")
def test_the_real_rows_have_all_classes_in_all_splits(tmp_path):
    clips = loaded(unpacked(tmp_path))
    assert [len(clips.indices(split)) for split in SPLITS] == [2294, 566, 3089]
    for split in SPLITS:
        assert set(clips.action[clips.indices(split)].tolist()) == set(range(20))
    assert "video_test_0000896.mp4#t=18.6,24.8" in clips.ids
