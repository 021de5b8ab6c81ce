"""Features on a device: drawn evenly and at random, computed once, found again by whoever needs the same."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.features import made
from tests.data.features.made import ABOUT, Maker, Summing, hashes, ids, store, vectors
from tests.evaluation.toy import toy
from vidveil.core.errors import DataError, UsageError
from vidveil.data.features import sets
from vidveil.data.features.labels import FILE, write_labels
from vidveil.data.features.sets import Vectors, cached, load_features, on_device
from vidveil.data.store.features import FeatureStore, fill
from vidveil.models.encoders.recognizer import RecognizerEncoder

COUNTS = np.array([1, 2, 5, 1, 3])
NUMBERS = st.floats(0, 1, exclude_max=True, width=32)


def counted() -> Vectors:
    """A vector is the number of its video, and its own number among those of the video."""
    numbers = [[float(video), float(i)] for video, count in enumerate(COUNTS) for i in range(count)]
    return Vectors(torch.tensor(numbers), np.cumsum(COUNTS) - COUNTS, COUNTS)


@given(st.lists(st.tuples(st.integers(0, 4), NUMBERS, NUMBERS), min_size=1, max_size=9))
def test_what_is_drawn_is_of_its_own_video_and_two_are_different_where_there_are_two(draws):
    rows = np.array([row for row, _, _ in draws])
    numbers = np.array([(a, b) for _, a, b in draws], np.float64)
    one = counted().one(rows, numbers[:, 0])
    first, second = counted().two(rows, numbers)
    for drawn in (one, first, second):
        np.testing.assert_array_equal(drawn[:, 0], rows)
        assert (drawn[:, 1].numpy() < COUNTS[rows]).all()
    np.testing.assert_array_equal((first != second).any(1).numpy(), COUNTS[rows] > 1)


def test_every_vector_and_every_pair_is_drawn_as_often_as_any_other():
    grid = (np.arange(20) + 0.5) / 20
    numbers = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    rows = np.full(len(numbers), 2)
    singles, times = np.unique(counted().one(rows, numbers[:, 0])[:, 1].numpy(), return_counts=True)
    assert (singles.tolist(), set(times.tolist())) == ([0, 1, 2, 3, 4], {80})
    first, second = counted().two(rows, numbers)
    _, times = np.unique(np.stack([first[:, 1], second[:, 1]]), axis=1, return_counts=True)
    assert times.tolist() == [20] * 20


def test_even_views_reach_from_the_first_to_the_last():
    found = counted().even(np.array([2, 4, 0]), 5)[..., 1]
    assert found.tolist() == [[0, 1, 2, 3, 4], [0, 1, 1, 2, 2], [0] * 5]
    assert counted().even(np.array([2, 4]), 2)[..., 1].tolist() == [[0, 4], [0, 2]]
    assert counted().even(np.array([2, 4, 3]), 1)[..., 1].tolist() == [[2], [1], [0]]


def test_a_folder_of_features_is_read_without_any_video_or_encoder(tmp_path, monkeypatch):
    labels = toy(people=(3, 1, 1), clips=2)
    kept = fill(tmp_path / "set", ABOUT, labels.ids, Maker(), videos=4)
    write_labels(labels, kept.folder / FILE)
    for name in ("load_data", "load_encoder"):
        monkeypatch.setattr(sets, name, lambda *_, **__: pytest.fail("nothing but the store is needed"))
    found = load_features(f"features:{tmp_path / 'set'}", "")
    np.testing.assert_array_equal(found.clips.all, kept.all())
    np.testing.assert_array_equal(found.static.all, kept.all("static"))
    np.testing.assert_array_equal(found.labels.person, labels.person)
    assert found.pixels is None
    assert found.width == made.D
    at = found.clips.first[7]
    np.testing.assert_array_equal(found.clips.all[at : at + found.clips.count[7]], Maker.of(7)["clips"])


def test_where_a_video_has_no_static_clip_none_are_offered_and_one_without_clips_is_refused(tmp_path):
    labels = toy(people=(1, 1, 1), clips=1)
    some = fill(
        tmp_path / "a", ABOUT, labels.ids, lambda rows: ({"clips": vectors(1), "static": vectors(i)} for i in rows)
    )
    assert on_device(labels, some, "cpu").static is None
    none = fill(tmp_path / "b", ABOUT, labels.ids, lambda rows: ({"clips": vectors(1 - i % 2)} for i in rows))
    with pytest.raises(DataError, match=f"{labels.ids[1]} has no clips"):
        on_device(labels, none, "cpu")


def test_features_of_a_dataset_need_an_encoder_and_a_folder_needs_a_store(tmp_path):
    with pytest.raises(UsageError, match="features of puppets need an encoder"):
        load_features("puppets", "")
    with pytest.raises(DataError, match="there is no store of features"):
        load_features(f"features:{tmp_path}", "")
    with pytest.raises(DataError, match=r"has no labels\.csv"):
        load_features(f"features:{store(tmp_path / 'set').folder}", "")


@pytest.fixture
def cache(cache):
    return cache / "stores"


def kept(data, encoder, **more):
    return cached(data, encoder, **{"stride": 1, "static": 2, "device": "cpu"} | more)


@pytest.mark.usefixtures("cache")
def test_features_are_computed_once_and_splits_of_a_set_share_them():
    data = toy(people=(2, 1, 1), clips=2)
    first = kept(data, encoder := Summing())
    assert encoder.batches
    turned = replace(data, name="toy:2", split=np.where(data.split == "test", "train", "test"))
    for again in (data, turned, replace(data, person=data.person + 5)):
        found = kept(again, other := Summing())
        assert other.batches == []
        assert found.folder == first.folder


@pytest.mark.usefixtures("cache")
def test_whatever_vectors_depend_on_makes_another_store():
    data = toy(people=(2, 1, 1), clips=2)
    folders = {
        kept(data, Summing()).folder,
        kept(data, Summing(fingerprint="other")).folder,
        kept(data, Summing(), stride=2).folder,
        kept(data, Summing(), static=1).folder,
        kept(toy(people=(2, 1, 1), clips=2, seed=1), Summing()).folder,
        kept(replace(data, ids=[f"{name} again" for name in data.ids]), Summing()).folder,
    }
    assert len(folders) == 6


@pytest.mark.parametrize("name", ["clips-00001.npy", "static-00001.npy", "shard-00001.json"])
def test_a_damaged_shard_in_the_cache_is_repaired_and_the_others_are_not_computed_again(cache, monkeypatch, name):
    monkeypatch.setitem(fill.__kwdefaults__, "videos", 3)
    data = toy(people=(2, 1, 1), clips=2)
    folder = kept(data, whole := Summing()).folder
    before = hashes(cache)
    os.truncate(folder / name, 3)
    kept(data, again := Summing())
    assert 0 < len(again.batches) < len(whole.batches)
    assert hashes(cache) == before


@pytest.mark.parametrize("content", ["", '{"layout": 0}', "[1, 2"])
def test_a_store_in_the_cache_that_does_not_say_what_it_is_about_is_made_anew(cache, content):
    data = toy(people=(2, 1, 1), clips=2)
    folder = kept(data, Summing()).folder
    before = hashes(cache)
    (folder / "store.json").write_text(content)
    kept(data, again := Summing())
    assert again.batches
    assert hashes(cache) == before


def test_features_of_a_dataset_come_with_its_labels_and_its_pixels_and_are_computed_once(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("VIDVEIL_RUNS", str(tmp_path / "runs"))
    network = made.run(tmp_path / "runs")
    data = toy(people=(2, 1, 1), clips=2)
    monkeypatch.setattr(sets, "load_data", lambda *_, **__: data)
    encode, calls = RecognizerEncoder.encode, []
    monkeypatch.setattr(RecognizerEncoder, "encode", lambda self, clip: calls.append(len(clip)) or encode(self, clip))
    first = load_features("toy", "run:mine")
    assert calls
    calls.clear()
    second = load_features("toy", "run:mine")
    assert calls == []
    assert torch.equal(first.clips.all, second.clips.all)
    assert first.pixels is data.videos
    assert first.labels.person is data.person
    assert FeatureStore.open(first.store.folder).folder.parent == cache
    shown = torch.from_numpy(data.videos.frames(3).copy()).permute(3, 0, 1, 2)[None].float() / 255
    with torch.inference_mode():
        torch.testing.assert_close(first.clips.all[3], network.features(shown)[0], rtol=1e-4, atol=1e-5)
    with pytest.raises(DataError, match="no pictures"):
        first.labels.videos.frames(0)
    assert list(first.store.ids) == list(data.ids) != ids(len(data))
