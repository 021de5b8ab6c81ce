"""UCSD Ped1 and Ped2: pictures in folders, and labels per frame out of a Matlab text."""

import cv2
import numpy as np
import pytest

from tests.data.made_ucsd import LINES, ped, video
from vidveil.core.errors import DataError
from vidveil.data import load_data
from vidveil.data.clips import SPLITS
from vidveil.data.readers import ucsd
from vidveil.data.readers.one_class import WINDOW, windows
from vidveil.data.untrimmed import frame_labels


def test_every_tested_video_has_a_label_for_each_of_its_frames(tmp_path):
    ped(tmp_path)
    videos = ucsd.read_videos(tmp_path, "ped2")
    assert [video.name for video in videos[:2]] == ["Train/Train001", "Train/Train002"]
    assert [video.split for video in videos] == ["train", "train", "val", "train", "test", "test"]
    short, long = (frame_labels(video, video.frames or 0).tolist() for video in videos[4:])
    assert short == [0, 0, 1, 1, 1, 0, 0, 0, 0, 0]  # frames count from 1, the last one of a range is in it
    assert long == [1] * 2 + [0] * 67 + [1] * 31
    assert all(not video.events and video.label == "Normal" for video in videos[:4])
    assert [video.frames for video in videos] == [6, 7, 8, 9, 10, 100]
    assert ucsd.read_frames(videos[1])[:, 0, 0, 0].tolist() == list(range(10, 17))


def test_a_row_is_a_window_and_training_holds_normal_ones_only(tmp_path):
    ped(tmp_path)
    clips = load_data("ucsd:ped2", root=tmp_path, frames=4, size=8)
    assert clips.ids[4:] == ["Test/Test001#frames=0-9", "Test/Test002#frames=0-63", "Test/Test002#frames=64-99"]
    assert clips.actions == ("Normal", "Abnormal")
    assert [set(clips.action[clips.indices(split)].tolist()) for split in SPLITS] == [{0}, {0}, {1}]
    assert clips.tags["start"].tolist() == [0, 0, 0, 0, 0, 0, 64]
    assert clips.tags["abnormal"].tolist() == [0, 0, 0, 0, 3, 2, 31]
    assert clips.group.tolist()[-2:] == ["Test/Test002"] * 2
    assert clips.videos.frames(6).shape == (36, 12, 16, 3)
    assert clips.videos.frames(6)[:, 0, 0, 0].tolist() == [100 + i for i in range(64, 100)]
    assert set(clips.person.tolist()) == {-1}


def test_a_window_of_an_abnormal_video_in_which_nothing_happens_is_normal(tmp_path):
    folder = ped(tmp_path)
    (folder / "Test" / "UCSDped2.m").write_text("\n".join([LINES[0], "TestVideoFile{end+1}.gt_frame = [70 99];"]))
    clips = ucsd.load("ped2", root=tmp_path)
    assert clips.action.tolist()[-2:] == [0, 1]
    assert clips.tags["abnormal"].tolist()[-1] == 2


@pytest.mark.parametrize("length", [1, 31, 63, 64, 65, 96, 97, 128, 180, 200, 1439])
def test_windows_hold_every_frame_once_and_none_is_much_shorter_than_the_others(length):
    found = windows(length)
    assert [frame for start, stop in found for frame in range(start, stop)] == list(range(length))
    assert all(WINDOW // 2 < stop - start <= WINDOW * 1.5 for start, stop in found) or len(found) == 1


def test_what_a_macintosh_leaves_behind_is_skipped(tmp_path):
    folder = ped(tmp_path)
    (folder / "Train" / "Train001" / "._001.tif").write_bytes(b"Mac OS X")
    (folder / "Test" / "._Test001").write_bytes(b"Mac OS X")
    (folder / "Test" / ".DS_Store").write_bytes(b"Mac OS X")
    video(folder / "Test" / "Test001_gt", 3, 0)
    assert len(ucsd.load("ped2", root=tmp_path)) == 7


def test_both_walkways_are_found_under_a_folder_of_their_own_too(tmp_path):
    ped(tmp_path / "ucsd", "ped1")
    assert len(load_data("ucsd:ped1", root=tmp_path, frames=4, size=8)) == 7


def test_pictures_that_are_damaged_or_of_several_sizes_are_named(tmp_path):
    damaged = ped(tmp_path) / "Test" / "Test001" / "004.tif"
    damaged.write_bytes(damaged.read_bytes()[:20])
    with pytest.raises(DataError, match=f"{damaged} is no picture that can be read: unpack that video again"):
        ucsd.load("ped2", root=tmp_path)
    cv2.imwrite(str(damaged), np.zeros((6, 8), np.uint8))
    with pytest.raises(DataError, match="Test001 has pictures of several sizes"):
        ucsd.load("ped2", root=tmp_path)


def test_pictures_that_changed_are_read_anew(tmp_path):
    folder = ped(tmp_path)
    before = ucsd.load("ped2", root=tmp_path)
    assert ucsd.load("ped2", root=tmp_path).videos.folder == before.videos.folder
    video(folder / "Train" / "Train005", 8, 77)
    after = ucsd.load("ped2", root=tmp_path)
    assert len(after) == len(before) + 1
