"""Attributes: average precision and AUROC of each, cMAP and F1 of all, by whoever is best at it on validation.

Of more than `MANY` no single one is reported, and cMAP and F1 are measured of all at once (`many_labels`): anew in each
draw of people, 1,678 attributes of 16,012 clips take hours, and the intervals of rare ones are wrong or none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from vidveil.data.clips import ClipSet
from vidveil.evaluation.evaluators.train import TrainedNetwork
from vidveil.evaluation.measures.many_labels import cmap_number, f1_by_clip, over_how_many, permuted
from vidveil.evaluation.measures.measured import MeasuredClips, choose, logit_of, mean, on_test
from vidveil.evaluation.number import Floats, Number
from vidveil.statistics import floors, metrics
from vidveil.statistics.intervals import Estimate, combined
from vidveil.statistics.tradeoff import Measurement

Measured = tuple[Estimate, floors.Floor]
LOGIT = "yes where the logit is above 0.5"
MANY = 64
AFFORDED = 1_000_000_000
"""Labels that are permuted at most, of clips that have them: about a minute per seed. Ten each of 16,012 clips,
permuted 1,000 times, are a sixth of it."""
LEAST_PERMUTATIONS = 100
"""But not fewer than these, unless fewer are asked for: with less, a verdict about three numbers could say nothing."""


def attributes(
    measure: MeasuredClips, attackers: Mapping[str, Sequence[TrainedNetwork]]
) -> tuple[dict[str, Number], list[str]]:
    """AP and AUROC of every attribute, cMAP and F1 of all, each by the attacker that is best at it on validation; of
    many attributes the latter two alone. And the attributes that are constant in test, which are left out."""
    names, truth = list(measure.data.attribute_names), measure.data.attributes[measure.rows].astype(np.float64)
    alive = [int(a) for a in np.flatnonzero(metrics.varying(truth))]
    constant = [name for name, varies in zip(names, metrics.varying(truth), strict=True) if not varies]
    if len(names) > MANY:
        return _many(measure, attackers, truth) if alive else {}, constant
    found: dict[str, Number] = {}
    precisions: dict[tuple[str, int], Measured] = {}
    for a in alive:
        for key, metric in (("ap", metrics.average_precision), ("auroc", metrics.auroc)):
            val = {name: _on_validation(measure.data, learned, metric, a) for name, learned in attackers.items()}
            best = choose(val, f"{names[a]} {key}", fallback=True)
            tried = {
                name: {
                    "test": mean([float(metric(truth[:, a], each, None)) for each in _scores(learned, a)]),
                    "val": val[name],
                }
                for name, learned in attackers.items()
            }
            measured = _measured(measure, metric, truth[:, a], _scores(attackers[best], a))
            if metric is metrics.average_precision:
                precisions[best, a] = measured
            found[f"{key}_{names[a]}"] = _attribute(measure, metric, truth[:, a], measured, best, tried)
    if alive:
        found |= _together(measure, attackers, truth, alive, precisions)
    return found, constant


def _on_validation(data: ClipSet, learned: Sequence[TrainedNetwork], metric: metrics.Weighted, column: int) -> float:
    predictions = [one.predictions["val"] for one in learned]
    truth = [data.attributes[one.rows, column].astype(np.float64) for one in predictions]
    scores = [logit_of(one.probabilities["attributes"][:, column]) for one in predictions]
    return mean([float(metric(labels, each, None)) for labels, each in zip(truth, scores, strict=True)])


def _measured(measure: MeasuredClips, metric: metrics.Weighted, truth: Floats, scores: Sequence[Floats]) -> Measured:
    value = measure.resamples.statistic([_weighted(metric, truth, each) for each in scores])
    return value, _permuted(measure, metric, truth, scores, value.per_seed)


def _attribute(
    measure: MeasuredClips,
    metric: metrics.Weighted,
    truth: Floats,
    measured: Measured,
    name: str,
    tried: dict[str, dict[str, float]],
) -> Number:
    value, floor = measured
    precision = metric is metrics.average_precision
    chance = measure.resamples.statistic(lambda weights: floors.prevalence(truth, weights)) if precision else None
    return Number(
        measured=Measurement("average precision" if precision else "AUROC", value, floor.value, chance),
        permuted=floor,
        formula=floors.AUROC_FLOOR,
        measured_by=name,
        others=tried,
    )


def _permuted(
    measure: MeasuredClips,
    metric: metrics.Weighted,
    truth: Floats,
    scores: Sequence[Floats],
    observed: Sequence[float],
) -> floors.Floor:
    return floors.over_seeds(
        [
            floors.permutation_floor(
                _relabelled(metric, each), truth, measure.people, observed=seen, permutations=measure.permutations
            )
            for each, seen in zip(scores, observed, strict=True)
        ]
    )


def _together(
    measure: MeasuredClips,
    attackers: Mapping[str, Sequence[TrainedNetwork]],
    truth: Floats,
    columns: Sequence[int],
    known: Mapping[tuple[str, int], Measured],
) -> dict[str, Number]:
    """cMAP and macro F1 over the attributes that vary. All of them are permuted alike, so the floor of the mean is the
    mean in each permutation. `known` are average precisions by attacker and column: most were measured before."""
    val = {name: mean([one.scores["attributes"] for one in learned]) for name, learned in attackers.items()}
    best = choose(val, "cMAP", fallback=True)

    scores = {a: _scores(attackers[best], a) for a in columns}
    each = [
        known.get((best, a)) or _measured(measure, metrics.average_precision, truth[:, a], scores[a]) for a in columns
    ]
    floor = floors.over_seeds([one for _, one in each])
    threshold = measure.f1_threshold

    def balanced(labels: Floats, logits: Floats, weights: Floats | None) -> Floats:
        return metrics.f1(labels, logits, weights, threshold=threshold)

    balance = [
        measure.resamples.statistic([_weighted(balanced, truth[:, a], logits) for logits in scores[a]]) for a in columns
    ]
    tried = {
        name: {
            "test": mean(
                [float(metrics.average_precision(truth[:, a], each)) for a in columns for each in _scores(learned, a)]
            ),
            "val": val[name],
        }
        for name, learned in attackers.items()
    }
    always = mean([floors.f1_floor(truth[:, a]) for a in columns])
    return {
        "cmap": Number(
            measured=Measurement("cMAP", _over([value for value, _ in each]), floor.value),
            permuted=floor,
            formula=mean([float(floors.prevalence(truth[:, a])) for a in columns]),
            measured_by=best,
            others=tried,
        ),
        "f1": Number(
            measured=Measurement("F1", _over(balance), always),
            measured_by=best,
            others={},
            note=LOGIT if threshold == "logit" else "",
        ),
    }


def _many(
    measure: MeasuredClips, attackers: Mapping[str, Sequence[TrainedNetwork]], truth: Floats
) -> dict[str, Number]:
    """cMAP and macro F1 of so many attributes that none is reported by itself. `truth` is (N, A) of the test clips.

    Where every clip is somebody else, the floor is a formula. Else people are permuted as wholes, and it is the mean
    over permutations: clips that are permuted one by one would put it too low (`floors`).
    """
    data, alive = measure.data, np.flatnonzero(metrics.varying(truth))
    found = cmap_number(measure, attackers, "attributes", truth)
    probabilities = [on_test(one).probabilities["attributes"] for one in attackers[found.measured_by]]
    affordable = max(LEAST_PERMUTATIONS, AFFORDED // int((truth[:, alive] == 1).sum()))
    permutations = min(measure.permutations, affordable)
    floor = floors.over_seeds(
        [
            permuted(truth, each, measure.people, observed=observed, permutations=permutations)
            for each, observed in zip(probabilities, found.measured.value.per_seed, strict=True)
        ]
    )
    alone = measure.resamples.people == len(truth)
    over = over_how_many(data.attributes, data.indices("train"), alive, "attributes")
    by_clip = np.stack([f1_by_clip(truth, each, measure.f1_threshold) for each in probabilities])  # (S, N)
    always = mean([floors.f1_floor(truth[:, a]) for a in alive])
    return {
        "cmap": replace(
            found,
            measured=replace(found.measured, floor=found.measured.floor if alone else floor.value),
            permuted=floor,
            note=f"{over}; p by {permutations:,} permutations" if permutations < measure.permutations else over,
        ),
        "f1": Number(
            measured=Measurement("F1", measure.resamples.mean(by_clip), always),
            measured_by=found.measured_by,
            others={},
            note="; ".join([over, "interval to first order", *([LOGIT] if measure.f1_threshold == "logit" else [])]),
        ),
    }


def _scores(learned: Sequence[TrainedNetwork], column: int) -> list[Floats]:
    """Logits of one attribute of the test clips, one entry per seed."""
    return [logit_of(on_test(one).probabilities["attributes"][:, column]) for one in learned]


def _over(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of several numbers, seed by seed and resample by resample."""
    whole = combined(lambda *parts: np.mean(parts, axis=0), *estimates)
    seeds = np.mean([one.per_seed for one in estimates], axis=0)
    return Estimate(whole.value, whole.samples, tuple(map(float, seeds)), whole.drawn)


def _weighted(metric: metrics.Weighted, truth: Floats, scores: Floats) -> Callable[[Floats], Floats]:
    return lambda weights: metric(truth, scores, weights)


def _relabelled(metric: metrics.Weighted, scores: Floats) -> Callable[[Floats], Floats]:
    return lambda labels: metric(labels, scores, None)
