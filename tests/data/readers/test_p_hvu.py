"""P-HVU out of HVU's lists."""

from pathlib import Path

import numpy as np
import pytest

from tests.data.made_p_hvu import WHOLE, listed, made, seconds, video
from tests.media import Film
from vidveil.core.errors import DataError
from vidveil.data import load_data
from vidveil.data.clips import SPLITS
from vidveil.data.readers import p_hvu


def loaded(root: Path, argument: str | None = None) -> "p_hvu.ClipSet":
    return p_hvu.load(argument, root=root, size=28)


def test_p_hvu_is_read_as_the_downloader_leaves_it(tmp_path):
    folder = made(tmp_path, train=3)
    for n, path in enumerate(sorted(folder.glob("*/*.mp4"))):
        Film(frames=12 + 2 * n, width=64, height=48).make(path)
    clips = load_data("p_hvu", root=tmp_path, frames=4, size=28)
    assert [len(clips.indices(split)) for split in SPLITS] == [2, 1, 2]
    assert clips.actions == ("dance", "yoga")
    assert clips.action.tolist() == [-1] * 5
    assert clips.action_labels is not None
    assert clips.action_labels.tolist() == [[1, 0]] * 5
    assert clips.attribute_names == ("object_guitar", "scene_beach")  # the others are on nobody's video
    assert clips.attributes.tolist() == [[1, 1]] * 5
    assert clips.ids[0] == f"train/{seconds('train', 0)}"
    assert clips.group[0] == video("train", 0)
    assert clips.videos.frames(0).shape == (6, 32, 43, 3)
    assert set(clips.person.tolist()) == {-1}


@pytest.mark.usefixtures("undecoded")
def test_only_videos_with_an_action_an_object_and_a_scene_belong_to_it(tmp_path):
    folder = made(tmp_path)
    tags = ["dance|guitar|hall", "dance|guitar", "guitar|hall", "dance|hall", "yoga|dance|tree|beach|hall", "fun"]
    listed(folder, "train", [f"{text},{video('train', i)},{i},{i + 10}" for i, text in enumerate(tags)])
    clips = loaded(tmp_path, "both,every")
    assert clips.group.tolist()[:-2] == [video("train", 0), video("train", 4)]
    assert clips.action_labels is not None
    assert clips.action_labels[:2].tolist() == [[1, 0], [1, 1]]
    assert clips.attribute_names == ("object_guitar", "object_hat", "object_tree", "scene_beach", "scene_hall")
    assert clips.attributes[:2].tolist() == [[1, 0, 0, 0, 1], [0, 0, 1, 1, 1]]


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize(
    ("argument", "names"),
    [
        (None, ["object_guitar", "object_hat", "scene_beach"]),
        ("both", ["object_guitar", "object_hat", "scene_beach"]),
        ("objects", ["object_guitar", "object_hat"]),
        ("scenes", ["scene_beach"]),
        ("scenes,every", ["scene_beach", "scene_hall"]),
    ],
)
def test_attributes_are_what_one_in_a_hundred_has_or_every_tag(tmp_path, argument, names):
    folder = made(tmp_path, train=20)
    tags = [f"dance|guitar|beach{'|hat' * (i < 3)}{'|tree|hall' * (i < 2)}" for i in range(300)]
    listed(folder, "train", [f"{text},{video('train', i)},{i},{i + 10}" for i, text in enumerate(tags)])
    clips = loaded(tmp_path, argument)  # by the list of 300, of which 20 are there
    assert list(clips.attribute_names) == names
    assert clips.name == f"p_hvu:{argument or 'both'}"


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize("place", ["", "videos_"])
@pytest.mark.parametrize("lists", ["", "annotations"])
@pytest.mark.parametrize(
    "name",
    [
        seconds,
        lambda part, i: seconds(part, i).replace(".mp4", "_.mp4"),
        lambda part, i: f"{video(part, i)}_{10 * i:06d}_{10 * i + 100:06d}.mp4",
    ],
)
def test_all_three_ways_in_which_videos_are_called_are_known(tmp_path, name, place, lists, capsys):
    made(tmp_path, name=name, place=place, lists=lists)
    clips = loaded(tmp_path)
    assert len(clips) == 22
    assert clips.ids[3] == f"{place}train/{name('train', 3)}"
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("undecoded")
def test_times_may_have_decimals(tmp_path):
    folder = made(tmp_path)
    listed(folder, "train", [f"{WHOLE},{video('train', 0)},0.4,10.6", f"{WHOLE},{video('train', 1)},1.0,11."])
    assert len(loaded(tmp_path)) == 4


@pytest.mark.usefixtures("undecoded")
def test_videos_that_are_gone_listed_twice_or_in_both_lists_are_left_out(tmp_path, capsys):
    folder = made(tmp_path)
    (folder / "train" / seconds("train", 5)).unlink()
    (folder / "train" / seconds("train", 6)).write_bytes(b"")
    with (folder / p_hvu.LISTS["train"]).open("a") as file:
        file.write(f"yoga|guitar|beach,{video('train', 1)},1,11\n")  # again
        file.write(f"{WHOLE},{video('val', 1)},30,40\n")
    (folder / "train" / f"{video('val', 1)}_000030_000040.mp4").write_bytes(b"video")
    clips = loaded(tmp_path)
    assert len(clips) == 20
    assert clips.action_labels is not None
    assert clips.action_labels[1].tolist() == [1, 0]  # the first line counts
    assert capsys.readouterr().err == "p_hvu: 19 of the 21 videos of HVU_Train_V1.0.csv are there\n"
    assert not set(clips.group[clips.indices("test")]) & set(clips.group[clips.indices("train")])


@pytest.mark.usefixtures("undecoded")
def test_validation_is_a_twentieth_of_training(tmp_path):
    made(tmp_path, train=100)
    assert [len(loaded(tmp_path).indices(split)) for split in SPLITS] == [95, 5, 2]


def test_a_list_that_is_still_packed_is_named(tmp_path):
    folder = made(tmp_path)
    (folder / p_hvu.LISTS["train"]).rename(folder / "HVU_Train_V1.0.zip")
    with pytest.raises(DataError, match=r"HVU_Train_V1\.0\.zip is still packed: unpack it"):
        loaded(tmp_path)


def test_a_tag_that_is_an_object_and_a_scene_has_a_column_of_each():
    clips = [p_hvu.Clip("aaaaaaaaaaa", 0, 1, ("garage",)), p_hvu.Clip("aaaaaaaaaab", 0, 1, ("hat",))]
    np.testing.assert_array_equal(p_hvu.tagged(clips, ["garage", "hat", "garage"]), [[1, 0, 1], [0, 1, 0]])
