"""NTU RGB+D 60: its two official splits, the two with a bias, and folders that are not as they should be."""

import numpy as np
import pytest

from tests.data.made_ntu60 import HAIR, MEN, TESTED, WOMEN, genders, name, ntu
from tests.media import Film
from vidveil.core.errors import DataError
from vidveil.data import load_data
from vidveil.data.clips import SPLITS
from vidveil.data.readers import ntu60


def people_of(clips, split):
    return {int(clips.ids[i][9:12]) for i in clips.indices(split)}


@pytest.mark.parametrize("place", ["", "ntu60/"])
def test_ntu60_is_read_in_its_official_layout(tmp_path, place):
    folder = tmp_path / place / ntu60.FOLDER
    folder.mkdir(parents=True)
    for i, performer in enumerate((1, 2, 3, 4)):
        film = Film(frames=10 + 2 * i, width=64, height=36, codec="mpeg4", bframes=0)
        film.make(folder / name(setup=17, camera=2, performer=performer, replication=2, action=60))
    (folder / "._hidden.avi").touch()
    (folder / "readme.txt").touch()
    clips = load_data("ntu60", root=tmp_path, frames=4, size=28)
    assert clips.name == "ntu60:subject"
    assert clips.gallery == "other action"
    assert [clips.actions[a] for a in clips.action] == ["walking apart from each other"] * 4
    assert clips.videos.frames(1).shape == (6, 32, 57, 3)  # every second of 12 frames, a little larger than the view
    assert {tag: int(values[0]) for tag, values in clips.tags.items()} == {
        "setup": 17, "camera": 2, "replication": 2, "subgroup": -1
    }  # fmt: skip


def test_there_are_sixty_actions_with_names_of_their_own():
    assert len(set(ntu60.ACTIONS)) == len(ntu60.ACTIONS) == 60
    known = {1: "drink water", HAIR: "brushing hair", 9: "standing up (from sitting position)", 43: "falling"}
    assert {number: ntu60.ACTIONS[number - 1] for number in known} == known


@pytest.mark.usefixtures("undecoded")
def test_across_subjects_the_official_twenty_are_training_or_validation_and_nobody_is_in_two_splits(tmp_path):
    ntu(tmp_path)
    clips = ntu60.load("subject", root=tmp_path, size=28)
    train, val, test = (people_of(clips, split) for split in SPLITS)
    assert train | val == {1, 2, 4, 5, 8, 9, 13, 14, 15, 16, 17, 18, 19, 25, 27, 28, 31, 34, 35, 38}
    assert test == set(range(1, 41)) - train - val
    assert len(val) == 4
    assert not train & val
    assert len(set(clips.person.tolist())) == 40


@pytest.mark.usefixtures("undecoded")
def test_across_views_camera_1_is_test_and_validation_is_people_who_are_not_in_training(tmp_path):
    ntu(tmp_path)
    clips = ntu60.load("view", root=tmp_path, size=28)
    assert [set(clips.tags["camera"][clips.indices(split)].tolist()) for split in SPLITS] == [{2, 3}, {2, 3}, {1}]
    train, val, test = (people_of(clips, split) for split in SPLITS)
    assert not train & val
    assert (len(train), len(val), len(test)) == (32, 8, 40)
    one = [i for i, file in enumerate(clips.ids) if "P001" in file]
    assert len(set(clips.person[one].tolist())) == 1  # the same person on both sides,
    assert len(set(clips.group[one].tolist())) == 2  # which the protocol wants, and the check for overlap must let pass


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize(
    ("how", "usual", "hair"),
    [
        ("bias_f", {*MEN, 39} - {10}, {*WOMEN, 10} - {39}),
        ("bias_m", {*WOMEN, 10} - {39}, {*MEN, 39} - {10}),
    ],
)
def test_with_a_bias_one_action_shows_the_other_gender(tmp_path, how, usual, hair):
    ntu(genders(tmp_path))
    clips = ntu60.load(how, root=tmp_path, size=28)
    seen = {1: set(), HAIR: set(), 50: set()}
    for i in np.flatnonzero(clips.split != "test"):
        seen[int(clips.action[i]) + 1].add(int(clips.ids[i][9:12]))
    assert seen == {1: usual, HAIR: hair, 50: usual}
    assert people_of(clips, "test") == set(TESTED)
    assert set(np.bincount(clips.action[clips.indices("test")]).tolist()) == {0, 60}  # 20 people before 3 cameras
    held_out = people_of(clips, "val")
    assert len(held_out & {*WOMEN}) == len(held_out & {*MEN}) == 1
    assert not held_out & {10, 39}  # or no woman would be left to train on in most actions
    assert not held_out & people_of(clips, "train")
    women = [int(file[9:12]) for file, group in zip(clips.ids, clips.tags["subgroup"], strict=True) if group == 0]
    assert {*women} == {*WOMEN, *TESTED[::2]}
    assert not {int(file[9:12]) for file in clips.ids} & {3, 4, 9, 19, 21, 40}
    assert set(clips.action[clips.tags["shortcut"] == 1].tolist()) == {HAIR - 1}
    assert HAIR - 1 not in clips.action[clips.tags["shortcut"] == 0]


@pytest.mark.usefixtures("undecoded")
def test_nobodys_gender_is_guessed(tmp_path):
    ntu(tmp_path)
    clips = ntu60.load(None, root=tmp_path, size=28)
    known = {file[8:12]: int(group) for file, group in zip(clips.ids, clips.tags["subgroup"], strict=True)}
    assert {person: group for person, group in known.items() if group != -1} == {"P010": 1, "P039": 0}
    with pytest.raises(DataError, match=r"that of P001, P002, P005.* is unknown: .*ntu60_subgroups.txt .* as P001 f"):
        ntu60.load("bias_f", root=tmp_path, size=28)


@pytest.mark.usefixtures("undecoded")
def test_a_bias_among_some_of_its_people_is_another_bias(tmp_path):
    ntu(genders(tmp_path), people=[person for person in range(1, 41) if person not in (8, 38)])
    with pytest.raises(
        DataError, match=r"needs videos of all its 34 performers, .* has none of P008, P038 that it uses"
    ):
        ntu60.load("bias_f", root=tmp_path, size=28)


@pytest.mark.usefixtures("undecoded")
def test_setups_of_ntu_120_in_the_same_folder_are_skipped(tmp_path):
    folder = ntu(tmp_path)
    (folder / name(setup=18, performer=41, action=61)).touch()
    assert len(ntu60.load(None, root=tmp_path, size=28)) == 40 * 9
    for path in folder.glob("S001*"):
        path.unlink()
    with pytest.raises(DataError, match=r"holds setups above 17 alone, .*unpack S001 to S017"):
        ntu60.load(None, root=tmp_path, size=28)
