"""CUHK Avenue: normal training videos, and test videos with masks."""

import shutil

import numpy as np
import pytest
import scipy.io

from tests.data.made_avenue import LABELS, made, masks
from vidveil.core.errors import DataError
from vidveil.data import load_data
from vidveil.data.clips import SPLITS
from vidveil.data.readers import avenue
from vidveil.data.readers.matlab import nonzero_cells
from vidveil.data.untrimmed import frame_labels


def test_every_tested_video_has_a_label_for_each_of_its_frames(tmp_path):
    made(tmp_path)
    videos = avenue.read_videos(tmp_path)
    assert [video.name for video in videos[3:5]] == ["training_videos/04.avi", "testing_videos/01.avi"]
    assert [video.split for video in videos] == ["train", "train", "val", "train", "test", "test"]
    assert [frame_labels(video, video.frames or 0).tolist() for video in videos[4:]] == list(LABELS.values())
    assert [(event.start, event.end) for event in videos[5].events] == [(1, 3), (74, 80)]


def test_a_row_is_a_window_and_training_holds_normal_ones_only(tmp_path):
    made(tmp_path, film=True)
    clips = load_data("avenue", root=tmp_path, frames=4, size=28)
    assert clips.ids[-2:] == ["testing_videos/01.avi#frames=0-19", "testing_videos/02.avi#frames=0-79"]
    assert clips.actions == ("Normal", "Abnormal")
    assert [set(clips.action[clips.indices(split)].tolist()) for split in SPLITS] == [{0}, {0}, {1}]
    assert clips.tags["abnormal"].tolist() == [0, 0, 0, 0, 10, 10]
    assert clips.videos.frames(5).shape == (80, 32, 57, 3)  # all frames, a little larger than the view
    assert load_data("avenue", root=tmp_path, frames=4, size=28).videos.folder == clips.videos.folder


@pytest.mark.parametrize("place", ["avenue/Avenue Dataset", "avenue"])
@pytest.mark.parametrize("labels", ["next to it", "inside"])
def test_it_may_lie_in_a_folder_of_its_own(tmp_path, place, labels):
    folder = made(tmp_path)
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


def test_labels_per_frame_take_precedence_over_masks(tmp_path):
    made(tmp_path)
    np.save(tmp_path / avenue.LABELS / "1_label.npy", np.array([0, 1, 1]))
    assert avenue.read_videos(tmp_path)[4].frames == 3


def test_labels_that_do_not_fit_their_video_are_an_error(tmp_path):
    made(tmp_path, film=True)
    masks(tmp_path / avenue.LABELS / "2_label.mat", LABELS[2][:-1])
    with pytest.raises(DataError, match=r"avenue: testing_videos/02\.avi has 80 frames and 79 labels: one of them is"):
        avenue.load(None, root=tmp_path, size=28)


def test_a_mat_file_of_something_else_is_named(tmp_path):
    path = masks(tmp_path / "1_label.mat", [0, 1], variable="vol")
    with pytest.raises(DataError, match=r"1_label\.mat has no cell array 'volLabel'"):
        nonzero_cells(path, "volLabel")
    cells = np.empty((1, 1), object)
    cells[0, 0] = "text"
    scipy.io.savemat(path, {"volLabel": cells})
    with pytest.raises(DataError, match=r"1_label\.mat is damaged"):
        nonzero_cells(path, "volLabel")


def test_a_training_video_that_cannot_be_decoded_is_named(tmp_path):
    made(tmp_path)
    with pytest.raises(DataError, match=r"training_videos/01\.avi cannot be decoded"):
        avenue.load(None, root=tmp_path, size=28)
