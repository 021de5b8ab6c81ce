"""`vidveil data make ucf101_5`: five classes of the published UCF101 become a small set that can be read."""

import csv
import pickle

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.media import Film
from vidveil.cli.app import app
from vidveil.core.errors import DataError
from vidveil.data import load_data
from vidveil.data.readers import make_ucf101_5, ucf101
from vidveil.data.readers.make_ucf101_5 import CLASSES, make

GROUPS = 9


@pytest.fixture
def download(tmp_path):
    """Five classes and one more, a clip per group; the test groups of split S are S, S + 3, S + 6."""
    folder = tmp_path / "download"
    lists = folder / "ucfTrainTestlist"
    lists.mkdir(parents=True)
    names = ("Archery", *CLASSES)
    (lists / "classInd.txt").write_text("".join(f"{i} {name}\n" for i, name in enumerate(names, 1)))
    for name in names:
        for group in range(1, GROUPS + 1):
            path = f"{name}/v_{name}_g{group:02d}_c01.avi"
            for split in (1, 2, 3):
                part = "test" if group % 3 == split % 3 else "train"
                with (lists / f"{part}list0{split}.txt").open("a") as file:
                    file.write(f"{path}\n" if part == "test" else f"{path} 1\n")
            (folder / "UCF-101" / name).mkdir(parents=True, exist_ok=True)
            film = Film(frames=8 + 2 * group, width=64, height=48, codec="mpeg4", bframes=0)
            film.make(folder / "UCF-101" / path)
    return folder


def labels(folder):
    known = [f"{name}/v_{name}_g{group:02d}_c01.mp4" for name in CLASSES for group in range(1, GROUPS)]
    values = {path: np.array([[1, 0, 1, 0, i % 2]]) for i, path in enumerate(known)}
    (folder / ucf101.LABELS).write_bytes(pickle.dumps(values, 4))


def command(*words):
    return CliRunner().invoke(app, ["data", "make", *map(str, words)])


def test_it_becomes_a_set_that_is_read_with_the_official_splits(download, tmp_path, monkeypatch):
    monkeypatch.setattr(make_ucf101_5, "SHORT_SIDE", 32)
    labels(download)
    done = command("ucf101_5", "--from", download, "--data", tmp_path)
    assert done.exit_code == 0, done.output
    assert f"{tmp_path / 'ucf101_5'}: 45 clips of 5 classes and 45 people" in done.output
    for split in (1, 2, 3):
        data = load_data(f"ucf101_5:{split}", frames=4, size=24, root=tmp_path)
        assert list(data.actions) == list(CLASSES)
        tested = {data.ids[row] for row in data.indices("test")}
        groups = [group for group in range(1, GROUPS + 1) if group % 3 == split % 3]
        assert tested == {f"{name}/v_{name}_g{group:02d}_c01.mp4" for name in CLASSES for group in groups}
    row = data.ids.index("Lunges/v_Lunges_g05_c01.mp4")
    frames = data.videos.frames(row)
    assert frames.shape == (9, 32, 42, 3)  # every second of 18 frames; 43 would be odd
    of_nobody = data.ids.index("Lunges/v_Lunges_g09_c01.mp4")
    assert data.attributes[row, :4].tolist() == [1, 0, 1, 0]
    assert np.isnan(data.attributes[of_nobody]).all()


def test_pictures_are_those_of_the_download(download, tmp_path):
    make(download, tmp_path)
    data = load_data("ucf101_5", frames=4, size=24, root=tmp_path)
    whole = load_data("ucf101", frames=4, size=48, root=download)
    for name in ("JumpingJack/v_JumpingJack_g03_c01", "Lunges/v_Lunges_g09_c01"):
        ours = data.videos.frames(data.ids.index(f"{name}.mp4")).astype(float)
        theirs = whole.videos.frames(whole.ids.index(f"{name}.avi")).astype(float)
        assert ours.shape == theirs.shape
        assert np.abs(ours.mean((1, 2, 3)) - theirs.mean((1, 2, 3))).max() < 3


def test_without_labels_attributes_are_unknown_and_the_set_has_none(download, tmp_path, capfd):
    make(download, tmp_path)
    assert "attributes stay unknown" in capfd.readouterr().err
    assert load_data("ucf101_5", frames=4, size=24, root=tmp_path).attribute_names == ()


def test_what_was_interrupted_goes_on_and_what_is_whole_is_left_alone(download, tmp_path, monkeypatch):
    written = []
    write = make_ucf101_5.write_video

    def until_the_seventh(path, frames):
        if len(written) == 7:
            raise KeyboardInterrupt
        written.append(path)
        write(path, frames)

    monkeypatch.setattr(make_ucf101_5, "write_video", until_the_seventh)
    with pytest.raises(KeyboardInterrupt):
        make(download, tmp_path)
    assert not (tmp_path / "ucf101_5" / "manifest.csv").exists()
    again = []
    monkeypatch.setattr(make_ucf101_5, "write_video", lambda path, frames: again.append(path) or write(path, frames))
    made = make(download, tmp_path)
    assert len(again) == 45 - 7
    assert not set(again) & set(written)
    before = (made / "manifest.csv").read_bytes()
    make(download, tmp_path)
    assert len(again) == 45 - 7
    assert (made / "manifest.csv").read_bytes() == before


@pytest.mark.parametrize("given", ["", "UCF-101"])
def test_the_download_may_be_named_by_either_folder(download, tmp_path, given):
    assert make(download / given, tmp_path / "sets").name == "ucf101_5"


def test_what_is_missing_is_named(download, tmp_path):
    with pytest.raises(DataError, match=r"no UCF-101 in .*--from names the folder"):
        make(tmp_path / "nowhere", tmp_path)
    with pytest.raises(DataError, match="no UCF-101 in"):
        make(download / "misspelt", tmp_path)
    (download / "UCF-101/Lunges/v_Lunges_g05_c01.avi").unlink()
    with pytest.raises(DataError, match=r"lacks Lunges/v_Lunges_g05_c01.avi: 1 of 45 videos"):
        make(download, tmp_path)
    (download / "UCF-101/Lunges/v_Lunges_g05_c01.avi").write_bytes(b"no video")
    with pytest.raises(DataError, match=r"v_Lunges_g05_c01.avi cannot be decoded.*fetch it again"):
        make(download, tmp_path)


def test_lists_that_know_no_such_class_or_differ_are_refused(download, tmp_path):
    lists = download / "ucfTrainTestlist"
    whole = (lists / "trainlist02.txt").read_text()
    (lists / "trainlist02.txt").write_text("\n".join(line for line in whole.splitlines() if "Lunges" not in line))
    (lists / "testlist02.txt").write_text("Archery/v_Archery_g01_c01.avi\n")
    with pytest.raises(DataError, match=r"split 2 in .* have no clips of"):
        make(download, tmp_path)


def test_a_clip_that_other_splits_do_not_know_is_refused_before_anything_is_written(download, tmp_path):
    lists = download / "ucfTrainTestlist"
    whole = (lists / "trainlist03.txt").read_text().splitlines()
    (lists / "trainlist03.txt").write_text("\n".join(line for line in whole if "Lunges_g01" not in line))
    with pytest.raises(DataError, match=r"Lunges_g01_c01.avi is in split 1 and not in the others"):
        make(download, tmp_path / "sets")
    assert not (tmp_path / "sets").exists()


def test_what_cannot_be_made_is_refused(download, monkeypatch):
    monkeypatch.delenv("VIDVEIL_DATA", raising=False)
    assert "cannot be made" in str(command("weizmann", "--from", download).exception)
    assert "where to?" in str(command("ucf101_5", "--from", download).exception)


def test_the_official_lists_and_labels_give_the_published_manifest(tmp_path, monkeypatch, real_sets, real_labels):
    download = tmp_path / "download"
    download.mkdir()
    (download / "labels").symlink_to(real_labels / "labels")
    (download / "ucfTrainTestlist").symlink_to(real_labels / "labels" / "ucf101_splits")
    with (real_sets / "ucf101_5" / "manifest.csv").open(newline="") as file:
        theirs = list(csv.DictReader(file))
    for row in theirs:
        video = (download / "UCF-101" / row["path"]).with_suffix(".avi")
        video.parent.mkdir(parents=True, exist_ok=True)
        video.touch()
    monkeypatch.setattr(make_ucf101_5, "_write_videos", lambda *_: (tmp_path / "ucf101_5").mkdir())
    with (make(download, tmp_path) / "manifest.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == theirs
