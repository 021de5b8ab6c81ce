"""Features of a frozen network: computed once, whoever asks, and again whenever they would be others."""

from dataclasses import replace

import numpy as np
import pytest

from tests.evaluation.toy import RECIPE, toy
from vidveil.evaluation.evaluators import frozen
from vidveil.evaluation.evaluators.frozen import features_of
from vidveil.evaluation.evaluators.train import learn

pytestmark = pytest.mark.usefixtures("own_folders")


@pytest.fixture
def computed(monkeypatch):
    """One entry each time that features are computed."""
    times = []
    mean_over_views = frozen._mean_over_views
    monkeypatch.setattr(frozen, "_mean_over_views", lambda *given: times.append(1) or mean_over_views(*given))
    return times


def features(data, rows=None, **changes):
    known = {"device": "cpu", "seed": changes.pop("seed", 0), "control": changes.pop("control", "")}
    rows = np.arange(len(data)) if rows is None else rows
    return features_of(data, rows, "r3d_tiny", replace(RECIPE, **changes), **known)[0]


def test_features_of_the_same_clips_are_computed_once_whatever_their_split(computed):
    data = toy()
    first = features(data)
    other = replace(data, split=np.roll(data.split, 40), action=1 - data.action)
    np.testing.assert_array_equal(features(other), first)
    assert len(computed) == 1


@pytest.mark.parametrize("change", [{"views": "5x1"}, {"frames": 2}, {"seed": 1}, {"control": "one_frame"}])
def test_features_that_would_be_others_are_computed_again(computed, change):
    features(toy())
    features(toy(), **change)
    assert len(computed) == 2


def test_features_of_other_pixels_and_by_other_code_are_computed_again(computed, monkeypatch):
    data = toy()
    features(data)
    features(toy(seed=1))
    monkeypatch.setattr(frozen, "code_of", lambda *_: "another")
    features(data)
    assert len(computed) == 3


def test_features_are_those_of_the_rows_that_were_asked_for():
    data = toy()
    rows = np.array([3, 50, 117])
    np.testing.assert_allclose(features(data, rows), features(data)[rows], atol=1e-5)


def test_utility_and_attack_of_all_seeds_share_features_where_weights_are_published(computed, monkeypatch, tmp_path):
    entry = replace(frozen.RECOGNIZERS["r3d_tiny"], weights="i3d")  # as if: a seed draws nothing then
    monkeypatch.setitem(frozen.RECOGNIZERS, "r3d_tiny", entry)
    build = frozen.build
    monkeypatch.setattr(frozen, "build", lambda name, **given: build(name, **given | {"pretrained": False}))
    data = toy()
    for seed in (0, 1):
        for tasks in (["action"], ["identity"]):
            learn(data, tasks, "r3d_tiny:frozen", RECIPE, seed=seed, folder=tmp_path / f"{tasks[0]}{seed}")
    assert len(computed) == 1


def test_heads_of_a_frozen_network_differ_from_seed_to_seed(tmp_path):
    learned = [
        learn(toy(), ["action"], "r3d_tiny:frozen", RECIPE, seed=seed, folder=tmp_path / str(seed)) for seed in (0, 1)
    ]
    first, second = (one.predictions["test"].probabilities["action"] for one in learned)
    assert not np.allclose(first, second)
