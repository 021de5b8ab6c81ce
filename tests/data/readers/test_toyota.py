"""Toyota Smarthome: its split by people, and folders that are not as they should be."""

import pytest

from tests.data.made_toyota import TESTED, TRAINED, smarthome
from tests.media import Film
from vidveil.core.errors import DataError
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


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("Walk_p02_r00_v11.mp4", "has no valid name: it should look like Cook.Cleandishes_p02_r00_v02_c03.mp4"),
        ("_p02_r00_v11_c01.mp4", "has no valid name"),
        ("Walk_p05_r00_v11_c01.mp4", "no subject is called p05; there are p02, p03, p04, p06"),
        ("Walk_p02_r00_v11_c08.mp4", "no camera is called c08; there are c01 to c07"),
    ],
)
def test_a_file_with_a_name_that_cannot_be_is_named_with_how_it_should_look(tmp_path, file, message):
    path = smarthome(tmp_path) / file
    path.touch()
    with pytest.raises(DataError, match=message) as refused:
        toyota.load(None, root=tmp_path, size=28)
    assert str(path) in str(refused.value)


@pytest.mark.usefixtures("undecoded")
def test_a_folder_without_videos_or_without_the_people_of_a_split_is_refused(tmp_path):
    smarthome(tmp_path / "none", people=())
    with pytest.raises(DataError, match=r"mp4 holds no \.mp4 file: videos such as Cook\.Cleandishes_p02"):
        toyota.load(None, root=tmp_path / "none", size=28)
    smarthome(tmp_path / "trained", people=TRAINED)
    with pytest.raises(DataError, match="toyota: of the people here nobody is tested; unpack all of the set"):
        toyota.load(None, root=tmp_path / "trained", size=28)
    smarthome(tmp_path / "tested", people=TESTED)
    with pytest.raises(DataError, match="of nobody none can be spared"):
        toyota.load(None, root=tmp_path / "tested", size=28)


def test_files_that_are_no_videos_are_named(tmp_path):
    smarthome(tmp_path)
    message = r"cannot be decoded.*: Cook\.Cleandishes_p02_r00_v11_c03\.mp4 \(it is empty\)"
    with pytest.raises(DataError, match=message):
        toyota.load(None, root=tmp_path, size=28)
