"""What a number would be if nothing leaked. A number without its floor says nothing.

Two kinds. By formula, from the labels alone:

    top-1                 share of the largest class                      linkage   mean of positives / gallery size
    average precision     prevalence                                      AUROC     ½
    F1                    that of "always yes", 2π/(1 + π): a fair coin has 2π/(1 + 2π), which is less

and by permutation: the labels are permuted 1,000 times under the same scores, and the floor is the mean. This is
the floor that excess leakage uses, since the formulas are only nearly right. A random ranking of N clips, n of them
positive, has an expected average precision above its prevalence (`expected_average_precision`),

    E[AP] = (n − 1)/(N − 1) + (N − n)/(N − 1) · H/N,         H = 1 + 1/2 + … + 1/N,

and what is permuted must be what was drawn independently, or the floor is too low:

- **Attributes belong to people.** Gender is the same in all clips of a person, and an attacker's prediction nearly so.
  With 36 test people there are 36 labels, not 720, and a ranking of 36 random things has an AP well above the
  prevalence. So whole people are permuted: each gets the labels of another, in random order. The same rule is right for
  an attribute that changes from clip to clip, since its labels look alike for everybody.
- **Linkage is about clips.** Permuting whole people would change nothing: who is the same as whom would stay. So clips
  are permuted, and within an action, together with what the person wears there: "walks" may lie near "walks" for a
  reason that is no leak, and the floor must have that reason in it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vidveil.core.errors import UsageError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Permute = Callable[[ArrayLike, int, np.random.Generator], Ints]
PERMUTATIONS = 1_000
SEED = 0  # of all permutations, so that floors can be averaged
AUROC_FLOOR = 0.5
AT_ONCE = 2_000_000  # permuted labels in memory at a time


@dataclass(frozen=True)
class Floor:
    """A floor by permutation."""

    value: float
    """The mean over permutations."""
    low: float
    high: float
    """95 % of the permutations lie between these."""
    p: float
    """Share of permutations that reach the observed value, itself counted in; NaN if no value was given."""
    permutations: int
    observed: float = float("nan")
    values: Floats = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    """(permutations,) the number under each."""


def largest_class(labels: ArrayLike) -> float:
    """Top-1 of always saying the most frequent class."""
    counts = np.unique(np.asarray(labels), return_counts=True)[1]
    return float(counts.max() / counts.sum()) if len(counts) else float("nan")


def prevalence(labels: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Share of positives among the known labels. (..., N) -> (...), with weights as in `metrics`."""
    truth = np.asarray(labels, dtype=np.float64)
    known = (~np.isnan(truth)) * (np.float64(1) if weights is None else np.asarray(weights, dtype=np.float64))
    total = known.sum(axis=-1)
    positive = (known * np.nan_to_num(truth)).sum(axis=-1)
    share: Floats = np.divide(positive, total, out=np.full(np.shape(total), np.nan), where=total > 0)
    return share


def f1_floor(labels: ArrayLike) -> float:
    """F1 of always saying yes."""
    share = float(prevalence(labels))
    return 2 * share / (1 + share)


def expected_average_precision(positives: ArrayLike, total: ArrayLike) -> Floats:
    """Mean AP over all orders of `total` clips without ties, `positives` of them positive; broadcasts.

    A positive stands at each place k with the same probability, and the k − 1 before it hold (k − 1)(n − 1)/(N − 1)
    other positives on average; the mean of the precision over k is the formula above.
    """
    n, size = np.broadcast_arrays(np.asarray(positives, dtype=np.float64), np.asarray(total, dtype=np.int64))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, max(2, int(size.max(initial=1)) + 1)))])[size]
    others = np.divide(n - 1, size - 1, out=np.ones(n.shape), where=size > 1)
    mean = np.divide(harmonic + others * (size - harmonic), size, out=np.full(n.shape, np.nan), where=size > 0)
    return np.where(n > 0, mean, np.nan)


def random_average_precision(labels: ArrayLike, scores: ArrayLike) -> float:
    """Mean AP over all permutations of the labels: what permutations come to, if clips are permuted one by one.

    Σₖ mₖ/N · (1 + (n − 1)(Sₖ − 1)/(N − 1)) / Sₖ over the distinct scores, mₖ clips at the k-th and Sₖ at it or above:
    `expected_average_precision` without ties, the prevalence where all scores are the same.
    """
    truth, values = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    known = ~np.isnan(truth)
    positives, size = np.nansum(truth), int(known.sum())
    if not positives:
        return float("nan")
    ties = np.unique(-values[known], return_counts=True)[1]
    above = ties.cumsum()
    others = (positives - 1) * (above - 1) / max(size - 1, 1)
    return float((ties / size * (1 + others) / above).sum())


def permutation_floor(
    metric: Callable[[Floats], Floats],
    labels: ArrayLike,
    people: ArrayLike,
    *,
    observed: float = float("nan"),
    permutations: int = PERMUTATIONS,
) -> Floor:
    """Floor of a metric of one attribute. `metric` takes labels (B, N) to (B,) values under the scores it holds.

        permutation_floor(lambda y: average_precision(y, scores), labels, people)

    Clips whose label nobody knows stay unknown; the others are permuted by person (above).
    """
    truth = np.asarray(labels, dtype=np.float64)
    who = np.asarray(people)
    if truth.ndim != 1 or who.shape != truth.shape:
        raise UsageError(f"labels {truth.shape} and people {who.shape} must both have one entry per clip")
    known = np.flatnonzero(~np.isnan(truth))
    values = np.empty(permutations)
    for start, stop, permute in permutation_batches(permute_people, who[known], permutations, len(truth)):
        permuted = np.tile(truth, (stop - start, 1))
        permuted[:, known] = truth[known][permute]
        values[start:stop] = metric(permuted)
    return floor_of(values, observed)


def over_seeds(floors: Sequence[Floor]) -> Floor:
    """Floor of the mean over training seeds: they share their permutations, so the mean is taken in each of them.

    The mean over seeds scatters less than one seed does, so its range is narrower than the mean of their ranges.
    """
    if len({one.permutations for one in floors}) != 1:
        raise UsageError("floors of several seeds need the same permutations, and so the same number of them")
    values = np.mean([one.values for one in floors], axis=0)
    return floor_of(values, float(np.mean([one.observed for one in floors])))


def above_chance(ps: Mapping[str, float], level: float = 0.05) -> list[str]:
    """Which of several numbers are above their floors, with the chance of a single false alarm held below `level`.

    Ten numbers of pure noise, each evaluated at 5 %, raise a false alarm in four evaluations of ten. By Holm's rule the
    smallest p must be below level / m, the next below level / (m − 1) and so on, up to the first that is not.
    """
    found: list[str] = []
    order = sorted((name for name in ps if not np.isnan(ps[name])), key=lambda name: ps[name])
    for rank, name in enumerate(order):
        if ps[name] > level / (len(order) - rank):
            break
        found.append(name)
    return [name for name in ps if name in found]


def permute_people(people: ArrayLike, count: int, rng: np.random.Generator) -> Ints:
    """Permutations of clips that keep people together as far as they can. (count, N)

    All clips are put in a row, person after person in random order, the clips of each shuffled; then given to the
    people as they were. With equally many clips per person, each gets those of exactly one other.
    """
    row = np.unique(np.asarray(people), return_inverse=True)[1].reshape(-1)
    places = np.argsort(row, kind="stable")
    order = np.argsort(rng.random((count, int(row.max(initial=-1)) + 1)), axis=1).argsort(axis=1)  # (count, P)
    keys = order[:, row] + rng.random((count, len(row)))
    return _placed(keys, places)


def permute_within(strata: ArrayLike, count: int, rng: np.random.Generator) -> Ints:
    """Permutations of clips within each stratum. (count, N)"""
    row = np.unique(np.asarray(strata), return_inverse=True)[1].reshape(-1)
    return _placed(row + rng.random((count, len(row))), np.argsort(row, kind="stable"))


def permutation_batches(
    permute: Permute, parts: ArrayLike, permutations: int, clips: int
) -> Iterator[tuple[int, int, Ints]]:
    """(start, stop, permuted (stop - start, N)) until all permutations are there. Every attacker, attribute and seed
    has the same ones, so what fits into one batch is remembered: permuting takes longer than most metrics."""
    row = np.unique(np.asarray(parts), return_inverse=True)[1].reshape(-1).astype(np.int64)
    batches = _batches(permutations, clips)
    if len(batches) == 1:
        yield 0, permutations, _permuted_once(permute, row.tobytes(), permutations)
        return
    rng = np.random.default_rng(SEED)
    for start, stop in batches:
        yield start, stop, permute(row, stop - start, rng)


@lru_cache(maxsize=8)  # 16 MB each at most
def _permuted_once(permute: Permute, row: bytes, permutations: int) -> Ints:
    permuted = permute(np.frombuffer(row, np.int64), permutations, np.random.default_rng(SEED))
    permuted.flags.writeable = False
    return permuted


def _placed(keys: Floats, places: Ints) -> Ints:
    """The clip with the k-th smallest key goes to the k-th place."""
    permuted = np.empty(keys.shape, dtype=np.int64)
    permuted[:, places] = np.argsort(keys, axis=1)
    return permuted


def _batches(permutations: int, clips: int) -> list[tuple[int, int]]:
    if permutations < 1:
        raise UsageError(f"a floor needs at least one permutation, got {permutations}")
    step = max(1, AT_ONCE // max(1, clips))
    return [(start, min(start + step, permutations)) for start in range(0, permutations, step)]


def floor_of(values: Floats, observed: float) -> Floor:
    """`values` has one entry per permutation, NaN where the number is undefined."""
    reached = 1 + int((values >= observed - 1e-9).sum())
    p = float("nan") if np.isnan(observed) else reached / (1 + len(values))
    defined = values[~np.isnan(values)]
    if not len(defined):
        return Floor(float("nan"), float("nan"), float("nan"), float("nan"), len(values), observed, values)
    low, high = np.quantile(defined, [0.025, 0.975])
    return Floor(float(defined.mean()), float(low), float(high), p, len(values), observed, values)
