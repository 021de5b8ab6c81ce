"""Linkage: given a clip of somebody, is the most similar other clip of the same person?

    s(q, j) = cos(e_q, e_j)         rank-1 of q = 1 if argmaxⱼ s(q, j) is of q's person, j in the gallery of q

No label is used at test time, and the people were never seen in training, so this is what a stranger with a pile of
anonymized videos can do. A `LinkageSetup` says who is looked for among whom:

    any            all clips but the query itself
    same action    of those, clips with the query's action: where an action identifies people, a perfect action feature
                   must not count as a leak
    other action   of those, clips with other actions: where a person does each action once

The query's own clip is never in its gallery, not even as its raw version when anonymized clips are looked up among raw
ones. Queries with no clip of their person in the gallery cannot be answered by anybody, and are left out.

**Ties.** A method that makes all videos black makes all clips equally similar. Whichever was listed first would be
"nearest", and lists are sorted by person. So ties are broken at random, and the number is its mean over all outcomes:
tied clips share the hit. Similarities that agree to 1e-6 are tied. Of identical clips linkage is at its floor, exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vidveil.core.errors import UsageError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Rule = Literal["any", "same action", "other action"]
Clothes = Literal["any", "same", "changed"]

DECIMALS = 6  # of a cosine that count
_AT_ONCE = 2_000_000  # similarities in memory at a time: 16 MB an array


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkageSetup:
    """Who is looked for among whom. All arrays have one entry per clip."""

    person: Ints
    """Identity; -1 where nobody knows: such clips are no queries, and in no gallery, since they may be anyone."""
    rule: Rule = "any"
    action: Ints | None = None
    outfit: Ints | None = None
    """What the person wears, numbered over all people."""
    clothes: Clothes = "any"
    """`same`: of the query's person, only clips in the same outfit are in the gallery. `changed`: only clips in another
    outfit. Clips of other people are there either way."""
    probes: Bools | None = None
    """Which clips are queries; all, if None."""
    among: Bools | None = None
    """Which clips may be in a gallery; all, if None."""

    def __post_init__(self) -> None:
        for name in ("person", "action", "outfit", "probes", "among"):
            column = getattr(self, name)
            if column is not None and np.shape(column) != (len(self.person),):
                raise UsageError(f"linkage: {len(self.person)} people, but {name} is {np.shape(column)}")
        if self.rule not in ("any", "same action", "other action"):
            raise UsageError(f"linkage: no gallery is called {self.rule!r}; there are any, same action, other action")
        if self.clothes not in ("any", "same", "changed"):
            raise UsageError(f"linkage: clothes are any, same or changed, not {self.clothes!r}")
        if self.rule != "any" and self.action is None:
            raise UsageError(f"linkage: a gallery of {self.rule} needs the actions")
        if self.clothes != "any" and self.outfit is None:
            raise UsageError(f"linkage: a gallery of {self.clothes} clothes needs the outfits")

    def __len__(self) -> int:
        return len(self.person)

    def fixed(self, rows: Ints) -> Bools:
        """The part of the gallery that does not depend on who is who. (c, N)"""
        columns = np.arange(len(self))
        inside = (columns != rows[:, None]) & (self.person >= 0) & (self.person[rows] >= 0)[:, None]
        if self.probes is not None:
            inside &= self.probes[rows][:, None]
        if self.among is not None:
            inside &= self.among
        if self.rule != "any" and self.action is not None:
            inside &= (self.action[rows][:, None] == self.action) == (self.rule == "same action")
        return np.asarray(inside)

    def removed(self, query: Ints, other: Ints) -> Bools:
        """Whether the rule about clothes takes `other` out of the gallery of `query`; both index clips."""
        if self.clothes == "any" or self.outfit is None:
            return np.zeros(np.broadcast_shapes(query.shape, other.shape), dtype=np.bool_)
        same_outfit = self.outfit[query] == self.outfit[other]
        return np.asarray((self.person[query] == self.person[other]) & (same_outfit == (self.clothes == "changed")))


@dataclass(frozen=True, eq=False)
class Linkage:
    """What was found, one entry per clip; NaN for clips that are no query or have no clip of their person to find."""

    hit: Floats
    """Rank-1: the probability that the nearest clip is of the same person, 0 or 1 but for ties."""
    average_precision: Floats
    """Of the whole ranking; its mean is mAP."""
    chance: Floats
    """Positives / gallery: the hit of a neighbour drawn at random."""
    positives: Ints
    gallery: Ints
    """How many clips the query was compared with."""
    ahead: Ints
    """Clips strictly nearer than the nearest of the same person."""
    tied: Ints
    """Clips exactly as near as that one, itself included."""
    tied_positives: Ints

    @property
    def queries(self) -> Bools:
        return ~np.isnan(self.hit)

    @property
    def rank1(self) -> float:
        return _mean(self.hit)

    @property
    def mean_average_precision(self) -> float:
        return _mean(self.average_precision)

    @property
    def floor(self) -> float:
        """Rank-1 of a random neighbour."""
        return _mean(self.chance)

    def recall(self, k: int) -> Floats:
        """R@k: the probability that a clip of the same person is among the k nearest. Its mean is the number."""
        if k < 1:
            raise UsageError(f"linkage: R@k needs k of 1 or more, got {k}")
        room = np.clip(k - self.ahead, 0, self.tied)  # places among the k for the tied clips
        missed = np.ones(len(self.hit))
        for drawn in range(int(room.max(initial=0))):  # tied clips are drawn one by one, without a positive so far
            misses, left = self.tied - self.tied_positives - drawn, self.tied - drawn
            missed = np.where(drawn < room, missed * np.maximum(misses, 0) / np.maximum(left, 1), missed)
        return np.where(self.queries, 1 - missed, np.nan)


def rank(
    embeddings: ArrayLike, setup: LinkageSetup, *, gallery: ArrayLike | None = None, precision: bool = True
) -> Linkage:
    """Look every clip up among the others. `embeddings` are (N, D); `gallery` (N, D) are other embeddings of the same
    clips to look among, such as those of the raw videos. Without `precision`, which takes most of the time, average
    precisions are NaN."""
    count = len(setup)
    hit, precisions, chance = (np.full(count, np.nan) for _ in range(3))
    positives, size, ahead, tied, tied_positives = (np.zeros(count, dtype=np.int64) for _ in range(5))
    columns = np.arange(count)
    for rows, similar, inside in similarities(embeddings, setup, gallery):
        inside &= ~setup.removed(rows[:, None], columns)
        match = inside & (setup.person[rows][:, None] == setup.person)  # (c, N)
        positives[rows], size[rows] = match.sum(axis=1), inside.sum(axis=1)
        answerable = positives[rows] > 0
        rows, similar, inside, match = rows[answerable], similar[answerable], inside[answerable], match[answerable]
        if not len(rows):
            continue
        similar = np.where(inside, similar, -np.inf)
        best = np.where(match, similar, -np.inf).max(axis=1, keepdims=True)
        ahead[rows] = (similar > best).sum(axis=1)
        level = similar == best
        tied[rows], tied_positives[rows] = level.sum(axis=1), (level & match).sum(axis=1)
        hit[rows] = np.where(ahead[rows] == 0, tied_positives[rows] / tied[rows], 0.0)
        chance[rows] = positives[rows] / size[rows]
        if precision:
            precisions[rows] = _average_precisions(similar, match)
    return Linkage(hit, precisions, chance, positives, size, ahead, tied, tied_positives)


def nearest(embeddings: ArrayLike, setup: LinkageSetup, *, gallery: ArrayLike | None = None, depth: int = 1) -> Ints:
    """The `depth` nearest clips of each query in the gallery as it is before clothes, ties in random order. (N, depth)

    -1 where the gallery is smaller than that. Knows nothing of who is who, so it stays when people are permuted.
    """
    rng = np.random.default_rng(0)
    found = np.full((len(setup), depth), -1, dtype=np.int64)
    for rows, similar, inside in similarities(embeddings, setup, gallery):
        noise = rng.random(similar.shape) * (0.4 * 10.0**-DECIMALS)  # less than two similarities differ by
        similar = np.where(inside, similar + noise, -np.inf)
        top = min(depth, similar.shape[1])
        part = np.argpartition(-similar, top - 1, axis=1)[:, :top]
        order = np.take_along_axis(part, np.argsort(-np.take_along_axis(similar, part, axis=1), axis=1), axis=1)
        found[rows, :top] = np.where(np.take_along_axis(inside, order, axis=1), order, -1)
    return found


def similarities(
    embeddings: ArrayLike, setup: LinkageSetup, gallery: ArrayLike | None = None
) -> Iterator[tuple[Ints, Floats, Bools]]:
    """Some queries at a time: their numbers (c,), rounded cosines with all clips (c, N), and who is in the gallery
    before clothes (c, N). A whole matrix of 10,000 clips is never in memory."""
    queries = _directions(embeddings, len(setup))
    others = queries if gallery is None else _directions(gallery, len(setup))
    if queries.shape != others.shape:
        raise UsageError(f"linkage: embeddings are {queries.shape}, those of the gallery {others.shape}")
    step = max(1, _AT_ONCE // max(1, len(setup)))
    for start in range(0, len(setup), step):
        rows = np.arange(start, min(start + step, len(setup)))
        yield rows, np.round(queries[rows] @ others.T, DECIMALS), setup.fixed(rows)


def _average_precisions(similar: Floats, match: Bools) -> Floats:
    """AP of each row, as it is on average when ties are broken at random. (c, N) -> (c,)

    A tie of t clips, m of them positive, after a others with A positives, holds a positive at each of its places with
    probability m/t; at the i-th, i = 0 … t − 1, precision is then (A + 1 + i (m − 1)/(t − 1)) / (a + i + 1) on average.
    """
    order = np.argsort(-similar, axis=1)
    similar, match = np.take_along_axis(similar, order, axis=1), np.take_along_axis(match, order, axis=1)
    change = similar[:, :-1] != similar[:, 1:]  # (c, N - 1)
    plain = ~(~change & (match[:, :-1] | match[:, 1:])).any(axis=1)  # no positive is tied with anything
    result = np.empty(len(similar))
    result[~plain] = _with_ties(match[~plain], change[~plain])
    row, place = np.nonzero(match[plain])  # row by row, so a positive's number within its row counts those before it
    sizes = match[plain].sum(axis=1)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    result[plain] = np.bincount(row, weights=nth / (place + 1), minlength=len(sizes)) / sizes
    return result


def _with_ties(match: Bools, change: Bools) -> Floats:
    """The same of sorted rows; `change` (c, N - 1) says where the next similarity is another."""
    places = np.arange(match.shape[1])
    edge = np.ones((len(match), 1), dtype=np.bool_)
    first = np.maximum.accumulate(np.where(np.hstack([edge, change]), places, 0), axis=1)  # where the tie begins
    last = np.where(np.hstack([change, edge]), places, len(places))
    last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]  # and where it ends, (c, N) both
    found = np.hstack([np.zeros((len(match), 1), dtype=np.int64), match.cumsum(axis=1)])  # (c, N + 1) before each place
    before = np.take_along_axis(found, first, axis=1)
    inside = np.take_along_axis(found, last + 1, axis=1) - before
    size = last - first + 1
    precision = (before + 1 + (places - first) * (inside - 1) / np.maximum(size - 1, 1)) / (places + 1)
    result: Floats = (precision * inside / size).sum(axis=1) / match.sum(axis=1)
    return result


def _directions(embeddings: ArrayLike, count: int) -> Floats:
    """Embeddings of length 1; one of length 0 stays 0, and is equally far from all."""
    vectors = np.asarray(embeddings, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != count:
        raise UsageError(f"linkage: {count} clips, but embeddings are {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise UsageError("linkage: some embeddings are not finite; did training diverge?")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return directions


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
