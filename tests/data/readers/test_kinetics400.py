"""Kinetics-400 as it lies after a download: a small set made for tests, and the real names of classes."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.data.made_kinetics400 import CLASSES, HEAD, file, folder_of, lists, made, video
from vidveil.core.errors import DataError
from vidveil.data import available, load_data
from vidveil.data.clips import SPLITS
from vidveil.data.readers import kinetics400
from vidveil.data.readers.splits import hold_out_videos


def loaded(root: Path) -> "kinetics400.ClipSet":
    return kinetics400.load(None, root=root, size=28)


def test_kinetics_is_read_as_it_lies_after_a_download(tmp_path):
    clips = load_data("kinetics400", root=made(tmp_path, film=True), frames=4, size=28)
    assert available("kinetics400", tmp_path) == "part: 10 of 266,440 videos"
    assert clips.actions == [name.replace(" ", "_") for name in CLASSES]
    assert clips.action.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 0, 1]
    assert [len(clips.indices(split)) for split in SPLITS] == [6, 2, 2]
    assert sorted(clips.action[clips.indices("val")].tolist()) == [0, 1]
    assert clips.group[0] == video("train", 0, 0)
    assert set(clips.person.tolist()) == {-1}
    assert clips.attributes.shape == (10, 0)
    assert clips.videos.frames(0).shape == (6, 32, 43, 3)  # every second of 12 frames, a little larger than the view


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize(("place", "name"), [("", "val.csv"), ("", "validate.csv"), ("annotations", "val.csv")])
@pytest.mark.parametrize("flat", [False, True])
def test_listed_videos_are_found_in_folders_of_classes_or_in_none(tmp_path, flat, place, name):
    lists(made(tmp_path), "train", place=place)
    lists(tmp_path, "val", place=place, name=name)
    if flat:
        for path in sorted((tmp_path / "kinetics400").glob("*/*/*.mp4")):
            path.rename(path.parent.parent / path.name)
    clips = loaded(tmp_path)
    assert clips.actions == sorted(CLASSES)  # as listed, not as folders are called
    assert clips.action.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 0, 1]
    assert clips.ids[0] == ("train/" if flat else "train/air_drumming/") + file("train", 0, 0)


@pytest.mark.usefixtures("undecoded")
def test_videos_that_are_gone_from_youtube_are_left_out_and_counted(tmp_path, capsys):
    lists(made(tmp_path), "train", gone=2)
    lists(tmp_path, "val")
    (folder_of(tmp_path, "train", CLASSES[0]) / file("train", 0, 3)).write_bytes(b"")  # of a download that failed
    clips = loaded(tmp_path)
    assert len(clips.indices("test")) == 2
    assert len(clips) == 9
    assert capsys.readouterr().err == "kinetics400: 7 of the 12 videos of train.csv are there\n"


@pytest.mark.usefixtures("undecoded")
def test_no_video_of_youtube_is_in_training_and_test(tmp_path):
    trained = folder_of(made(tmp_path), "train", CLASSES[0])
    shutil.copy(
        folder_of(tmp_path, "val", CLASSES[1]) / file("val", 1, 0), trained / f"{video('val', 1, 0)}_000099_000109.mp4"
    )
    clips = loaded(tmp_path)
    assert len(clips) == 10
    assert not {clips.group[i] for i in clips.indices("test")} & {clips.group[i] for i in clips.indices("train")}


def test_validation_is_a_twentieth_of_each_class_and_does_not_hang_on_what_is_missing():
    videos = [f"video{i:06d}" for i in range(1000)]
    action = np.repeat([0, 1], [600, 400])
    held_out = hold_out_videos(videos, action)
    assert [sum(name in held_out for name in part) for part in (videos[:600], videos[600:])] == [30, 20]
    there = np.random.default_rng(0).random(1000) > 0.1
    fewer = hold_out_videos(np.array(videos)[there].tolist(), action[there])
    assert len(fewer & held_out) >= 0.9 * len(fewer)
    assert hold_out_videos(["alone"], np.array([0])) == set()  # or nothing would be left for training


@pytest.mark.usefixtures("undecoded")
def test_a_video_that_shows_two_actions_stays_on_one_side(tmp_path):
    made(tmp_path)
    for i in range(4):
        path = folder_of(tmp_path, "train", CLASSES[0]) / file("train", 0, i)
        shutil.copy(path, folder_of(tmp_path, "train", CLASSES[1]) / f"{video('train', 0, i)}_000050_000060.mp4")
    clips = loaded(tmp_path)  # which refuses a group in two splits
    assert len(clips) == 14
    assert len(clips.indices("val")) >= 2


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize("place", ["", "kinetics400", "labels"])
def test_classes_have_the_order_of_the_map_if_it_is_there(tmp_path, place):
    path = made(tmp_path) / place / kinetics400.NAMES
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(["zumba", CLASSES[1], CLASSES[0]]) + "\n")
    clips = loaded(tmp_path)
    assert clips.actions == ["zumba", CLASSES[1], CLASSES[0]]
    assert clips.action.tolist() == [2, 2, 2, 2, 1, 1, 1, 1, 2, 1]
    path.write_text(CLASSES[0])
    with pytest.raises(
        DataError, match=rf"{kinetics400.NAMES} has no class 'tying_knot_\(not_on_a_tie\)': it should name"
    ):
        loaded(tmp_path)
    path.write_text("\n".join([*CLASSES, "Air_Drumming"]))
    with pytest.raises(DataError, match="'air drumming' and 'Air_Drumming' are one class by their letters"):
        loaded(tmp_path)


@pytest.mark.usefixtures("undecoded")
def test_lists_and_folders_that_leave_nothing_to_use_are_refused(tmp_path):
    lists(made(tmp_path), "val", place="annotations").write_text(f"{HEAD}\nyoga,aaaaaaaaaaa,1,11,val\n")
    with pytest.raises(
        DataError,
        match=r"none of the 1 videos that .*val\.csv lists is there: .*aaaaaaaaaaa_000001.* in \S+0/kinetics400/val or",
    ):
        loaded(tmp_path)
    (tmp_path / "kinetics400" / "annotations" / "val.csv").unlink()
    for name in CLASSES:
        shutil.rmtree(folder_of(tmp_path, "val", name))
        shutil.copytree(folder_of(tmp_path, "train", name), folder_of(tmp_path, "val", name))
    with pytest.raises(DataError, match=r"are in .*val too: nothing is left to train on"):
        loaded(tmp_path)


def test_a_disk_without_room_is_reported_before_anything_is_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=0, used=0, free=10**6))
    with pytest.raises(DataError, match=r"take about (\d+) GB and .* left: set VIDVEIL_CACHE") as refused:
        kinetics400.load(None, root=made(tmp_path, train=500), size=112)
    size = re.search(r"about (\d+) GB", str(refused.value))
    assert size is not None
    assert 1400 < int(size[1]) / 1002 * 260_000 < 1800  # all of it, as the documentation says


@pytest.mark.usefixtures("undecoded")
def test_the_real_names_are_400_and_folders_with_underscores_find_them(tmp_path, real_labels):
    names = (real_labels / "labels" / kinetics400.NAMES).read_text().splitlines()
    assert len(names) == 400
    assert set(CLASSES) < set(names)
    (made(tmp_path) / kinetics400.NAMES).write_text("\n".join(names))
    labels = [name.replace(" ", "_").replace("'", "").replace("(", "").replace(")", "") for name in names]
    number, known = kinetics400.number_classes(tmp_path, labels)
    assert number.tolist() == list(range(400))
    assert known == names == sorted(names)
    clips = loaded(tmp_path)
    assert len(clips.actions) == 400
    assert {known[i] for i in clips.action} == set(CLASSES)
