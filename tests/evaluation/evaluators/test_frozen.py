"""What a frozen network sees: looked at once, whoever asks, and anew whenever something else would be seen."""

from dataclasses import replace

import numpy as np
import pytest

from tests.evaluation.toy import FRAMES, SIZE, toy
from vidveil.evaluation.evaluators import frozen
from vidveil.evaluation.evaluators.frozen import features_of
from vidveil.evaluation.evaluators.train import learn
from vidveil.evaluation.recipes.clips import EvaluateRecipe

RECIPE = EvaluateRecipe(name="toy", data="toy", frames=FRAMES, size=SIZE, batch=16)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VIDVEIL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def looks(monkeypatch):
    """How often a network looked at a set."""
    count = []
    look = frozen._looked_at
    monkeypatch.setattr(frozen, "_looked_at", lambda *given: count.append(1) or look(*given))
    return count


def seen(data, rows=None, **changes):
    known = {"device": "cpu", "seed": changes.pop("seed", 0), "control": changes.pop("control", "")}
    rows = np.arange(len(data)) if rows is None else rows
    return features_of(data, rows, "r3d_tiny", replace(RECIPE, **changes), **known)[0]


def test_the_same_clips_are_looked_at_once_whatever_their_split(looks):
    data = toy()
    first = seen(data)
    other = replace(data, split=np.roll(data.split, 40), action=1 - data.action)
    np.testing.assert_array_equal(seen(other), first)
    assert len(looks) == 1


@pytest.mark.parametrize("change", [{"views": "5x1"}, {"frames": 2}, {"seed": 1}, {"control": "one_frame"}])
def test_what_would_look_different_is_looked_at_again(looks, change):
    seen(toy())
    seen(toy(), **change)
    assert len(looks) == 2


def test_other_pixels_and_other_code_are_looked_at_again(looks, monkeypatch):
    data = toy()
    seen(data)
    seen(toy(seed=1))
    monkeypatch.setattr(frozen, "code_of", lambda *_: "another")
    seen(data)
    assert len(looks) == 3


def test_features_are_those_of_the_rows_that_were_asked_for():
    data = toy()
    rows = np.array([3, 50, 117])
    np.testing.assert_allclose(seen(data, rows), seen(data)[rows], atol=1e-5)


def test_use_and_attack_of_all_seeds_share_one_look_where_weights_are_published(looks, monkeypatch, tmp_path):
    entry = replace(frozen.RECOGNIZERS["r3d_tiny"], weights="i3d")  # as if: a seed draws nothing then
    monkeypatch.setitem(frozen.RECOGNIZERS, "r3d_tiny", entry)
    build = frozen.build
    monkeypatch.setattr(frozen, "build", lambda name, **given: build(name, **given | {"pretrained": False}))
    data = toy()
    for seed in (0, 1):
        for tasks in (["action"], ["identity"]):
            learn(data, tasks, "r3d_tiny:frozen", RECIPE, seed=seed, folder=tmp_path / f"{tasks[0]}{seed}")
    assert len(looks) == 1


def test_heads_of_a_frozen_network_differ_from_seed_to_seed(tmp_path):
    learned = [
        learn(toy(), ["action"], "r3d_tiny:frozen", RECIPE, seed=seed, folder=tmp_path / str(seed)) for seed in (0, 1)
    ]
    first, second = (one.predictions["test"].probabilities["action"] for one in learned)
    assert not np.allclose(first, second)
