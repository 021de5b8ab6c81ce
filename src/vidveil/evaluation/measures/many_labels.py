"""cMAP over many labels at once, hundreds of actions or attributes: value, interval and floor without a draw per label.

**The interval is that of a mean over clips**, which AP nearly is (`metrics.average_precision_by_clip`). Of hundreds of
labels most are rare, and measured anew in each draw of people that goes wrong: one that a single clip shows is missing
from a third of the draws, and in others the clip is there twice and lifts its own precision, so that the interval may
lie above the very number. It takes seconds, too, and not ten minutes.

**The floor** of clips that are permuted one by one is the mean over all permutations, which has a formula
(`floors.random_average_precision`). How far single permutations scatter around it has none: `permuted` moves whole rows
of labels, so that labels that go together stay together. Were each label permuted for itself, their mean would scatter
too little, and chance would look like a leak. Only positives are looked at, since AP is a sum over them: of rare labels
there are few.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vidveil.evaluation.evaluators.train import TrainedNetwork
from vidveil.evaluation.measures.measured import MeasuredClips, choose, logit_of, mean, on_test
from vidveil.evaluation.number import Floats, Number
from vidveil.statistics import floors, metrics
from vidveil.statistics.tradeoff import Measurement

Ints = NDArray[np.int64]
Predicted = NDArray[np.float32]


def cmap_number(
    measure: MeasuredClips, networks: Mapping[str, Sequence[TrainedNetwork]], head: str, truth: Floats
) -> Number:
    """cMAP of a head, by the network that is best on validation, with the floor by formula. `truth` are the
    labels of the test clips (N, A), at least one of which varies; those that do not are left out."""
    alive = np.flatnonzero(metrics.varying(truth))
    values = {
        name: np.stack([_cmap_by_clip(truth, on_test(one).probabilities[head], alive) for one in learned])
        for name, learned in networks.items()
    }  # each (S, N)
    val = {name: mean([one.scores[head] for one in learned]) for name, learned in networks.items()}
    best = choose(val, f"cMAP of {head}", fallback=True)
    floor = mean([_by_chance(truth, on_test(one).probabilities[head], alive) for one in networks[best]])
    chance = measure.resamples.mean(_prevalence(truth, alive))
    return Number(
        measured=Measurement("cMAP", measure.resamples.mean(values[best]), floor, chance),
        measured_by=best,
        others={name: {"test": float(values[name].mean()), "val": val[name]} for name in networks},
        per_clip=values[best],
    )


def over_how_many(labels: NDArray[np.float32], train: Ints, alive: Ints, what: str) -> str:
    """Over how many a mean is taken, and how many of them nobody could learn. `labels` (N, A) are of all clips."""
    never = int((~(labels[train][:, alive] == 1).any(axis=0)).sum())
    note = f"over {len(alive):,} of {labels.shape[1]:,} {what}"
    return f"{note}, {never:,} of them in no training clip" if never else note


def f1_by_clip(truth: Floats, probabilities: Predicted, threshold: metrics.Threshold) -> Floats:
    """What the mean F1 of the labels that vary is the mean of, to first order, as cMAP. (N, A), (N, A) -> (N,)"""
    alive = np.flatnonzero(metrics.varying(truth))
    total = np.zeros(len(truth))
    for a in alive:
        total += metrics.f1_by_clip(truth[:, a], logit_of(probabilities[:, a]), threshold=threshold)
    return total / len(alive)


def permuted(
    truth: Floats, probabilities: Predicted, people: NDArray[np.str_], *, observed: float, permutations: int
) -> floors.Floor:
    """cMAP of labels that are given to other people, each clip's labels together. (N, A), (N, A), (N,)

    Where some are unknown, they stay so, and the others move up in the same order of people: what
    `floors.permutation_floor` does with one label.
    """
    alive = np.flatnonzero(metrics.varying(truth))
    seats = np.argsort(people, kind="stable")
    patterns, group = np.unique(np.isnan(truth[:, alive]), axis=1, return_inverse=True)  # (N, G), (A',)
    places = [_places(truth[:, a], logit_of(probabilities[:, a])) for a in alive]
    values = np.zeros(permutations)
    for start, stop, permute in floors.permutation_batches(floors.permute_people, people, permutations, len(truth)):
        order = permute[:, seats]  # (b, N): who sits down next
        for g, unknown in enumerate(patterns.T):
            seat = _seated(order, seats, ~unknown)
            for i in np.flatnonzero(group.reshape(-1) == g):
                positives, above = places[i]
                values[start:stop] += _average_precision(above[seat[:, positives]])
    return floors.floor_of(values / len(alive), observed)


def _places(truth: Floats, scores: Floats) -> tuple[Ints, NDArray[np.int32]]:
    """Which clips have a label, and of each clip how many known ones score as high as it or higher. (n,), (N,)"""
    known = ~np.isnan(truth)
    place = np.unique(-scores, return_inverse=True)[1]
    above = np.bincount(place, weights=known).cumsum().astype(np.int32)
    return np.flatnonzero(truth == 1), above[place]


def _seated(order: Ints, seats: Ints, known: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Where the labels of each clip come to lie, if those who are unknown neither move nor give way. (b, N)"""
    seat = np.zeros(order.shape, np.int32)
    moved = order[known[order]].reshape(len(order), -1)  # as many in each row
    np.put_along_axis(seat, moved, seats[known[seats]].astype(np.int32)[None], axis=1)
    return seat


def _average_precision(above: NDArray[np.int32]) -> Floats:
    """AP of positives that lie where so many clips score as high or higher. (b, n) -> (b,)"""
    rising = np.sort(above, axis=1)
    count = rising.shape[1]
    found = np.arange(1.0, count + 1)
    same = rising[:, 1:] == rising[:, :-1]
    if same.any():  # positives with the same score are found together
        last = np.where(np.pad(~same, ((0, 0), (0, 1)), constant_values=True), found, np.inf)
        found = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    return np.asarray((found / rising).sum(axis=1) / count)


def _cmap_by_clip(truth: Floats, probabilities: Predicted, columns: Ints) -> Floats:
    """What cMAP is the mean of. (N, A), (N, A) -> (N,)"""
    total = np.zeros(len(truth))
    for a in columns:
        total += metrics.average_precision_by_clip(truth[:, a], logit_of(probabilities[:, a]))
    return total / len(columns)


def _by_chance(truth: Floats, probabilities: Predicted, columns: Ints) -> float:
    return mean([floors.random_average_precision(truth[:, a], logit_of(probabilities[:, a])) for a in columns])


def _prevalence(truth: Floats, columns: Ints) -> Floats:
    """What the mean prevalence is the mean of; where labels are unknown, nearly so, as AP is. (N, A) -> (N,)"""
    truth = truth[:, columns]
    known = ~np.isnan(truth)
    share = np.nanmean(truth, axis=0)
    own = np.where(known, truth - share, 0.0) * (len(truth) / known.sum(axis=0))
    each: Floats = (share + own).mean(axis=1)
    return each
