"""CUHK Avenue, made small: videos, and masks in .mat files that scipy writes as MATLAB does."""

import re
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from tests.media import Film
from vidveil.core.errors import DataError, UsageError
from vidveil.data import load_data
from vidveil.data.clips import SPLITS
from vidveil.data.readers import avenue
from vidveil.data.readers.matlab import nonzero_cells
from vidveil.data.untrimmed import frame_labels

TEST = {1: 20, 2: 80}
"""Frames of the tested videos."""
LABELS = {1: [0] * 5 + [1] * 10 + [0] * 5, 2: [1] * 3 + [0] * 70 + [1] * 7}


def masks(path: Path, labels, *, dtype=np.uint8, compressed=True, variable="volLabel") -> Path:
    """A mask for each label, with one pixel set where it is 1."""
    cells = np.empty((1, len(labels)), object)
    for i, label in enumerate(labels):
        cells[0, i] = np.zeros((6, 8), dtype)
        cells[0, i][2, 3] = label
    path.parent.mkdir(parents=True, exist_ok=True)
    scipy.io.savemat(path, {"other": np.arange(3.0), variable: cells}, do_compression=compressed)
    return path


def film(path: Path, frames: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Film(frames=frames, width=64, height=36, codec="mpeg4", bframes=0).make(path)


def made(root: Path, *, films: bool = True) -> Path:
    """Four videos to train on, two to test, and their masks."""
    folder = root / "Avenue Dataset"
    for part, lengths in (("training_videos", {1: 10, 2: 12, 3: 14, 4: 16}), ("testing_videos", TEST)):
        for number, frames in lengths.items():
            path = folder / part / f"{number:02d}.avi"
            path.parent.mkdir(parents=True, exist_ok=True)
            film(path, frames) if films else path.write_bytes(b"video")
    for number, labels in LABELS.items():
        masks(root / avenue.LABELS / f"{number}_label.mat", labels)
    return folder


def test_every_tested_video_has_a_label_for_each_of_its_frames(tmp_path):
    made(tmp_path, films=False)
    videos = avenue.read_videos(tmp_path)
    assert [video.name for video in videos[3:5]] == ["training_videos/04.avi", "testing_videos/01.avi"]
    assert [video.split for video in videos] == ["train", "train", "val", "train", "test", "test"]
    assert [frame_labels(video, video.frames or 0).tolist() for video in videos[4:]] == list(LABELS.values())
    assert [(event.start, event.end) for event in videos[5].events] == [(1, 3), (74, 80)]


def test_a_row_is_a_window_and_training_holds_normal_ones_only(tmp_path):
    made(tmp_path)
    clips = load_data("avenue", root=tmp_path, frames=4, size=28)
    assert clips.ids[-2:] == ["testing_videos/01.avi#frames=0-19", "testing_videos/02.avi#frames=0-79"]
    assert clips.actions == ("Normal", "Abnormal")
    assert [set(clips.action[clips.indices(split)].tolist()) for split in SPLITS] == [{0}, {0}, {1}]
    assert clips.tags["abnormal"].tolist() == [0, 0, 0, 0, 10, 10]
    assert clips.videos.frames(5).shape == (80, 32, 57, 3)  # all frames, a little larger than the view
    assert load_data("avenue", root=tmp_path, frames=4, size=28).videos.folder == clips.videos.folder


@pytest.mark.parametrize("place", ["avenue/Avenue Dataset", "avenue"])
@pytest.mark.parametrize("labels", ["beside", "inside"])
def test_it_may_lie_in_a_folder_of_its_own(tmp_path, place, labels):
    folder = made(tmp_path, films=False)
    (tmp_path / place).parent.mkdir(exist_ok=True)
    folder.rename(tmp_path / place)
    target = (tmp_path / place) if labels == "inside" else (tmp_path / place).parent
    if target != tmp_path:
        shutil.move(tmp_path / "ground_truth_demo", target / "ground_truth_demo")
    assert len(avenue.read_videos(tmp_path)) == 6


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64, bool, np.int16])
def test_masks_are_read_whatever_numbers_they_are_of(tmp_path, dtype, compressed):
    labels = [0, 1, 0, 0, 1, 1]
    path = masks(tmp_path / "1_label.mat", labels, dtype=dtype, compressed=compressed)
    assert nonzero_cells(path, "volLabel").tolist() == [bool(label) for label in labels]


def test_an_empty_mask_and_one_of_a_single_pixel_are_read_too(tmp_path):
    cells = np.empty((1, 3), object)
    cells[0, :] = [np.zeros((0, 0), np.uint8), np.ones((1, 1), np.uint8), np.zeros((1, 2), np.uint8)]
    scipy.io.savemat(tmp_path / "1_label.mat", {"volLabel": cells})
    assert nonzero_cells(tmp_path / "1_label.mat", "volLabel").tolist() == [False, True, False]


def test_labels_by_the_frame_go_before_masks(tmp_path):
    made(tmp_path, films=False)
    np.save(tmp_path / avenue.LABELS / "1_label.npy", np.array([0, 1, 1]))
    assert avenue.read_videos(tmp_path)[4].frames == 3
    for wrong in (np.array([0, 2]), np.zeros((2, 2)), np.zeros(0)):
        np.save(tmp_path / avenue.LABELS / "1_label.npy", wrong)
        with pytest.raises(DataError, match=r"1_label\.npy holds .*: an array \(T,\) of 0 and 1 is wanted"):
            avenue.read_videos(tmp_path)
    np.save(tmp_path / avenue.LABELS / "1_label.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(DataError, match=r"1_label\.npy cannot be read: it should hold an array \(T,\) of 0 and 1"):
        avenue.read_videos(tmp_path)


def test_labels_that_do_not_fit_their_video_are_an_error(tmp_path):
    made(tmp_path)
    masks(tmp_path / avenue.LABELS / "2_label.mat", LABELS[2][:-1])
    with pytest.raises(DataError, match=r"avenue: testing_videos/02\.avi has 80 frames and 79 labels: one of them is"):
        avenue.load(None, root=tmp_path, size=28)


def bomb() -> bytes:
    """A compressed element that is no matrix."""
    packed = zlib.compress(struct.pack("<II", 9, 8) + bytes(8))
    return struct.pack("<II", 15, len(packed)) + packed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data[:-40], "is damaged: take it from the set again"),
        (lambda data: data[:128] + bytes(range(1, 17)), "is damaged"),
        (lambda data: data[:128] + bomb(), "is damaged"),
        (lambda data: data[:128] + b"\x0e\0\0\0\xff\xff\xff\x7f", "is damaged"),
        (
            lambda data: b"MATLAB 7.3" + data[10:],
            r"is of MATLAB 7\.3, which is not read: save it there by save\('2_lab",
        ),
        (lambda data: b"PK" + data[2:126] + b"MI", "is no .mat file of MATLAB 5 to 7"),
        (lambda data: data[:60], "is no .mat file of MATLAB 5 to 7"),
    ],
)
def test_a_mat_file_that_is_not_as_it_should_be_is_named(tmp_path, change, said):
    made(tmp_path, films=False)
    path = tmp_path / avenue.LABELS / "2_label.mat"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataError, match=rf"2_label\.mat {said}"):
        avenue.read_videos(tmp_path)


def test_a_mat_file_of_something_else_is_named(tmp_path):
    path = masks(tmp_path / "1_label.mat", [0, 1], variable="vol")
    with pytest.raises(DataError, match=r"1_label\.mat has no cell array 'volLabel'"):
        nonzero_cells(path, "volLabel")
    cells = np.empty((1, 1), object)
    cells[0, 0] = "text"
    scipy.io.savemat(path, {"volLabel": cells})
    with pytest.raises(DataError, match=r"1_label\.mat is damaged"):
        nonzero_cells(path, "volLabel")


def test_a_copy_that_lacks_something_is_told_what(tmp_path):
    with pytest.raises(DataError, match="no Avenue Dataset/training_videos or"):
        load_data("avenue", root=tmp_path, frames=4, size=28)
    folder = made(tmp_path)
    with pytest.raises(UsageError, match="avenue takes nothing after a colon, not '2'"):
        load_data("avenue:2", root=tmp_path, frames=4, size=28)
    (tmp_path / avenue.LABELS / "2_label.mat").unlink()
    with pytest.raises(DataError, match=rf"no 2_label\.mat in {re.escape(str(tmp_path / avenue.LABELS))}: unpack Aven"):
        avenue.read_videos(tmp_path)
    masks(tmp_path / avenue.LABELS / "2_label.mat", LABELS[2])
    (folder / "training_videos" / "01.avi").write_bytes(b"no video")
    with pytest.raises(DataError, match=r"training_videos/01\.avi"):
        avenue.load(None, root=tmp_path, size=28)
    (folder / "training_videos" / "02.avi").unlink()
    with pytest.raises(DataError, match=r"training_videos has no 02\.avi: unpack the set again"):
        avenue.read_videos(tmp_path)
    film(folder / "training_videos" / "02.avi", 12)
    (folder / "testing_videos" / "01.avi").rename(folder / "testing_videos" / "holiday.avi")
    with pytest.raises(DataError, match=r"holiday\.avi has a name that tells nothing: it should look like 01\.avi"):
        avenue.read_videos(tmp_path)
