"""UCF-Crime in its official layout: a small set made for tests, and the real lists."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.data.made_ucf_crime import LISTED, TEST, TRAIN, lists, made
from tests.media import level
from vidveil.core.errors import DataError
from vidveil.data import load_data
from vidveil.data.clips import SPLITS
from vidveil.data.readers import ucf_crime
from vidveil.data.readers.ucf_crime import CRIMES, PLACES, RANGES, TEST_LIST, TRAINING_LIST
from vidveil.data.untrimmed import NORMAL, Event, frame_labels, length_of


def loaded(root: Path) -> "ucf_crime.ClipSet":
    return ucf_crime.load(None, root=root, size=28)


def test_ucf_crime_is_read_in_its_official_layout_and_a_video_is_spread_over_96_frames(tmp_path):
    lists(made(tmp_path, film=True))
    clips = load_data("ucf_crime", root=tmp_path, frames=4, size=28)
    assert list(clips.ids) == LISTED
    assert clips.actions == (NORMAL, *CRIMES)
    assert [clips.actions[i] for i in clips.action] == [
        *["Abuse"] * 3, "Robbery", *[NORMAL] * 3, "Abuse", "Robbery", NORMAL,
    ]  # fmt: skip
    assert clips.group.tolist() == LISTED
    assert set(clips.person.tolist()) == {-1}
    video = clips.videos.frames(5)
    assert video.shape == (96, 32, 43, 3)
    shown = np.linspace(0, 299, 96).round().astype(int)
    np.testing.assert_allclose(video.mean((1, 2, 3)), [level(i) for i in shown], atol=3)


@pytest.mark.usefixtures("undecoded")
def test_validation_is_every_fifth_video_of_a_class_from_the_third_on(tmp_path):
    lists(made(tmp_path))
    clips = loaded(tmp_path)
    assert [clips.ids[i] for i in clips.indices("val")] == [TRAIN[2], TRAIN[6]]
    assert len(clips.indices("test")) == 3


def test_whole_videos_come_with_their_ranges_of_frames(tmp_path):
    lists(made(tmp_path, film=True))
    videos = {video.name: video for video in ucf_crime.read_videos(tmp_path)}
    assert list(videos) == LISTED
    robbery = videos["Robbery/Robbery048_x264.mp4"]
    assert robbery.events == (Event(0, 4, "Robbery"), Event(31, 900, "Robbery"))
    assert (robbery.unit, robbery.split, robbery.label) == ("frames", "test", "Robbery")
    assert robbery.path == tmp_path / "UCF_Crimes/Videos/Robbery/Robbery048_x264.mp4"
    assert length_of(robbery).frames == 360
    assert not any(video.events for video in videos.values() if video.split != "test")


def test_frames_count_from_1_the_last_one_is_included_and_the_end_of_the_video_cuts(tmp_path):
    lists(made(tmp_path))
    videos = {video.name: video for video in ucf_crime.read_videos(tmp_path)}
    labels = frame_labels(videos["Abuse/Abuse028_x264.mp4"], 100)
    assert labels.dtype == np.uint8
    assert labels.shape == (100,)
    assert np.flatnonzero(labels).tolist() == list(range(9, 20))
    assert np.flatnonzero(frame_labels(videos["Robbery/Robbery048_x264.mp4"], 33)).tolist() == [0, 1, 2, 3, 30, 31, 32]
    assert not frame_labels(videos[LISTED[-1]], 50).any()
    assert not frame_labels(videos[TRAIN[-1]], 50).any()
    with pytest.raises(DataError, match=r"Abuse001_x264\.mp4 shows Abuse at an unknown time: only test videos"):
        frame_labels(videos[TRAIN[0]], 50)
    with pytest.raises(
        DataError, match=r"Abuse028_x264\.mp4 has 9 frames, but Abuse begins at 10: copy the video anew"
    ):
        frame_labels(videos["Abuse/Abuse028_x264.mp4"], 9)


@pytest.mark.parametrize(
    "place", ["", "UCF_Crimes", "UCF_Crimes/UCF_Crimes-Train-Test-Split/splits", "labels/ucfcrime"]
)
@pytest.mark.parametrize("ranges", RANGES)
def test_lists_are_found_in_the_folder_or_next_to_it(tmp_path, place, ranges):
    lists(made(tmp_path), place, ranges)
    assert len(ucf_crime.read_videos(tmp_path)) == len(LISTED)


def test_zips_may_stay_as_they_unpack_and_copies_for_event_recognition_are_not_read(tmp_path):
    lists(tmp_path)
    for i, name in enumerate(LISTED):
        zipped = "Testing_Normal_Videos" if PLACES["test"] in name else f"Anomaly-Videos-Part-{1 + i % 4}"
        for place in (f"{zipped}/{name}", f"Copies/Normal_Videos_event/{Path(name).name}"):
            path = tmp_path / "UCF_Crimes" / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"video")
    found = [video.path.relative_to(tmp_path / "UCF_Crimes").as_posix() for video in ucf_crime.read_videos(tmp_path)]
    assert found[1] == "Anomaly-Videos-Part-2/Abuse/Abuse002_x264.mp4"
    assert found[-1] == f"Testing_Normal_Videos/{LISTED[-1]}"
    assert not any("event" in path for path in found)


def test_the_list_of_tests_must_name_the_annotated_videos(tmp_path):
    folder = lists(made(tmp_path))
    (folder / TEST_LIST).write_text("\n".join(TEST))
    assert len(ucf_crime.read_videos(tmp_path)) == len(LISTED)
    (folder / TEST_LIST).write_text("\n".join(list(TEST)[1:]))
    with pytest.raises(
        DataError, match=r"Anomaly_Test\.txt: 1 videos? .* Abuse028_x264\.mp4 is in the annotated ranges"
    ):
        ucf_crime.read_videos(tmp_path)


@pytest.fixture
def real_root(tmp_path, real_labels):
    """The real lists, and empty files in place of the videos."""
    (tmp_path / "labels").symlink_to(real_labels / "labels")
    lists = tmp_path / "labels" / "ucfcrime"
    for name in [*ucf_crime.read_training(lists / TRAINING_LIST), *ucf_crime.read_ranges(lists / RANGES[1])]:
        path = tmp_path / "UCF_Crimes" / "Videos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def test_the_real_lists_have_as_many_videos_as_the_paper_says(real_root):
    videos = ucf_crime.read_videos(real_root)
    trained, tested = ([v for v in videos if (v.split == "test") == test] for test in (False, True))
    assert (len(trained), len(tested)) == (1610, 290)
    assert Counter(video.label == NORMAL for video in trained) == {True: 800, False: 810}
    assert Counter(video.label == NORMAL for video in tested) == {True: 150, False: 140}
    every = Counter(video.label for video in videos)
    assert set(every) == {NORMAL, *CRIMES}
    assert every == {
        name: {"RoadAccidents": 150, "Robbery": 150, "Burglary": 100, "Stealing": 100, NORMAL: 950}.get(name, 50)
        for name in every
    }
    assert Counter(video.label for video in tested)["Shooting"] == 23


def test_real_ranges_are_one_or_two_of_crimes_and_none_of_ordinary_days(real_root):
    tested = [video for video in ucf_crime.read_videos(real_root) if video.split == "test"]
    assert Counter(len(video.events) for video in tested) == {0: 150, 1: 124, 2: 16}
    assert all(bool(video.events) == (video.label != NORMAL) for video in tested)
    abuse = next(video for video in tested if video.name == "Abuse/Abuse028_x264.mp4")
    assert frame_labels(abuse, 1412).sum() == 240 - 165 + 1


@pytest.mark.usefixtures("undecoded")
def test_the_real_set_has_all_classes_in_all_splits(real_root):
    clips = loaded(real_root)
    assert [len(clips.indices(split)) for split in SPLITS] == [1289, 321, 290]
    for split in SPLITS:
        assert set(clips.action[clips.indices(split)].tolist()) == set(range(14))
