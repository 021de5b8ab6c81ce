"""So many attributes that none is reported by itself: cMAP and F1 with floors, intervals and a verdict; and few."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.evaluation.toy import evaluate, learned, toy
from vidveil.data.clips import ClipSet
from vidveil.evaluation.evaluators.train import TrainedNetwork
from vidveil.evaluation.measures import attributes as measure_attributes
from vidveil.evaluation.measures import many_labels
from vidveil.evaluation.measures.attributes import MANY
from vidveil.evaluation.measures.measure import Measure
from vidveil.evaluation.measures.measured import logit_of
from vidveil.evaluation.number import Number
from vidveil.evaluation.points import attribute_excess, point, verdict
from vidveil.report.tables import table
from vidveil.statistics import floors, metrics

NAN = float("nan")
COUNT = MANY + 6


def labelled(count: int = COUNT, *, people: int = 60, clips: int = 1, seed: int = 0) -> ClipSet:
    """Attributes of people, rare ones and often ones."""
    base = toy((30, 10, people), clips=clips)
    rng = np.random.default_rng(seed)
    whose = (rng.random((people + 40, count)) < np.linspace(0.05, 0.5, count)).astype(np.float32)
    whose[[0, 40]], whose[[1, 41]] = 1, 0  # each varies in training and in test
    return replace(base, attributes=whose[base.person], attribute_names=tuple(f"a{i}" for i in range(count)))


def truth(data: ClipSet, split: str = "test") -> np.ndarray:
    return data.attributes[data.indices(split)]


def predicting(data: ClipSet, probabilities: np.ndarray, val: float = 0.5) -> TrainedNetwork:
    """A network that has these probabilities (n, A) of the test clips, and guesses in validation."""
    guess = np.random.default_rng(5).random(truth(data, "val").shape)
    by_split = {"val": {"attributes": guess}, "test": {"attributes": probabilities}}
    return learned(data, by_split, {"attributes": val})


def guessed(data: ClipSet, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(truth(data).shape).astype(np.float32)


def half(data: ClipSet, seed: int = 0) -> np.ndarray:
    """Probabilities of somebody who knows something, above and below one half."""
    noise = np.random.default_rng(seed).normal(size=truth(data).shape)
    return (1 / (1 + np.exp(-noise - 2 * np.nan_to_num(truth(data)) + 1))).astype(np.float32)


def measured(
    data: ClipSet, *networks: TrainedNetwork, permutations: int = 100, resamples: int = 200
) -> dict[str, Number]:
    measure = Measure(data, permutations=permutations, resamples=resamples)
    return measure.attributes({"net": list(networks)})[0]


def permuted(labels: np.ndarray, scores: np.ndarray, people: np.ndarray, times: int, observed=NAN) -> floors.Floor:
    """The floor of one attribute, by itself."""

    def metric(permuted: np.ndarray) -> np.ndarray:
        return metrics.average_precision(permuted, logit_of(scores))

    return floors.permutation_floor(metric, labels, people, permutations=times, observed=observed)


# ---- many


def test_of_many_no_single_one_is_reported_and_the_note_says_over_how_many_the_means_are():
    data = labelled()
    labels = data.attributes.copy()
    labels[data.indices("test"), :2] = 0
    labels[data.indices("train"), 5] = 0
    data = replace(data, attributes=labels)
    measure = Measure(data, permutations=10, resamples=10)
    found, constant = measure.attributes({"net": [predicting(data, half(data))]})
    assert list(found) == ["cmap", "f1"]
    assert constant == ["a0", "a1"]
    assert found["cmap"].note == "over 68 of 70 attributes, 1 of them in no training clip"
    assert found["f1"].note == f"{found['cmap'].note}; interval to first order"


def test_the_values_are_those_of_each_attribute_averaged_over_all_and_over_seeds():
    data = labelled()
    seeds = [half(data, seed) for seed in (0, 1)]
    found = measured(data, *(predicting(data, each) for each in seeds))
    for name, metric in (("cmap", metrics.average_precision), ("f1", metrics.f1)):
        expected = [np.mean([metric(truth(data)[:, a], logit_of(each[:, a])) for a in range(COUNT)]) for each in seeds]
        assert found[name].measured.value.per_seed == pytest.approx(expected)
        assert found[name].measured.value.value == pytest.approx(np.mean(expected))
    assert found["cmap"].analytic == pytest.approx(truth(data).mean())
    share = truth(data).mean(axis=0)
    assert found["f1"].measured.floor == pytest.approx(np.mean(2 * share / (1 + share)))


def test_intervals_are_as_wide_as_if_often_seen_attributes_were_measured_anew_in_each_draw():
    data = labelled(people=400)
    often = replace(data, attributes=(np.random.default_rng(3).random(data.attributes.shape) < 0.4).astype(np.float32))
    scores = half(often)
    measure = Measure(often, permutations=2, resamples=400)
    found, _ = measure.attributes({"net": [predicting(often, scores)]})
    for name, metric in (("cmap", metrics.average_precision), ("f1", metrics.f1)):

        def anew(weights: np.ndarray, metric=metric) -> np.ndarray:
            return np.mean([metric(truth(often)[:, a], logit_of(scores[:, a]), weights) for a in range(COUNT)], axis=0)

        slow, quick = measure.resamples.statistic(anew), found[name].measured.value
        assert np.std(quick.samples) == pytest.approx(np.std(slow.samples), rel=0.1)
        assert np.corrcoef(quick.samples, slow.samples)[0, 1] > 0.95


def test_f1_says_yes_at_the_threshold_that_was_asked_for_and_notes_it():
    data = labelled()
    unsure = predicting(data, np.where(truth(data) == 1, 0.6, 0.1))  # a logit of 0.41
    measure = Measure(data, permutations=2, resamples=2, f1_threshold="logit")
    found = measure.attributes({"net": [unsure]})[0]["f1"]
    assert found.measured.value.value == 0
    assert found.note.endswith("yes where the logit is above 0.5")


# ---- floors and p


@pytest.mark.parametrize("clips", [1, 5])
def test_labels_permuted_together_give_the_mean_of_what_each_gives_in_the_same_permutation(clips):
    data = labelled(6, people=12, clips=clips)
    people = data.group[data.indices("test")][: 12 * clips - 3]  # not all with as many clips
    labels, scores = truth(data)[: len(people)].astype(np.float64), np.round(half(data)[: len(people)], 1)  # ties
    found = many_labels.permuted(labels, scores, people, observed=0.5, permutations=50)
    each = [permuted(labels[:, a], scores[:, a], people, 50).values for a in range(6)]
    np.testing.assert_allclose(found.values, np.mean(each, axis=0))


def test_where_labels_are_unknown_the_others_are_permuted_among_themselves():
    data = labelled(2, people=12, clips=4)
    people = data.group[data.indices("test")]
    labels, scores = truth(data).astype(np.float64), half(data)
    labels[::3, 0] = NAN
    labels[1::7, 1] = NAN
    found = many_labels.permuted(labels, scores, people, observed=0.5, permutations=2000)
    other = np.where(np.isnan(labels), guessed(data), scores)  # their scores do not matter
    np.testing.assert_allclose(
        many_labels.permuted(labels, other, people, observed=0.5, permutations=2000).values, found.values
    )
    each = [permuted(labels[:, a], scores[:, a], people, 2000).value for a in range(2)]
    assert found.value == pytest.approx(np.mean(each), abs=0.01)


def test_attributes_that_go_together_scatter_as_one_does():
    data = labelled(1, people=40)
    people, copies = data.group[data.indices("test")], (1, COUNT)
    one, many = (
        many_labels.permuted(
            np.tile(truth(data), (1, count)).astype(np.float64),
            np.tile(half(data), (1, count)),
            people,
            observed=0.5,
            permutations=100,
        )
        for count in copies
    )
    assert (many.low, many.high, many.p) == pytest.approx((one.low, one.high, one.p))


def test_the_floor_is_a_formula_where_every_clip_is_somebody_else():
    data = labelled()
    few, more = (measured(data, predicting(data, guessed(data)), permutations=n)["cmap"] for n in (3, 300))
    assert few.measured.floor == more.measured.floor
    low, high = more.floor_range
    assert low < more.measured.floor < high


def test_of_people_with_several_clips_the_floor_is_of_whole_people():
    """Somebody who recognises people, and knows no attribute of them, is at that floor, and above the one of clips."""
    data = labelled(people=30, clips=6)
    whose = np.repeat(np.random.default_rng(1).random((30, COUNT)), 6, axis=0)
    found = measured(data, predicting(data, whose), permutations=300)["cmap"]
    apart = replace(data, group=np.arange(len(data)).astype(str), person=np.full(len(data), -1))
    by_clip = measured(apart, predicting(apart, whose))["cmap"]
    assert found.measured.floor > by_clip.measured.floor + 0.02
    assert found.measured.floor == pytest.approx(np.mean(found.floor_range), abs=0.01)
    assert found.p > 0.05
    assert by_clip.p < 0.05


def test_where_too_much_would_be_permuted_fewer_permutations_are_made_and_p_says_no_more_than_they_can(monkeypatch):
    data = labelled()
    knowing = predicting(data, truth(data))
    monkeypatch.setattr(measure_attributes, "AFFORDED", 1)
    found = measured(data, knowing, permutations=200)
    assert found["cmap"].p == found["cmap"].least_p == pytest.approx(1 / 101)
    assert found["cmap"].note == "over 70 of 70 attributes; p by 100 permutations"
    few = measured(data, knowing, permutations=10)  # as many as were asked for
    assert few["cmap"].note == "over 70 of 70 attributes"
    assert verdict(few, few) == "too few permutations to say what leaks"


# ---- excess and the verdict


def test_excess_is_that_of_cmap_and_the_verdict_is_about_all_of_them():
    data = labelled(people=200)
    raw, some, none = (
        measured(data, predicting(data, scores), permutations=50) for scores in (truth(data), half(data), guessed(data))
    )
    v, f, whole, bottom = (
        value for one in (some, raw) for value in (one["cmap"].measured.value.value, one["cmap"].measured.floor)
    )
    blurred = point("blur", None, some, [], raw)
    assert blurred.attribute_excess == pytest.approx((v - f) / (whole - bottom))
    assert blurred.attribute_excess_interval[0] < blurred.attribute_excess < blurred.attribute_excess_interval[1]
    assert blurred.metrics["cmap"].excess == blurred.attribute_excess
    assert blurred.metrics["f1"].excess is None
    assert blurred.verdict == "attributes leak"
    assert point("black", None, none, [], raw).verdict == "no leak was found"
    assert point("black", None, none, [], raw).attribute_excess == pytest.approx(0, abs=0.03)
    assert point("none", None, none, [], none).not_measurable == ["cmap"]


def test_one_answer_for_all_clips_is_exactly_at_its_floor():
    data = labelled(people=30, clips=3)
    found = measured(data, predicting(data, np.full(truth(data).shape, 0.3)))["cmap"]
    assert found.measured.value.value == pytest.approx(found.measured.floor)
    assert found.floor_range == pytest.approx((found.measured.floor, found.measured.floor))
    assert found.p == 1


# ---- few


def test_as_many_as_are_not_many_are_each_measured_anew_in_every_draw_and_permuted():
    data = labelled(MANY, people=12, clips=2)
    scores = half(data)
    measure = Measure(data, permutations=20, resamples=20)
    found, _ = measure.attributes({"net": [predicting(data, scores)]})
    assert len(found) == 2 * MANY + 2
    drawn: dict[str, list[np.ndarray]] = {"cmap": [], "f1": []}
    for a, name in enumerate(data.attribute_names):
        labels, own = truth(data)[:, a].astype(np.float64), scores[:, a]
        value, balance = (
            measure.resamples.statistic(partial(metric, labels, logit_of(own)))
            for metric in (metrics.average_precision, metrics.f1)
        )
        floor = permuted(labels, own, measure.people, 20, value.value)
        one = found[f"ap_{name}"]
        np.testing.assert_array_equal(one.measured.value.samples, value.samples)
        assert (one.measured.value.value, one.measured.floor, one.p) == (value.value, floor.value, floor.p)
        drawn["cmap"].append(value.samples)
        drawn["f1"].append(balance.samples)
    for name, each in drawn.items():
        np.testing.assert_array_equal(found[name].measured.value.samples, np.mean(each, axis=0))
        assert found[name].note == ""
    assert found["cmap"].measured.chance is None
    together = attribute_excess(found, found)
    assert together is not None
    assert "cmap" not in (*together.measured, *together.not_measurable)
    assert point("blur", None, found, [], found).metrics["cmap"].excess is None


# ---- a whole evaluation


@pytest.mark.usefixtures("own_folders")
def test_an_evaluation_of_many_attributes_reports_cmap_its_excess_and_a_verdict():
    data = toy()
    shown = np.concatenate([np.tile(data.attributes, (1, COUNT)), np.ones((len(data), COUNT), np.float32)], axis=1)
    data = replace(data, attributes=shown, attribute_names=tuple(f"thing_{i}" for i in range(2 * COUNT)))
    quick = {"epochs": 1, "attack": ("attributes",), "permutations": 100, "resamples": 100}
    results = evaluate(data, method="solid", attacker_lr=(2e-3,), **quick)
    (black,) = results.points
    assert results.raw.verdict.startswith("attributes leak")
    assert black.verdict.startswith("no leak was found")
    assert not [name for name in black.metrics if name.startswith(("ap_", "auroc_"))]
    assert results.raw.attribute_excess == pytest.approx(1)
    assert black.attribute_excess == pytest.approx(0, abs=1e-6)
    assert black.attribute_excess_interval == pytest.approx([0, 0], abs=0.05)
    text = table([results])
    assert "over 70 of 140 attributes" in text
    assert "thing 133 and 6 others." in text
