"""VISPR in its official layout: a made up small one, and the real lists and vectors."""

import pickle
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.data.made_vispr import made, names
from vidveil.app.run_recipe import evaluate
from vidveil.core.errors import DataError, UsageError
from vidveil.data import available, load_data
from vidveil.data.clips import SPLITS
from vidveil.data.loader import Loader
from vidveil.data.readers import vispr


def vectors(root: Path, *parts: str, **changed: object) -> None:
    for part in parts:
        known = {name: np.eye(7)[i] for i, name in enumerate(names(part))} | changed
        (root / "vispr" / f"{part}_labels.pkl").write_bytes(pickle.dumps(known))


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize(("pictures", "annotations"), [("", ""), ("images", "annotations"), ("", "annotations")])
def test_vispr_is_read_as_it_is_published(tmp_path, pictures, annotations, lists):
    clips = load_data(
        "vispr", root=made(tmp_path, pictures=pictures, annotations=annotations, lists=lists), frames=4, size=28
    )
    assert clips.name == "vispr:7"
    assert [len(clips.indices(split)) for split in SPLITS] == [4, 2, 3]
    assert clips.attribute_names == tuple(vispr.SEVEN)
    assert clips.attributes[:4].tolist() == [[0] * 7, [1, 1, 1, 0, 0, 0, 0], [0] * 6 + [1], [0] * 7]
    assert (set(clips.person.tolist()), len(clips.actions)) == ({-1}, 1)
    assert clips.group[0] == "2017_1000"
    assert clips.videos.frames(0).shape == (1, 32, 43, 3)  # one picture, although its neighbours are numbered


def test_five_attributes_are_those_of_pa_hmdb51_and_either_face_is_one(tmp_path):
    clips = load_data("vispr:5", root=made(tmp_path), frames=4, size=28)
    assert tuple(clips.attribute_names) == ("skin_colour", "face", "gender", "nudity", "relationship")
    assert clips.attributes[:3].tolist() == [[0] * 5, [1, 1, 1, 0, 0], [0, 0, 0, 0, 1]]
    assert vispr.five(np.eye(7, dtype=np.float32)).argmax(axis=1).tolist() == [0, 2, 1, 1, 3, 4, 4]


@pytest.mark.parametrize("decoder", ["av", "opencv"])
def test_a_picture_gives_a_clip_that_stands_still(tmp_path, monkeypatch, decoder):
    monkeypatch.setenv("VIDVEIL_DECODER", decoder)
    clips = load_data("vispr", root=made(tmp_path), frames=4, size=28)
    loader = Loader(clips, clips.indices("train"), frames=4, size=28, stride=2, batch=4, augment="crop")
    for video in (next(loader.epoch(0)).video, next(loader.views("5x1")).video[:, 0]):  # (B, 3, T, H, W)
        assert video.shape == (4, 3, 4, 28, 28)
        assert (video == video[:, :, :1]).all()
        assert video.std() > 0.1
    assert next(loader.views("5x1")).video.shape[1] == 1  # five clips of a picture would be the same five times


def test_attributes_of_pictures_are_attacked_and_no_action_is_judged(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    torch.set_num_threads(1)
    small = ["frames=2", "size=16", "epochs=1", "batch=4", "warmup_epochs=0", "device=cpu", "views=1x1"]
    table = ["data=vispr:5", "method=blur:strong", "keep=[]", "attacker_epochs=1", "seeds=[0]"]
    evaluators = ["utility=r3d_tiny", "attackers=[resnet_tiny]", "permutations=10", "resamples=10"]
    results = evaluate("dual_cls_vp_table", *small, *table, *evaluators, data=made(tmp_path))
    assert {"cmap", "ap_face"} <= results.raw.metrics.keys()
    assert not [name for name in results.raw.metrics if name.startswith(("action", "linkage"))]


@pytest.mark.usefixtures("undecoded")
def test_parts_without_annotations_take_the_released_vectors(tmp_path):
    made(tmp_path, annotations=None)
    vectors(tmp_path, "train", "test", unlisted=np.ones(7))
    for name in names("val"):
        (tmp_path / "vispr" / "val2017" / f"{name}.json").write_text('{"labels": ["a12_semi_nudity"]}')
    clips = vispr.load(None, root=tmp_path, size=28)
    assert clips.attributes.argmax(axis=1).tolist() == [0, 1, 2, 3, 4, 4, 0, 1, 2]


@pytest.mark.usefixtures("undecoded")
def test_annotations_go_before_vectors_whose_order_is_a_guess(tmp_path):
    vectors(made(tmp_path), "train")
    assert vispr.load(None, root=tmp_path, size=28).attributes[0].tolist() == [0] * 7


@pytest.mark.usefixtures("undecoded")
def test_missing_labels_are_named_with_what_would_help(tmp_path):
    made(tmp_path, annotations=None)
    with pytest.raises(DataError, match=r"train2017 has no \.json, and no .*train_labels\.pkl either: put the annot"):
        vispr.load(None, root=tmp_path, size=28)
    vectors(tmp_path, "train", "test")
    with pytest.raises(DataError, match=r"val2017 has no \.json, and released vectors are of train2017 and test2017"):
        vispr.load(None, root=tmp_path, size=28)
    (tmp_path / "vispr" / "val2017" / "2017_2000.json").write_text('{"labels": ["a0_safe"]}')
    with pytest.raises(DataError, match=r"lacks 1 of 2 annotations, 2017_2001\.json first"):
        vispr.load(None, root=tmp_path, size=28)


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON: Expecting property name enclosed in double quotes in line 1, column 2: copy it again"),
        ('{"tags": []}', 'names no labels: it should be {"labels": ["a4_gender", …]}'),
        ('["a4_gender"]', "names no labels"),
        ('{"labels": []}', '["a0_safe"] where there is nothing, not []'),
        ('{"labels": "a4_gender"}', "labels are"),
        ('{"labels": ["gender"]}', "not ['gender']"),
    ],
)
def test_an_annotation_that_makes_no_sense_is_named_with_how_it_should_look(tmp_path, text, said):
    (made(tmp_path) / "vispr" / "val2017" / "2017_2001.json").write_text(text)
    with pytest.raises(DataError, match=rf"val2017/2017_2001\.json:? .*{re.escape(said)}"):
        vispr.load(None, root=tmp_path, size=28)


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (pickle.dumps({"2017_1000": np.ones(7)})[:-20], "is no readable pickle of arrays"),
        (pickle.dumps([np.ones(7)]), "should be {'2017_10001018': array (7,)}"),
        (pickle.dumps({"2017_1000": np.ones(6)}), "'2017_1000' should have an array of 7 labels, each 0 or 1"),
        (pickle.dumps({"2017_1000": np.full(7, 0.5)}), "'2017_1000' should have an array of 7 labels, each 0 or 1"),
        (pickle.dumps({"2017_1000": np.ones(7)}), "has no labels of 2017_1001, which is a picture of train2017"),
        (pickle.dumps(REAL), "is refused"),
    ],
)
def test_a_pickle_that_holds_no_vectors_is_named(tmp_path, labels, said):
    (made(tmp_path, annotations=None) / "vispr" / "train_labels.pkl").write_bytes(labels)
    with pytest.raises(DataError, match=rf"train_labels\.pkl.*{re.escape(said)}"):
        vispr.load(None, root=tmp_path, size=28)


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize("line", ["2017_1000.json", "annotations/val2017/2017_1.json", "../train2017/x.json", "a b"])
def test_a_line_of_a_list_that_makes_no_sense_is_refused(tmp_path, line):
    path = made(tmp_path) / "vispr" / "train2017.txt"
    path.write_text(f"annotations/train2017/2017_1000.json\n{line}\n")
    with pytest.raises(DataError, match=r"train2017\.txt: a line is annotations/train2017/2017_10001018\.json") as said:
        vispr.load(None, root=tmp_path, size=28)
    assert repr(line) in str(said.value)
    path.write_text("train2017/2017_1000.jpg\nimages/train2017/2017_1000.jpg\n")
    with pytest.raises(DataError, match=r"train2017\.txt lists 2017_1000 twice"):
        vispr.load(None, root=tmp_path, size=28)


def test_what_is_missing_of_the_layout_is_named(tmp_path):
    made(tmp_path)
    assert available("vispr", tmp_path).startswith("part: ")
    gone = tmp_path / "vispr" / "test2017" / "2017_3001.jpg"
    gone.unlink()
    with pytest.raises(DataError, match=f"vispr: {gone} is listed but not there"):
        load_data("vispr", root=tmp_path, frames=4, size=28)
    for path in sorted((tmp_path / "vispr" / "val2017").iterdir()):
        path.unlink()
    (tmp_path / "vispr" / "val2017.txt").unlink()
    with pytest.raises(DataError, match=r"val2017 holds no picture: VISPR's val2017/2017_10001018\.jpg"):
        load_data("vispr", root=tmp_path, frames=4, size=28)
    (tmp_path / "vispr" / "val2017").rmdir()
    assert "no vispr/val2017" in available("vispr", tmp_path)
    with pytest.raises(DataError, match="no vispr/val2017 or vispr/images/val2017 in"):
        load_data("vispr", root=tmp_path, frames=4, size=28)
    with pytest.raises(UsageError, match="vispr has 7 or 5 attributes, not '68'; write vispr:5"):
        vispr.load("68", root=tmp_path, size=28)


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels") / "vispr"
    folder.mkdir()
    with tarfile.open(REAL / "labels.tar.xz") as archive:
        for member in archive.getmembers():
            if member.name.startswith("labels/vispr/") and (file := archive.extractfile(member)) is not None:
                (folder / Path(member.name).name).write_bytes(file.read())
    return folder.parent


@real
def test_the_real_lists_share_no_picture_and_the_vectors_are_of_them(labels):
    listed = {part: vispr.read_part(labels / "vispr", part, labels) for part in SPLITS}
    assert [len(found) for found in listed.values()] == [10_000, 4_167, 8_000]
    assert len({name for found in listed.values() for name in found}) == 22_167
    for part in ("train", "test"):
        assert set(vispr.read_vectors(labels / "vispr" / f"{part}_labels.pkl")) == set(listed[part])


@real
def test_the_real_attributes_are_called_as_we_call_them(labels):
    lines = (labels / "vispr" / "attributes.tsv").read_text().splitlines()[1:]
    known = [line.split("\t")[1] for line in lines]
    assert len(known) == 68
    assert set(vispr.SEVEN.values()) <= set(known)


@real
@pytest.mark.usefixtures("undecoded")
def test_the_real_vectors_have_the_known_prevalences_and_fit_the_order_we_take(labels):
    """What the reader's docstring says of them."""
    found = {part: vispr.read_part(labels / "vispr", part, labels) for part in ("train", "test")}
    seven = {part: vispr.read_attributes(labels, part, found[part]) for part in found}
    np.testing.assert_allclose(
        seven["train"].mean(axis=0), [0.471, 0.463, 0.348, 0.279, 0.059, 0.033, 0.069], atol=6e-4
    )
    np.testing.assert_allclose(seven["test"].mean(axis=0), [0.473, 0.464, 0.349, 0.291, 0.055, 0.032, 0.071], atol=6e-4)
    agree = np.corrcoef(seven["train"].T) - np.eye(7)
    assert np.unravel_index(agree.argmax(), agree.shape) == (0, 1)
    assert round(float(agree.max()), 2) == 0.93
    assert round(100 * float(seven["test"].mean()), 1) == 24.8  # what a random guess has for cMAP
    share = vispr.five(seven["test"]).mean(axis=0)
    np.testing.assert_allclose(share, [0.473, 0.443, 0.464, 0.055, 0.096], atol=6e-4)
    assert round(100 * float(share.mean()), 1) == 30.6
