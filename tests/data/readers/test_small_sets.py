"""Small sets in folders of their own: UCF101's five classes, Weizmann, fights, and CASIA-A's silhouettes."""

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.data.made import InMemory
from tests.data.made_casia import casia_a as silhouettes
from tests.data.made_weizmann import weizmann as small_weizmann
from tests.media import Film
from vidveil.core.errors import DataError
from vidveil.data.clips import SPLITS
from vidveil.data.readers import casia_a, surveillance_fight, ucf101, ucf101_5, weizmann
from vidveil.data.readers.annotations import read_table
from vidveil.data.readers.vp_labels import read_labels


def table(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def squats(root: Path) -> list[dict[str, object]]:
    rows = []
    for name in ("Lunges", "Squats"):
        for group in range(1, 9):
            path = f"{name}/v_{name}_g{group:02d}_c01.mp4"
            split = "test" if group < 3 else "train"
            labels = {"skin_color": 1, "face": group % 2, "gender": 1, "nudity": 0, "relationship": 0}
            rows.append({"path": path, "class": name, "group": group, "split1": split, **labels})
            (root / "ucf101_5" / name).mkdir(parents=True, exist_ok=True)
            Film(frames=1 + len(rows), width=32, height=32).make(root / "ucf101_5" / path)
    return rows


def test_ucf101_5_knows_class_group_split_and_attributes(tmp_path):
    table(tmp_path / "ucf101_5" / "manifest.csv", squats(tmp_path))
    clips = ucf101_5.load(None, root=tmp_path)
    assert len(clips) == 16
    assert clips.actions == ["Lunges", "Squats"]
    assert clips.gallery == "same action"
    assert len(set(clips.person.tolist())) == 16
    assert clips.split.tolist() == 2 * ["test", "test", "train", "train", "val", "train", "train", "train"]
    assert clips.attribute_names[1] == "face"
    assert clips.attributes[:, 1].tolist() == [group % 2 for group in range(1, 9)] * 2
    assert [len(clips.videos.frames(i)) for i in range(16)] == list(range(2, 18))


def test_a_group_in_two_splits_is_an_error(tmp_path):
    rows = squats(tmp_path)
    extra = {**rows[0], "path": "Lunges/v_Lunges_g01_c02.mp4", "split1": "train"}
    Film(frames=30, width=32, height=32).make(tmp_path / "ucf101_5" / str(extra["path"]))
    table(tmp_path / "ucf101_5" / "manifest.csv", [*rows, extra])
    with pytest.raises(DataError, match=r"the group of Lunges.* is in both test and train"):
        ucf101_5.load("1", root=tmp_path)


@pytest.mark.usefixtures("undecoded")
def test_weizmann_leaves_out_people_or_actions_and_each_is_tested_once(tmp_path):
    small_weizmann(tmp_path, film=False)
    for what, number in (("people", 9), ("actions", 10)):
        tested = []
        for fold in range(3):
            clips = weizmann.load(f"{what}={fold}", root=tmp_path)
            assert clips.gallery == "other action"
            left_out = clips.person if what == "people" else clips.action
            parts = [set(left_out[clips.indices(split)].tolist()) for split in SPLITS]
            assert sum(map(len, parts)) == number
            assert len(set.union(*parts)) == number
            assert len(parts[1]) == 2
            tested += sorted(parts[2])
        assert sorted(tested) == list(range(number))
    assert weizmann.load(None, root=tmp_path).name == "weizmann:people=0"


def test_one_camera_is_never_in_two_splits():
    rng = np.random.default_rng(0)
    places = rng.integers(0, 256, (12, 8, 12, 3))
    where = np.arange(60) % 12
    videos = []
    for place in where:  # the same blocks under other noise
        seen = np.kron(places[place], np.ones((4, 4, 1))) + rng.normal(0, 12, (6, 32, 48, 3))
        videos.append(np.clip(seen, 0, 255).astype(np.uint8))
    found = surveillance_fight.scenes(InMemory(videos))
    assert found.tolist() == where.tolist()
    split = surveillance_fight.split_scenes(found, np.arange(60) // 12 % 2)
    for place in range(12):
        assert len(set(split[where == place].tolist())) == 1
    assert {part: int((split == part).sum()) for part in SPLITS} == {"train": 35, "val": 10, "test": 15}


def test_gait_silhouettes_come_out_of_their_bits(tmp_path):
    frames = silhouettes(tmp_path / "casia_a_gait.npz")
    clips = casia_a.load(None, root=tmp_path)
    assert len(clips) == 240
    for i in (0, 1, 100, 239):
        np.testing.assert_array_equal(clips.videos.frames(i), np.repeat(frames[i][..., None], 3, 3) * 255)
    assert set(clips.split.tolist()) == {"test"}
    assert clips.tags["view"][:12].tolist() == [0] * 4 + [45] * 4 + [90] * 4
    assert clips.tags["gallery"][:4].tolist() == [1, 1, 0, 0]
    apart = casia_a.load("people", root=tmp_path)
    assert [len(set(apart.person[apart.indices(split)].tolist())) for split in SPLITS] == [10, 3, 7]


@pytest.mark.usefixtures("undecoded")
def test_the_real_manifests_give_the_official_splits(real_sets):
    for number, tested in ((1, 193), (2, 182), (3, 167)):
        clips = ucf101_5.load(str(number), root=real_sets)
        assert len(clips) == 646
        assert len(clips.indices("test")) == tested
        assert len(set(clips.person.tolist())) == 125
        share = len(clips.indices("val")) / (646 - tested)
        assert 0.15 < share < 0.25
        for split in SPLITS:
            assert set(clips.action[clips.indices(split)].tolist()) == set(range(5))
    clips = weizmann.load("actions=0", root=real_sets)
    assert len(clips) == 90
    assert len(set(clips.person[clips.indices("test")].tolist())) == 9


def test_the_labels_of_ucf101_5_are_those_of_vp_ucf101(real_sets, real_labels):
    labels = read_labels(real_labels / "labels" / "vp" / ucf101.LABELS)
    for row in read_table(real_sets / "ucf101_5" / "manifest.csv", ("path", *ucf101_5.COLUMNS)):
        assert labels[Path(row["path"]).stem.lower()].tolist() == [float(row[name]) for name in ucf101_5.COLUMNS]


def test_the_real_silhouettes_are_people_walking(real_sets):
    clips = casia_a.load(None, root=real_sets)
    assert len(clips) == 240
    share = np.mean([clips.videos.frames(i).mean() / 255 for i in range(0, 240, 20)])
    assert 0.1 < share < 0.5
