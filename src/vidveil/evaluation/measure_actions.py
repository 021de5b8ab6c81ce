"""Several actions at once: cMAP over those that vary in test, by the network that is best on validation.

**The interval is that of a mean over clips**, which AP nearly is (`metrics.average_precision_by_clip`). Attributes are
measured anew in each draw of people, but of hundreds of actions most are rare, and that goes wrong there: one that a
single clip shows is missing from a third of the draws, and in others the clip is there twice and lifts its own
precision. On 5,000 clips of 739 actions such an interval lay above the very number; of simulated sets of 600 clips it
held the truth in 45 to 83 %, the interval taken here in 90 to 97 %. It takes seconds, too, and not ten minutes.

**The floor** is the mean over all ways to deal the labels to the clips. It has a formula, so that nothing is permuted.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vidveil.data.clips import ClipSet
from vidveil.errors import DataError
from vidveil.evaluation import floors, metrics
from vidveil.evaluation.learner import Learned
from vidveil.evaluation.measure import Floats, Measure, Number, choose, logit_of, mean, on_test
from vidveil.evaluation.tradeoff import Leak


def readable(data: ClipSet) -> bool:
    """Whether actions can be learned and tested: else none of test was ever shown, or there is nothing to tell apart,
    and everybody is right."""
    if data.action_labels is not None:
        varies = [metrics.varying(data.action_labels[data.indices(split)]) for split in ("train", "test")]
        return bool(np.logical_and(*varies).any())
    seen = set(data.action[data.indices("train")].tolist())
    return len(seen) > 1 and set(data.action[data.indices("test")].tolist()) <= seen


def several_actions(measure: Measure, networks: Mapping[str, Sequence[Learned]]) -> Number:
    """cMAP of a set with `action_labels`. Actions that are the same in all test clips are left out."""
    data = measure.data
    assert data.action_labels is not None
    truth = data.action_labels[measure.rows].astype(np.float64)
    alive = np.flatnonzero(metrics.varying(truth))
    if not len(alive):
        raise DataError(f"{data.name}: every action is in all test clips or in none, and none can be told by its clips")
    values = {
        name: np.stack([_by_clip(truth, on_test(one).probabilities["action"], alive) for one in learned])
        for name, learned in networks.items()
    }  # each (S, N)
    val = {name: mean([one.scores["action"] for one in learned]) for name, learned in networks.items()}
    best = choose(val, "cMAP of actions", fallback=True)
    floor = mean([_by_lot(truth, on_test(one).probabilities["action"], alive) for one in networks[best]])
    chance = measure.resamples.mean(_prevalence(truth[:, alive]))
    return Number(
        leak=Leak("cMAP", measure.resamples.mean(values[best]), floor, chance),
        analytic=chance.value,
        floor_range=(floor, floor),
        measured_by=best,
        others={name: {"test": float(values[name].mean()), "val": val[name]} for name in networks},
        kind="utility",
        note=_which(data, alive),
        per_clip=values[best],
    )


def _by_clip(truth: Floats, said: NDArray[np.float32], columns: NDArray[np.int64]) -> Floats:
    """What cMAP is the mean of. (N, A), (N, A) -> (N,)"""
    total = np.zeros(len(truth))
    for a in columns:
        total += metrics.average_precision_by_clip(truth[:, a], logit_of(said[:, a]))
    return total / len(columns)


def _by_lot(truth: Floats, said: NDArray[np.float32], columns: NDArray[np.int64]) -> float:
    return mean([floors.average_precision_by_lot(truth[:, a], logit_of(said[:, a])) for a in columns])


def _prevalence(truth: Floats) -> Floats:
    """What the mean prevalence is the mean of; where labels are unknown, nearly so, as AP is. (N, A) -> (N,)"""
    known = ~np.isnan(truth)
    share = np.nanmean(truth, axis=0)
    own = np.where(known, truth - share, 0.0) * (len(truth) / known.sum(axis=0))
    each: Floats = (share + own).mean(axis=1)
    return each


def _which(data: ClipSet, alive: NDArray[np.int64]) -> str:
    """Over how many actions the mean is taken, where that is not all of them, and how many nobody could learn."""
    assert data.action_labels is not None
    shown = (data.action_labels[data.indices("train")] == 1).any(axis=0)
    told = f"over {len(alive):,} of {len(data.actions):,} actions"
    never = int((~shown[alive]).sum())
    return f"{told}, {never:,} of them in no training clip" if never else told * (len(alive) < len(data.actions))
