"""CASIA-B: walks out of folders of pictures, and folders that are not as they should be."""

import numpy as np
import pytest

from tests.data.made_casia import body, walk
from vidveil.core.errors import DataError
from vidveil.data import load_data
from vidveil.data.clips import SPLITS
from vidveil.data.readers import casia_b


def walks(root, people=(1, 2, 3, 75)):
    for person in people:
        walk(root, f"{person:03d}/nm-01/000", frames=2 + person % 5)
    return root / casia_b.FOLDER


def test_casia_b_is_read_in_its_official_layout(tmp_path):
    walks(tmp_path)
    walk(tmp_path, "075/nm-05/018", frames=4)
    walk(tmp_path, "075/bg-02/180", frames=5)
    walk(tmp_path, "075/cl-01/090", frames=6)
    (tmp_path / casia_b.FOLDER / "075/cl-01/090/Thumbs.db").touch()
    clips = load_data("casia_b", root=tmp_path, frames=4, size=64)
    assert clips.ids[3:] == ["075/bg-02/180", "075/cl-01/090", "075/nm-01/000", "075/nm-05/018"]
    assert clips.split.tolist() == ["train", "train", "val", "test", "test", "test", "test"]
    assert clips.person.tolist() == [0, 1, 2, 3, 3, 3, 3]
    everybody = load_data("casia_b:all", root=tmp_path, frames=4, size=64)
    assert set(everybody.split.tolist()) == {"test"}
    assert everybody.tags["gallery"].tolist() == clips.tags["gallery"].tolist()
    assert clips.tags["view"].tolist() == [0, 0, 0, 180, 90, 0, 18]
    assert clips.tags["condition"].tolist() == [0, 0, 0, 1, 2, 0, 0]
    assert clips.tags["repetition"].tolist() == [1, 1, 1, 2, 1, 1, 5]
    assert clips.tags["gallery"].tolist() == [1, 1, 1, 0, 0, 1, 0]
    assert [clips.videos.frames(i).shape[0] for i in range(7)] == [3, 4, 5, 5, 6, 2, 4]
    video = clips.videos.frames(0)
    assert video.shape[1:] == (64, 64, 3)
    assert set(np.unique(video).tolist()) == {0, 255}


def test_the_first_74_people_are_training_or_validation_and_the_other_50_test(tmp_path):
    walks(tmp_path, people=range(1, 125))
    clips = casia_b.load(None, root=tmp_path)
    train, val, test = ({int(p) for p in clips.group[clips.indices(split)]} for split in SPLITS)
    assert train | val == set(range(1, 75))
    assert test == set(range(75, 125))
    assert len(val) == 15
    assert not train & val


def test_a_silhouette_fills_the_height_and_stands_in_the_middle_wherever_it_walks():
    for height, at in ((200, 3), (100, 150), (50, 290)):
        found = casia_b.aligned(body(height, at=at, width=height // 4) > 0)
        rows, columns = (np.flatnonzero(found.any(axis=axis)) for axis in (1, 0))
        assert (rows[0], rows[-1]) == (0, 63)
        assert len(columns) == pytest.approx(16, abs=1)
        assert (columns[0] + columns[-1]) / 2 == pytest.approx(32, abs=1)


def test_a_silhouette_at_the_edge_is_not_shifted_by_it():
    inside, cut = (casia_b.aligned(body(64, at=at, width=16) > 0) for at in (100, 304))
    assert (inside == cut).all()
    assert casia_b.aligned(body(3, at=0, width=13) > 0) is None  # 39 pixels are nobody


def test_pictures_without_anybody_are_skipped(tmp_path):
    walks(tmp_path)
    walk(tmp_path, "075/nm-02/000", frames=4, nobody=3)
    clips = casia_b.load(None, root=tmp_path)
    assert len(clips.videos.frames(4)) == 4


def test_walks_without_anybody_are_named_all_at_once(tmp_path):
    walks(tmp_path)
    for view in ("000", "018"):
        walk(tmp_path, f"075/nm-02/{view}", frames=0, nobody=3)
    with pytest.raises(DataError, match=r"nobody is in any picture of .*nm-02/000, .*nm-02/018: remove what shows no"):
        casia_b.load(None, root=tmp_path)


def test_a_missing_walk_is_no_error_and_empty_folders_are_counted(tmp_path):
    walks(tmp_path)
    (tmp_path / casia_b.FOLDER / "075/nm-02/000").mkdir(parents=True)
    clips = casia_b.load(None, root=tmp_path)
    assert len(clips) == 4
    assert clips.videos.about["empty"] == 1


def test_many_empty_folders_are_a_copy_that_was_not_unpacked(tmp_path):
    folder = walks(tmp_path)
    for view in ("000", "018"):
        (folder / "075/nm-02" / view).mkdir(parents=True)
    with pytest.raises(
        DataError, match=r"2 of 6 walks have no \.png, .*075/nm-02/000 holds none: unpack the set again"
    ):
        casia_b.load(None, root=tmp_path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("125/nm-01/000", "125 should be a person, 001 to 124, as in GaitDatasetB-silh/001/nm-01/000"),
        (
            "075/075/nm-01/000",
            "075/075 should be nm-01 to nm-06, bg-01, bg-02, cl-01 or cl-02",
        ),  # unpacked one too deep
        ("075/bg-03/000", "075/bg-03 should be nm-01"),
        ("075/nm-01/019", "075/nm-01/019 should be a view, 000, 018 and so on to 180"),
    ],
)
def test_a_folder_that_lies_where_it_should_not_is_named(tmp_path, path, message):
    walks(tmp_path)
    walk(tmp_path, path)
    with pytest.raises(DataError, match=message):
        casia_b.load(None, root=tmp_path)


def test_what_is_packed_or_damaged_is_named(tmp_path):
    folder = walks(tmp_path)
    (folder / "076.tar.gz").touch()
    with pytest.raises(DataError, match=r"076\.tar\.gz is still packed: unpack it in .*GaitDatasetB-silh"):
        casia_b.load(None, root=tmp_path)
    (folder / "076.tar.gz").rename(folder / "075.tar.gz")  # of what is unpacked
    damaged = folder / "075/nm-01/000/075-nm-01-000-001.png"
    damaged.write_bytes(damaged.read_bytes()[:20])
    with pytest.raises(DataError, match=f"{damaged} is no picture that can be read: unpack that walk again"):
        casia_b.load(None, root=tmp_path)
    with pytest.raises(DataError, match="cannot be listed: it should hold folders called a person, 001 to 124"):
        casia_b.load(None, root=tmp_path / "nowhere")


def test_pictures_that_changed_are_read_anew(tmp_path):
    folder = walks(tmp_path)
    before = casia_b.load(None, root=tmp_path)
    assert casia_b.load(None, root=tmp_path).videos.folder == before.videos.folder
    (folder / "075/nm-01/000/075-nm-01-000-002.png").unlink()
    after = casia_b.load(None, root=tmp_path)
    assert len(after.videos.frames(3)) == len(before.videos.frames(3)) - 1
