"""Datasets in their official layouts: made up small ones, and the real ones where they lie."""

import csv
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

from tests.data.made import InMemory
from tests.data.made_ucf101 import ucf, vp
from tests.media import Film
from vidveil.core.errors import DataError, UsageError
from vidveil.data.clips import SPLITS
from vidveil.data.readers import casia_a as gait
from vidveil.data.readers import surveillance_fight as surveillance
from vidveil.data.readers import ucf101, ucf101_5, vp_labels, weizmann
from vidveil.data.readers.annotations import read_table

REAL = Path(os.environ.get("VIDVEIL_DATA", "nowhere"))
real = pytest.mark.skipif(not (REAL / "ucf101_5").is_dir(), reason="VIDVEIL_DATA is not set")


@pytest.fixture
def _undecoded(monkeypatch):
    """Labels without pixels: black videos stand for the files."""
    stand_in = lambda name, folder, files, **_: InMemory([np.zeros((1, 1, 1, 3), np.uint8)] * len(files))  # noqa: ARG005, E731
    for reader in (ucf101_5, weizmann):
        monkeypatch.setattr(reader, "decoded", stand_in)


def table(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def squats(root: Path, *, film: bool = True) -> list[dict[str, object]]:
    rows = []
    for name in ("Lunges", "Squats"):
        for group in range(1, 9):
            path = f"{name}/v_{name}_g{group:02d}_c01.mp4"
            split = "test" if group < 3 else "train"
            labels = {"skin_color": 1, "face": group % 2, "gender": 1, "nudity": 0, "relationship": 0}
            rows.append({"path": path, "class": name, "group": group, "split1": split, **labels})
            if film:
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
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"split1": "validation"}, "train or test, not 'valid'"),
        ({"group": "one"}, "no number"),
        ({"nudity": "?"}, "no number"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(tmp_path, change, message):
    rows = squats(tmp_path, film=False)
    rows[3] |= change
    table(tmp_path / "ucf101_5" / "manifest.csv", rows)
    with pytest.raises(DataError, match=message):
        ucf101_5.load("1", root=tmp_path)


@pytest.mark.usefixtures("undecoded")
def test_a_manifest_without_a_column_or_without_a_line_is_refused(tmp_path):
    table(tmp_path / "weizmann" / "manifest.csv", [{"path": "a.mp4", "action": "run"}])
    with pytest.raises(DataError, match="has no column 'subject'"):
        weizmann.load(None, root=tmp_path)
    (tmp_path / "weizmann" / "manifest.csv").write_text("path,action,subject\n")
    with pytest.raises(DataError, match="lists nothing"):
        weizmann.load(None, root=tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        ucf101_5.load(None, root=tmp_path)


def weizmann_manifest(root: Path) -> None:
    names = [(f"action{a}", f"person{p}") for a in range(10) for p in range(9)]
    rows = [{"path": f"{a}/{p}_{a}.mp4", "action": a, "subject": p} for a, p in names]
    table(root / "weizmann" / "manifest.csv", rows)


@pytest.mark.usefixtures("undecoded")
def test_weizmann_leaves_out_people_or_actions_and_each_is_tested_once(tmp_path):
    weizmann_manifest(tmp_path)
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


@pytest.mark.parametrize("argument", ["people=3", "faces", "actions=x", "people=0=1"])
def test_weizmann_says_what_can_be_left_out(tmp_path, argument):
    with pytest.raises(UsageError, match="people=0, 1, 2 or actions=0, 1, 2"):
        weizmann.load(argument, root=tmp_path)


def test_one_camera_is_never_in_two_splits():
    rng = np.random.default_rng(0)
    places = rng.integers(0, 256, (12, 8, 12, 3))
    where = np.arange(60) % 12
    videos = []
    for place in where:  # the same blocks under other noise
        seen = np.kron(places[place], np.ones((4, 4, 1))) + rng.normal(0, 12, (6, 32, 48, 3))
        videos.append(np.clip(seen, 0, 255).astype(np.uint8))
    found = surveillance.scenes(InMemory(videos))
    assert found.tolist() == where.tolist()
    split = surveillance.split_scenes(found, np.arange(60) // 12 % 2)
    for place in range(12):
        assert len(set(split[where == place].tolist())) == 1
    assert {part: int((split == part).sum()) for part in SPLITS} == {"train": 35, "val": 10, "test": 15}


def walks(path: Path, people: int = 20) -> np.ndarray:
    rng = np.random.default_rng(0)
    names = [f"p{p:02d}/{view}_{r}" for p in range(people) for view in ("00", "45", "90") for r in range(1, 5)]
    counts = rng.integers(1, 4, len(names))
    frames = rng.integers(0, 2, (counts.sum(), 64, 64), dtype=np.uint8)
    np.savez(path, names=np.array(names), counts=counts, bits=np.packbits(frames))
    return np.split(frames, np.cumsum(counts)[:-1])


def test_gait_silhouettes_come_out_of_their_bits(tmp_path):
    frames = walks(tmp_path / "casia_a_gait.npz")
    clips = gait.load(None, root=tmp_path)
    assert len(clips) == 240
    for i in (0, 1, 100, 239):
        np.testing.assert_array_equal(clips.videos.frames(i), np.repeat(frames[i][..., None], 3, 3) * 255)
    assert set(clips.split.tolist()) == {"test"}
    assert clips.tags["view"][:12].tolist() == [0] * 4 + [45] * 4 + [90] * 4
    assert clips.tags["gallery"][:4].tolist() == [1, 1, 0, 0]
    apart = gait.load("people", root=tmp_path)
    assert [len(set(apart.person[apart.indices(split)].tolist())) for split in SPLITS] == [10, 3, 7]


def test_gait_files_that_do_not_fit_together_are_refused(tmp_path):
    path = tmp_path / "casia_a_gait.npz"
    np.savez(path, names=np.array(["a/00_1"]), counts=np.array([2]), bits=np.zeros(512, np.uint8))
    with pytest.raises(DataError, match="damaged"):
        gait.load(None, root=tmp_path)
    np.savez(path, names=np.array(["a 1"]), counts=np.array([1]), bits=np.zeros(512, np.uint8))
    with pytest.raises(DataError, match="person/view_repetition, not 'a 1'"):
        gait.load(None, root=tmp_path)
    np.savez(path, names=np.array([{}]), counts=np.array([1]), bits=np.zeros(512, np.uint8))  # needs unpickling
    with pytest.raises(DataError, match="cannot be read"):
        gait.load(None, root=tmp_path)
    path.write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(DataError, match="cannot be read"):
        gait.load(None, root=tmp_path)


@pytest.mark.parametrize("inside", [".", "ucf101"])
def test_ucf101_is_read_in_its_official_layout(tmp_path, inside):
    root = tmp_path / inside
    root.mkdir(exist_ok=True)
    ucf(root)
    clips = ucf101.load("1", root=tmp_path, size=28)
    assert clips.actions == ["Archery", "Biking"]
    assert sorted(clips.split.tolist()) == ["test"] * 2 + ["train"] * 6 + ["val"] * 2
    assert clips.gallery == "same action"
    first = list(clips.ids).index("Biking/v_Biking_g01_c01.avi")
    assert clips.split[first] == "test"
    assert clips.videos.frames(first).shape == (11, 32, 43, 3)  # every second frame, a little larger than the view
    assert clips.attributes.shape == (10, 0)


def test_labels_that_lie_beside_ucf101_are_read_and_missing_ones_are_unknown(tmp_path):
    paths = ucf(tmp_path)
    vp(tmp_path, paths[1:])
    clips = ucf101.load(None, root=tmp_path, size=28)
    at = {name: i for i, name in enumerate(clips.ids)}
    assert clips.attributes[at[paths[2]]].tolist() == [1, 0, 1, 0, 1]
    assert np.isnan(clips.attributes[at[paths[0]]]).all()
    assert len(clips.attribute_names) == 5


def test_lists_that_make_no_sense_are_refused(tmp_path):
    ucf(tmp_path)
    lists = tmp_path / "ucfTrainTestlist"
    with pytest.raises(DataError, match=r"trainlist02\.txt cannot be read"):
        ucf101.load("2", root=tmp_path, size=28)
    (lists / "trainlist01.txt").write_text("../../secret.avi 1\n")
    with pytest.raises(DataError, match=r"'\.\./\.\./secret\.avi' is no Class/v_Class_g01_c01\.avi"):
        ucf101.load("1", root=tmp_path, size=28)
    (lists / "classInd.txt").write_text("1 Archery\n3 Biking\n")
    with pytest.raises(DataError, match="counted from 1"):
        ucf101.load("1", root=tmp_path, size=28)
    with pytest.raises(UsageError, match="splits 1, 2 and 3, not '4'"):
        ucf101.load("4", root=tmp_path, size=28)


@real
@pytest.mark.usefixtures("undecoded")
def test_the_real_manifests_give_the_official_splits():
    for number, tested in ((1, 193), (2, 182), (3, 167)):
        clips = ucf101_5.load(str(number), root=REAL)
        assert len(clips) == 646
        assert len(clips.indices("test")) == tested
        assert len(set(clips.person.tolist())) == 125
        share = len(clips.indices("val")) / (646 - tested)
        assert 0.15 < share < 0.25
        for split in SPLITS:
            assert set(clips.action[clips.indices(split)].tolist()) == set(range(5))
    clips = weizmann.load("actions=0", root=REAL)
    assert len(clips) == 90
    assert len(set(clips.person[clips.indices("test")].tolist())) == 9


@real
def test_the_real_silhouettes_are_people_walking():
    clips = gait.load(None, root=REAL)
    assert len(clips) == 240
    share = np.mean([clips.videos.frames(i).mean() / 255 for i in range(0, 240, 20)])
    assert 0.1 < share < 0.5


@real
def test_the_official_lists_and_labels_of_ucf101_are_read(tmp_path):
    wanted = ("labels/ucf101_splits/", "labels/vp/ucf101")
    with tarfile.open(REAL / "labels.tar.xz") as archive:
        members = [member for member in archive.getmembers() if member.name.startswith(wanted)]
        for member in members:  # by hand: the first releases of Python 3.11 know no filter
            if (file := archive.extractfile(member)) is not None:
                target = tmp_path / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read())
    lists = tmp_path / "labels" / "ucf101_splits"
    actions = ucf101.read_classes(lists / "classInd.txt")
    assert len(actions) == 101
    sizes, splits = [], {}
    for number in (1, 2, 3):
        clips = splits[number] = ucf101.read_split(lists, number, actions)
        sizes.append((sum(clip.part == "train" for clip in clips), sum(clip.part == "test" for clip in clips)))
        together = {(clip.action, clip.group): clip.part for clip in clips}
        assert all(together[clip.action, clip.group] == clip.part for clip in clips)
    assert sizes == [(9537, 3783), (9586, 3734), (9624, 3696)]
    file = tmp_path / "labels" / "vp" / ucf101.LABELS
    labels = vp_labels.read_labels(file)
    attributes = vp_labels.match_labels(file, [clip.path for clip in clips])
    assert attributes.shape == (13320, 5)
    assert not np.isnan(attributes).any()
    assert set(np.unique(attributes).tolist()) == {0, 1}
    tested = [clip.path for clip in splits[1] if clip.part == "test"]
    prevalence = vp_labels.match_labels(file, tested).mean(axis=0)
    assert prevalence.round(3).tolist() == pytest.approx([0.916, 0.611, 0.898, 0.251, 0.257], abs=6e-4)
    assert round(100 * float(prevalence.mean()), 1) == 58.7  # what a random guess has for cMAP
    ours = read_table(REAL / "ucf101_5" / "manifest.csv", ("path", "nudity"))
    columns = ("skin_color", "face", "gender", "nudity", "relationship")
    for row in ours:
        assert labels[Path(row["path"]).stem.lower()].tolist() == [float(row[column]) for column in columns]
