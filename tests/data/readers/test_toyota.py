"""Toyota Smarthome: its split by people, and folders that are not as they should be."""

import pytest

from tests.data.made_toyota import TESTED, TRAINED, smarthome
from tests.media import Film
from vidveil.data import load_data
from vidveil.data.clips import SPLITS
from vidveil.data.readers import toyota


def people_of(clips, split):
    return {int(str(clips.group[i])[1:]) for i in clips.indices(split)}


@pytest.mark.parametrize("place", ["", "toyota_smarthome"])
def test_toyota_is_read_in_its_official_layout(tmp_path, place):
    folder = tmp_path / place / "mp4"
    folder.mkdir(parents=True)
    for i, person in enumerate((2, 3, 4, 25)):
        film = Film(frames=10 + 2 * i, width=64, height=48)
        film.make(folder / f"Drink.Fromcup_p{person:02d}_r16_v02_c0{person % 7 + 1}.mp4")
    clips = load_data("toyota", root=tmp_path, frames=4, size=28)
    assert clips.name == "toyota"
    assert clips.actions == ["Drink.Fromcup"]
    assert clips.gallery == "other action"
    assert clips.split.tolist() == ["test", "train", "train", "val"]  # the third of those trained on
    assert clips.tags["camera"].tolist() == [3, 4, 5, 5]
    assert clips.videos.frames(3).shape == (8, 32, 43, 3)


@pytest.mark.usefixtures("undecoded")
def test_eleven_subjects_are_training_and_two_of_them_validation_and_seven_are_test(tmp_path):
    smarthome(tmp_path)
    clips = toyota.load(None, root=tmp_path, size=28)
    train, val, test = (people_of(clips, split) for split in SPLITS)
    assert train | val == {*TRAINED}
    assert test == {*TESTED}
    assert val == {6, 15}
    assert not train & val
    assert clips.actions == ["Cook.Cleandishes", "Walk"]
    assert len(set(clips.person.tolist())) == 18


@pytest.mark.usefixtures("undecoded")
def test_nobody_is_held_out_without_whom_an_activity_could_not_be_learned(tmp_path):
    (smarthome(tmp_path) / "Usetelephone_p06_r00_v01_c01.mp4").touch()
    clips = toyota.load(None, root=tmp_path, size=28)
    assert people_of(clips, "val") == {15, 3}
    assert set(clips.action[clips.indices("train")].tolist()) == {0, 1, 2}


@pytest.mark.usefixtures("undecoded")
def test_subgroups_are_what_a_file_says_and_unknown_without_it(tmp_path):
    folder = smarthome(tmp_path)
    assert set(toyota.load(None, root=tmp_path, size=28).tags["subgroup"].tolist()) == {-1}
    (folder.parent / toyota.GENDERS).write_text("p02 f\n\np03 m\n")
    clips = toyota.load(None, root=tmp_path, size=28)
    known = dict(zip(clips.group.tolist(), clips.tags["subgroup"].tolist(), strict=True))
    assert {person: group for person, group in known.items() if group != -1} == {"p02": 0, "p03": 1}
