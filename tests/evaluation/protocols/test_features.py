"""Whole evaluations of made features: what is there is found, what an adapter erased is not, and utility is left."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console

from tests.evaluation.made_features import PERSONAL, directions, made
from tests.evaluation.made_features import read as read_features
from vidveil.core.errors import DataError, UsageError
from vidveil.evaluation.attacks import inversion
from vidveil.evaluation.protocols import feature_methods
from vidveil.evaluation.protocols import features as features_module
from vidveil.evaluation.protocols.features import INVERTED, FeaturesProtocol, run
from vidveil.evaluation.recipes.features import FeaturesRecipe
from vidveil.evaluation.results import read
from vidveil.methods.feature_adapter import load_adapter
from vidveil.methods.splavu import run as train_adapter
from vidveil.methods.splavu.recipe import SplavuRecipe
from vidveil.models import checkpoint
from vidveil.report.tables import table
from vidveil.training.runs import list_runs

INVERSIONS = ("black_box", "white_box")


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory):
    """One store, and folders for the runs of this module."""
    folder = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIDVEIL_RUNS", str(folder / "runs"))
        patch.setattr(inversion, "STEPS", 60)
        torch.set_num_threads(1)
        made(folder / "store")
        yield folder


@pytest.fixture(scope="module")
def recipe(place):
    return FeaturesRecipe(
        name="raw", data=f"features:{place / 'store'}", epochs=10, attacker_epochs=10, batch=24, lr=1e-2,
        attacker_lr=(1e-2,), least_steps=1, permutations=20, resamples=20,
    )  # fmt: skip


@pytest.fixture(scope="module")
def adapters(place):
    """`mine` and `mine-0` to `mine-2`: nothing but actions is left."""
    recipe = SplavuRecipe(
        name="mine", data=f"features:{place / 'store'}", heads=2, groups=4, erase=1.0, batch=24, epochs=2, lr=1e-3
    )
    train_adapter.run(recipe)
    for seed in range(3):
        train_adapter.run(replace(recipe, name=f"mine-{seed}", seed=seed))
    return "splavu:mine"


@pytest.fixture(scope="module")
def results(recipe, adapters):
    return run(replace(recipe, name="all", method=adapters, attack=("linkage", "attributes", "inversion")))


def test_raw_features_leak_identity_and_attributes_and_have_no_points(recipe):
    found = run(recipe)
    assert found.points == []
    metrics = found.raw.metrics
    assert metrics["action_top1"].value > 0.95
    assert metrics["action_top1"].retention == 1
    assert metrics["linkage_rank1"].value > metrics["linkage_rank1"].floor + 0.4
    assert metrics["linkage_rank1"].excess == pytest.approx(1)
    assert metrics["ap_beard"].value > 0.95
    assert metrics["cmap"].floor < 0.8
    assert metrics["retrieval_r1"].kind == "utility"
    assert not any("raw_heads" in name or "gallery" in name for name in metrics)
    assert list_runs()[-1].state == "done"


def test_an_adapter_that_leaves_actions_alone_keeps_utility_and_hides_people(results):
    metrics = results.points[0].metrics
    assert results.points[0].method == "splavu:mine"
    assert metrics["action_top1"].retention > 0.95
    assert metrics["linkage_rank1"].raw > metrics["linkage_rank1"].floor + 0.4
    assert metrics["linkage_rank1"].excess < 0.2
    assert metrics["cmap"].value < metrics["cmap"].floor_range[1] + 0.1
    assert results.points[0].attribute_excess < 0.4
    assert metrics["linkage_rank1_raw_gallery"].excess < 0.3
    assert metrics["retrieval_map"].retention > 0.95


def test_inversion_recovers_nothing_that_was_erased(results):
    assert [point.method for point in results.points] == [
        "splavu:mine",
        *(f"splavu:mine {INVERTED[w]}" for w in INVERSIONS),
    ]
    for point in results.points[1:]:
        assert point.metrics["linkage_rank1"].excess < 0.25, point.method
        assert point.metrics["action_top1"].value > 0.9, point.method


def test_heads_trained_on_raw_features_are_reported_next_to_those_that_were_trained_anew(results):
    assert not any("raw_heads" in name for name in results.raw.metrics)
    for point in results.points:
        for name, kind in (("action_top1_raw_heads", "utility"), ("cmap_raw_heads", "leakage")):
            assert point.metrics[name].kind == kind
            assert point.metrics[name].floor == pytest.approx(
                point.metrics[name.removesuffix("_raw_heads")].floor, abs=0.15
            )
    assert results.points[0].metrics["action_top1_raw_heads"].value > 0.8


def test_results_are_read_back_and_drawn(results, place):
    found = read(place / "runs" / "all" / "results.json")
    assert found.points[0].metrics["action_top1"].value == pytest.approx(results.points[0].metrics["action_top1"].value)
    assert found.recipe["method"] == "splavu:mine"
    text = table([found])
    for word in (
        "splavu:mine",
        "inverted by pairs",
        "inverted by the adapter",
        "action, top-1, heads of raw features",
        "beard",
    ):
        assert word in text, word
    assert found.cost["raw action linear"]["parameters"] == 24 * 3 + 3
    assert found.cost["splavu:mine attributes mlp"]["parameters"] == 24 * 24 + 24 + 24 + 1


def test_each_seed_has_an_adapter_of_its_own(recipe, adapters, monkeypatch):
    asked = []
    monkeypatch.setattr(feature_methods, "load_adapter", lambda name: asked.append(name) or load_adapter(name))
    found = run(
        replace(recipe, name="seeds", method=adapters + "-{seed}", seeds=(0, 1, 2), epochs=3, attacker_epochs=3)
    )
    assert asked == [f"splavu:mine-{seed}" for seed in range(3)]
    assert found.points[0].method == "splavu:mine-{seed}"
    for name in ("action_top1", "linkage_rank1", "cmap"):
        metric = found.points[0].metrics[name]
        assert len(metric.seeds) == 3
        assert metric.value == pytest.approx(np.mean(metric.seeds))
    assert len(set(found.points[0].metrics["linkage_map"].seeds)) > 1


def test_braces_that_mean_something_else_are_a_name_like_any_other(recipe):
    with pytest.raises(UsageError, match=r"there is no checkpoint .*method=raw needs no adapter"):
        run(replace(recipe, name="braces", method="splavu:{mine}"))


def evaluate(recipe, data, name):
    return FeaturesProtocol(replace(recipe, name=name), data).evaluate()


def test_labels_of_test_people_change_nothing_of_what_is_chosen(recipe, place):
    recipe = replace(recipe, attacker_lr=(1e-3, 1e-2), epochs=4, attacker_epochs=4)
    data = read_features(place / "store")
    labels, test = data.labels, data.labels.indices("test")
    permuted = np.random.default_rng(3).permutation(test)
    person, action, attributes = labels.person.copy(), labels.action.copy(), labels.attributes.copy()
    person[test], action[test] = labels.person[permuted], labels.action[permuted]
    attributes[test] = labels.attributes[np.random.default_rng(4).permutation(test)]
    other = replace(data, labels=replace(labels, person=person, action=action, attributes=attributes))
    first, second = (evaluate(recipe, which, f"who{i}") for i, which in enumerate((data, other)))
    assert first.raw.metrics["linkage_rank1"].value > second.raw.metrics["linkage_rank1"].value + 0.3
    for name, metric in first.raw.metrics.items():
        assert second.raw.metrics[name].measured_by == metric.measured_by, name
        for who, got in metric.others.items():
            assert second.raw.metrics[name].others[who]["val"] == got["val"]
    assert len(first.raw.metrics["cmap"].others) == 6  # three heads at two rates each


def test_the_strongest_on_validation_is_reported_and_so_are_the_others(results):
    metric = results.raw.metrics["linkage_rank1"]
    assert {name.partition(", ")[2] for name in metric.others} == {"cosine", "whitened", "LDA", "MLP"}
    assert metric.others[metric.measured_by]["val"] == max(one["val"] for one in metric.others.values())
    assert metric.value == pytest.approx(metric.others[metric.measured_by]["test"])


def test_features_of_another_encoder_or_width_are_refused_before_a_run_is_made(recipe, adapters, tmp_path, place):
    other = made(tmp_path / "other", people=(4, 2, 2), encoder="another")
    with pytest.raises(DataError, match="made by another encoder"):
        run(replace(recipe, name="no", method=adapters, data=f"features:{other}"))
    wide = made(tmp_path / "wide", people=(4, 2, 2), width=32)
    with pytest.raises(DataError, match="features of 32 numbers, the adapter is for 24"):
        run(replace(recipe, name="no", method=adapters, data=f"features:{wide}"))
    assert not (place / "runs" / "no").exists()


def test_a_method_of_pictures_does_not_work_on_features(recipe, place):
    folder = place / "runs" / "painter" / "checkpoint"
    checkpoint.write(folder, "dual_cls", {}, {"a": torch.zeros(1)}, recipe={"name": "painter"})
    with pytest.raises(UsageError, match="a checkpoint of dual_cls, which works on video, not on features"):
        run(replace(recipe, name="no", method="splavu:painter"))


@pytest.mark.parametrize(("people", "reason"), [((4, 0, 2), "no videos in val"), ((4, 2, 0), "no videos in test")])
def test_a_split_without_videos_is_refused(recipe, tmp_path, people, reason):
    bare = made(tmp_path / "bare", people=people)
    with pytest.raises(DataError, match=reason):
        run(replace(recipe, name=f"bare{people[1]}", data=f"features:{bare}"))


def test_of_strangers_attributes_alone_are_attacked_and_of_nothing_nothing_is(recipe, place):
    data = read_features(place / "store")
    unknown = np.full(len(data.labels), -1)
    strangers = replace(data, labels=replace(data.labels, person=unknown))
    short = replace(recipe, epochs=2, attacker_epochs=2)
    found = evaluate(short, strangers, "strangers").raw.metrics
    assert "cmap" in found
    assert not any(name.startswith("linkage") for name in found)
    blank = np.zeros((len(data.labels), 0), np.float32)
    nobody = replace(data, labels=replace(data.labels, person=unknown, attributes=blank, attribute_names=()))
    with pytest.raises(DataError, match="nothing to attack"):
        evaluate(short, nobody, "nobody")


def test_several_actions_at_once_are_measured_by_cmap_and_not_looked_up(recipe, place):
    data = read_features(place / "store")
    shown = np.eye(3, dtype=np.float32)[data.labels.action]
    labels = replace(data.labels, action=np.full(len(shown), -1), action_labels=shown)
    found = evaluate(replace(recipe, least_steps=60), replace(data, labels=labels), "several").raw
    assert found.metrics["action_cmap"].value > 0.8
    assert not any(name.startswith("retrieval") for name in found.metrics)


def test_an_evaluation_that_was_stopped_goes_on_to_the_same_numbers(recipe, place):
    short = replace(recipe, name="stopped", epochs=2, attacker_epochs=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features_module, "retrieval_numbers", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(short)
    again, whole = run(short, resume=True), run(replace(short, name="whole"))
    values = [{name: one.value for name, one in found.raw.metrics.items()} for found in (again, whole)]
    assert values[0] == pytest.approx(values[1])
    assert json.loads((place / "runs" / "stopped" / "state.json").read_text())["state"] == "done"


def shortcut(data):
    """Who has a beard walks, and nobody else does, until they are tested. Beards show more than what somebody does."""
    labels = data.labels
    beard = labels.attributes[:, 0] == 1
    number = np.arange(len(labels))
    action = np.where(labels.split == "test", number % 3, np.where(beard, 0, 1 + number % 2))
    axes = directions()
    shown = 1.5 * axes[PERSONAL + action] + np.outer(6 * beard - 3, axes[0])
    noise = 0.4 * np.random.default_rng(5).normal(size=data.clips.all.shape)
    clips = torch.from_numpy(np.repeat(shown, data.clips.count, axis=0) + noise).float()
    tags = {"subgroup": beard.astype(np.int64), "shortcut": (action == 0).astype(np.int64)}
    return replace(data, labels=replace(labels, action=action, tags=tags), clips=replace(data.clips, all=clips))


def test_subgroups_are_measured_of_raw_features_and_behind_an_adapter(recipe, adapters, place):
    recipe = replace(recipe, name="bias", method=adapters, attack=("linkage",), epochs=30, resamples=200)
    found = FeaturesProtocol(recipe, shortcut(read_features(place / "store"))).evaluate()
    raw, after = found.raw.metrics, found.points[0].metrics
    names = ("action_top1_shortcut_f", "action_top1_shortcut_m", "action_top1_shortcut_gap")
    assert {
        *names,
        "action_top1_f",
        "action_top1_m",
        "action_top1_gap",
        "action_class_mean",
    } <= raw.keys() & after.keys()
    gap = raw["action_top1_shortcut_gap"]
    assert raw["action_top1_shortcut_m"].value > raw["action_top1_shortcut_f"].value + 0.5
    assert (gap.kind, gap.note, gap.change) == ("gap", "m is higher", None)
    assert gap.interval[0] > 0
    less = after["action_top1_shortcut_gap"]
    assert less.change == pytest.approx(less.value - gap.value)
    assert less.change_interval[1] < 0
    assert "change -" in table([found]).partition("### splavu")[2]


def test_subgroups_of_too_few_people_are_not_measured_and_a_line_says_so(recipe, place, capsys):
    data = read_features(place / "store")
    nearly = np.where(data.labels.person == data.labels.person.max(), 1, 0)
    data = replace(data, labels=replace(data.labels, tags={"subgroup": nearly}))
    short = replace(recipe, name="few", epochs=2, attacker_epochs=2)
    found = FeaturesProtocol(short, data).evaluate(console=Console(stderr=True))
    assert not any("gap" in name for name in found.raw.metrics)
    assert "accuracy by subgroup is not measured: 7 f and 1 m are tested" in capsys.readouterr().err
