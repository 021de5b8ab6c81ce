"""UCSD Ped1 and Ped2: pictures in folders, and labels by the frame out of a Matlab text."""

import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from vidveil.core.errors import DataError, UsageError
from vidveil.data import load_data
from vidveil.data.clips import SPLITS
from vidveil.data.readers import ucsd
from vidveil.data.readers.one_class import WINDOW, windows
from vidveil.data.untrimmed import frame_labels

LINES = ("TestVideoFile{end+1}.gt_frame = [3:5];", "TestVideoFile{end+1}.gt_frame = [1:2, 70:100];")


def video(folder: Path, frames: int, shade: int) -> None:
    """Pictures that tell their number."""
    folder.mkdir(parents=True)
    for i in range(frames):
        cv2.imwrite(str(folder / f"{i + 1:03d}.tif"), np.full((12, 16), shade + i, np.uint8))


def ped(root: Path, which: str = "ped2", train: int = 4) -> Path:
    """Short videos to train on, and two to test: one of 10 frames, one of 100."""
    folder = root / ucsd.FOLDER / ucsd.SETS[which]
    for i in range(train):
        video(folder / "Train" / f"Train{i + 1:03d}", 6 + i, 10 * i)
    for i, frames in enumerate((10, 100)):
        video(folder / "Test" / f"Test{i + 1:03d}", frames, 100)
    (folder / "Test" / f"{ucsd.SETS[which]}.m").write_text("\r\n".join(["TestVideoFile = {};", *LINES, ""]))
    return folder


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


def test_what_a_macintosh_leaves_behind_is_passed_over(tmp_path):
    folder = ped(tmp_path)
    (folder / "Train" / "Train001" / "._001.tif").write_bytes(b"Mac OS X")
    (folder / "Test" / "._Test001").write_bytes(b"Mac OS X")
    (folder / "Test" / ".DS_Store").write_bytes(b"Mac OS X")
    video(folder / "Test" / "Test001_gt", 3, 0)
    assert len(ucsd.load("ped2", root=tmp_path)) == 7


def test_both_walkways_are_found_under_a_folder_of_their_own_too(tmp_path):
    ped(tmp_path / "ucsd", "ped1")
    assert len(load_data("ucsd:ped1", root=tmp_path, frames=4, size=8)) == 7
    with pytest.raises(DataError, match=r"UCSDped2/Train cannot be listed: it should hold folders Train001, Train002"):
        load_data("ucsd:ped2", root=tmp_path, frames=4, size=8)
    with pytest.raises(UsageError, match="ucsd has ped1 and ped2, not 'ped3'; write ucsd:ped1"):
        load_data("ucsd:ped3", root=tmp_path, frames=4, size=8)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([LINES[0]], r"UCSDped2\.m tells of 1 videos and .*Test holds 2, Test001 to Test002: unpack the set again"),
        ([LINES[0], "TestVideoFile{end+1}.gt_frame = [5-90];"], r"line 2: TestVideoFile\{end\+1\}.* is wanted, not"),
        ([LINES[0], "TestVideoFile{end+1}.gt_frame = [];"], "line 2: "),
        (["TestVideoFile{end+1}.gt_frame = [3:11];", LINES[1]], r"has 3:11 for Test001, which has frames 1 to 10: unp"),
        (["TestVideoFile{end+1}.gt_frame = [5:3];", LINES[1]], r"has 5:3 for Test001"),
        (["TestVideoFile{end+1}.gt_frame = [0:3];", LINES[1]], r"has 0:3 for Test001"),
        (["% nothing"], r"UCSDped2\.m names no abnormal frames: a line is TestVideoFile"),
    ],
)
def test_labels_that_make_no_sense_are_named(tmp_path, lines, said):
    folder = ped(tmp_path)
    (folder / "Test" / "UCSDped2.m").write_text("\n".join(lines))
    with pytest.raises(DataError, match=said):
        ucsd.read_videos(tmp_path, "ped2")


def test_a_copy_that_lacks_something_is_told_what(tmp_path):
    folder = ped(tmp_path)
    (folder / "Test" / "Test002" / "050.tif").unlink()
    with pytest.raises(
        DataError, match=r"Test002 has no 050\.tif: pictures are numbered from 001\.tif on; unpack that"
    ):
        ucsd.load("ped2", root=tmp_path)
    shutil.rmtree(folder / "Train" / "Train002")
    with pytest.raises(DataError, match="Train has no folder Train002: unpack the set again"):
        ucsd.load("ped2", root=tmp_path)
    (folder / "Train" / "Train004").rename(folder / "Train" / "Train002")
    shutil.rmtree(folder / "Test" / "Test002")
    video(folder / "Test" / "Test002", 100, 100)
    damaged = folder / "Test" / "Test001" / "004.tif"
    damaged.write_bytes(damaged.read_bytes()[:20])
    with pytest.raises(DataError, match=f"{damaged} is no picture that can be read: unpack that video again"):
        ucsd.load("ped2", root=tmp_path)
    cv2.imwrite(str(damaged), np.zeros((6, 8), np.uint8))
    with pytest.raises(DataError, match="Test001 has pictures of several sizes"):
        ucsd.load("ped2", root=tmp_path)
    (folder / "Test" / "UCSDped2.m").unlink()
    with pytest.raises(DataError, match=r"UCSDped2\.m cannot be read"):
        ucsd.load("ped2", root=tmp_path)


def test_pictures_that_changed_are_read_anew(tmp_path):
    folder = ped(tmp_path)
    before = ucsd.load("ped2", root=tmp_path)
    assert ucsd.load("ped2", root=tmp_path).videos.folder == before.videos.folder
    video(folder / "Train" / "Train005", 8, 77)
    after = ucsd.load("ped2", root=tmp_path)
    assert len(after) == len(before) + 1


def test_nothing_can_be_attacked_there_and_evaluation_says_so(tmp_path):
    from rich.console import Console

    from vidveil.evaluation.protocols.clips import Engine
    from vidveil.evaluation.recipes.clips import EvaluateRecipe

    ped(tmp_path)
    clips = ucsd.load("ped2", root=tmp_path)
    recipe = EvaluateRecipe(name="none", data="ucsd:ped2", method="raw")
    with pytest.raises(DataError, match="ucsd:ped2 names neither people nor attributes: there is nothing to attack"):
        Engine(recipe, clips, None, tmp_path, Console())  # type: ignore[arg-type]
