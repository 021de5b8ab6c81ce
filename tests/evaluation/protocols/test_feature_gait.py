"""Gaits on made features: who is in them is found, who was erased is not, and nothing is trained."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.evaluation.made_features import NOISE, PERSONAL, WIDTH, directions, made
from tests.evaluation.made_features import read as read_features
from vidveil.core.errors import DataError, RecipeError
from vidveil.data.clips import ClipSet
from vidveil.data.features.labels import FILE, FeatureRows, write_labels
from vidveil.data.store.features import fill
from vidveil.evaluation.attacks.gait import SCOPES
from vidveil.evaluation.protocols import feature_methods
from vidveil.evaluation.protocols.feature_gait import walks
from vidveil.evaluation.protocols.features import run
from vidveil.evaluation.recipes.features import FeaturesRecipe
from vidveil.evaluation.results import read
from vidveil.methods.splavu import run as train_adapter
from vidveil.methods.splavu.recipe import SplavuRecipe
from vidveil.report.tables import table

GAITS = {f"gait_rank1_{scope}" for scope in SCOPES}


def made_walks(
    folder: Path, *, split: tuple[str, ...] = ("test",), common: float = 0.0, tags: bool = True, encoder: str = "made"
) -> Path:
    """Of 12 people four walks from each of two views, the first two gallery; 2 to 4 clips each. Like `made`, by the
    same directions: people, and in place of what they do the view that they are seen from."""
    rng, axes = np.random.default_rng(0), directions()
    rows = [(p, v, r) for p in range(12) for v in (0, 90) for r in range(4)]
    codes = 2.5 * rng.normal(size=(12, PERSONAL)) @ axes[:PERSONAL]
    seen = {0: 3 * axes[PERSONAL], 90: 3 * axes[PERSONAL + 1]}
    videos = [
        {
            "clips": codes[p] + seen[v] + common + NOISE * rng.normal(size=(2 + i % 3, WIDTH)),
            "static": np.ones((1, WIDTH)),
        }
        for i, (p, v, _) in enumerate(rows)
    ]
    about = {"encoder": {"spec": encoder, "width": WIDTH, "fingerprint": encoder}, "clips": {"stride": 1}}
    ids = [f"{p}-{v}-{r}" for p, v, r in rows]
    store = fill(
        folder, about, ids, lambda which: [{k: x.astype(np.float32) for k, x in videos[i].items()} for i in which]
    )
    person, view, repetition = (np.array(column) for column in zip(*rows, strict=True))
    labels = ClipSet(
        name="walks",
        videos=FeatureRows(store),
        ids=ids,
        split=np.array(split)[person % len(split)],
        group=person.astype(str),
        action=np.zeros(len(rows), np.int64),
        actions=("walk",),
        person=person,
        attributes=np.zeros((len(rows), 0), np.float32),
        tags={"view": view, **({"gallery": (repetition < 2).astype(np.int64)} if tags else {})},
    )
    write_labels(labels, folder / FILE)
    return folder


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIDVEIL_RUNS", str(folder / "runs"))
        torch.set_num_threads(1)
        made(folder / "store")
        made_walks(folder / "walks")
        yield folder


@pytest.fixture(scope="module")
def recipe(place):
    return FeaturesRecipe(
        name="raw", data=f"features:{place / 'walks'}", attack=("gait",), permutations=100, resamples=100
    )


@pytest.fixture(scope="module")
def adapters(place):
    """Trained on another set: nothing but what somebody does is left, and here that is the view."""
    recipe = SplavuRecipe(
        name="mine", data=f"features:{place / 'store'}", heads=2, groups=4, erase=1.0, batch=24, epochs=2, lr=1e-3
    )
    for seed in range(2):
        train_adapter.run(replace(recipe, name=f"mine-{seed}", seed=seed))
    return "splavu:mine-{seed}"


def test_raw_features_identify_who_walks_without_any_training_or_split(recipe):
    found = run(recipe)
    assert found.points == []
    assert found.cost == {}
    assert found.raw.metrics.keys() == GAITS
    for metric in found.raw.metrics.values():
        assert metric.kind == "leakage"
        assert metric.value > 0.8
        assert metric.floor == pytest.approx(1 / 12, abs=0.03)
        assert metric.interval[0] <= metric.value <= metric.interval[1]
    assert found.raw.by_view["all"].keys() == {"000", "090"}
    assert "identities leak" in found.raw.verdict


def test_an_adapter_of_each_seed_hides_who_walks_and_the_change_is_reported(recipe, adapters, place):
    found = run(replace(recipe, name="seeds", method=adapters, seeds=(0, 1)))
    (point,) = found.points
    assert point.method == adapters
    for name in GAITS:
        metric, raw = point.metrics[name], found.raw.metrics[name]
        assert len(metric.seeds) == 2
        assert metric.value == pytest.approx(np.mean(metric.seeds))
        assert metric.excess < 0.3
        assert metric.change == pytest.approx(metric.value - raw.value)
        assert metric.change_interval[0] <= metric.change <= metric.change_interval[1] < 0
    assert len({tuple(point.metrics[name].seeds) for name in GAITS}) > 1
    again = read(place / "runs" / "seeds" / "results.json")
    assert "gait, rank-1, cross view" in table([again])


def test_a_walk_is_the_mean_of_all_its_clips(place):
    data = read_features(place / "walks")
    found = walks(data, "test")
    for i, (first, count) in enumerate(zip(data.clips.first, data.clips.count, strict=True)):
        np.testing.assert_allclose(found[i], data.clips.all[first : first + count].mean(0), rtol=1e-5)
    assert len(set(data.clips.count.tolist())) == 3


def test_what_all_walks_have_in_common_is_taken_off_where_that_finds_more_people_on_validation(recipe, tmp_path):
    data = f"features:{made_walks(tmp_path / 'both', split=('test', 'val'), common=1e5)}"
    metric = run(replace(recipe, name="common", data=data)).raw.metrics["gait_rank1_any_view"]
    assert metric.measured_by == "cosine, centred"
    assert metric.others["cosine"]["val"] < metric.others["cosine, centred"]["val"]
    assert metric.value == pytest.approx(metric.others["cosine, centred"]["test"])
    alone = f"features:{made_walks(tmp_path / 'alone', common=1e5)}"
    assert run(replace(recipe, name="alone", data=alone)).raw.metrics["gait_rank1_any_view"].measured_by == "cosine"


def test_a_set_without_a_gallery_is_refused_and_so_is_an_adapter_of_another_encoder(recipe, adapters, tmp_path):
    bare = made_walks(tmp_path / "bare", tags=False)
    with pytest.raises(DataError, match="has no tag gallery"):
        run(replace(recipe, name="bare", data=f"features:{bare}"))
    other = made_walks(tmp_path / "other", encoder="another")
    with pytest.raises(DataError, match="made by another encoder"):
        run(replace(recipe, name="other", data=f"features:{other}", method=adapters))


@pytest.mark.parametrize("attack", [("gait", "linkage"), ("attributes", "gait"), ("gait", "inversion")])
def test_gait_stands_alone(recipe, attack):
    with pytest.raises(RecipeError, match="stands alone"):
        replace(recipe, attack=attack)


def test_an_evaluation_that_was_stopped_goes_on_to_the_same_numbers(recipe, adapters, monkeypatch):
    wanted = replace(recipe, name="stopped", method=adapters, seeds=(0, 1))
    with monkeypatch.context() as patch:
        patch.setattr(feature_methods, "adapted_set", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(wanted)
    again, whole = run(wanted, resume=True), run(replace(wanted, name="whole"))
    values = [{name: one.value for name, one in found.points[0].metrics.items()} for found in (again, whole)]
    assert values[0] == values[1]
