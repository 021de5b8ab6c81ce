"""VISPR in its official layout: a small set made for tests, and the real lists and vectors."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from tests.data.made_vispr import made, names
from vidveil.data import load_data
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


@pytest.mark.usefixtures("undecoded")
def test_parts_without_annotations_take_the_released_vectors(tmp_path):
    made(tmp_path, annotations=None)
    vectors(tmp_path, "train", "test", unlisted=np.ones(7))
    for name in names("val"):
        (tmp_path / "vispr" / "val2017" / f"{name}.json").write_text('{"labels": ["a12_semi_nudity"]}')
    clips = vispr.load(None, root=tmp_path, size=28)
    assert clips.attributes.argmax(axis=1).tolist() == [0, 1, 2, 3, 4, 4, 0, 1, 2]


@pytest.mark.usefixtures("undecoded")
def test_annotations_take_precedence_over_vectors_whose_order_is_a_guess(tmp_path):
    vectors(made(tmp_path), "train")
    assert vispr.load(None, root=tmp_path, size=28).attributes[0].tolist() == [0] * 7


@pytest.fixture(scope="session")
def labels(real_labels):
    return real_labels / "labels"


def test_the_real_lists_share_no_picture_and_the_vectors_are_of_them(labels):
    listed = {part: vispr.read_part(labels / "vispr", part, labels) for part in SPLITS}
    assert [len(found) for found in listed.values()] == [10_000, 4_167, 8_000]
    assert len({name for found in listed.values() for name in found}) == 22_167
    for part in ("train", "test"):
        assert set(vispr.read_vectors(labels / "vispr" / f"{part}_labels.pkl")) == set(listed[part])


def test_the_real_attributes_are_called_as_we_call_them(labels):
    lines = (labels / "vispr" / "attributes.tsv").read_text().splitlines()[1:]
    known = [line.split("\t")[1] for line in lines]
    assert len(known) == 68
    assert set(vispr.SEVEN.values()) <= set(known)


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
