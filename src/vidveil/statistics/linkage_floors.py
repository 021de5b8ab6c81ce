"""Floors of linkage by permutation: people permuted over the clips of each action, under the same embeddings.

Who is near whom does not depend on who is who, so neighbours are looked up once, and each of 1,000 permutations only
reads off whose clips they are. `floors` explains why clips are permuted, and not people.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vidveil.statistics.floors import (
    AT_ONCE,
    PERMUTATIONS,
    Floats,
    Floor,
    Ints,
    floor_of,
    permutation_batches,
    permute_within,
)
from vidveil.statistics.linkage import Linkage, LinkageSetup, nearest


def linkage_floor(
    embeddings: ArrayLike,
    setup: LinkageSetup,
    found: Linkage,
    *,
    gallery: ArrayLike | None = None,
    permutations: int = PERMUTATIONS,
) -> Floor:
    """Floor of rank-1: people (with their outfits) permuted over the clips of each action. `found` is what `rank` gave.

    Permuting within an action leaves every (person, outfit, action) as often as it was, so a clip's number of positives
    travels with its label.
    """
    depth = 1
    if setup.clothes != "any" and setup.outfit is not None:  # so many of the nearest may be taken out of the gallery
        same = np.unique(np.stack([setup.person, setup.outfit]), axis=1, return_counts=True)[1].max(initial=0)
        depth += int(
            same if setup.clothes == "changed" else np.unique(setup.person, return_counts=True)[1].max(initial=0)
        )
    neighbours = nearest(embeddings, setup, gallery=gallery, depth=min(depth, max(1, len(setup))))
    values = np.empty(permutations)
    for start, stop, permuted in permutation_batches(permute_within, _strata(setup), permutations, len(setup)):
        # permuted: (b, N) the clip whose person stands here now
        asked = found.queries[permuted]
        hits = np.zeros(permuted.shape, dtype=np.bool_)
        open_ = asked.copy()  # nearest clip that is in the gallery not reached yet
        for k in range(neighbours.shape[1]):
            there = neighbours[:, k]  # (N,)
            other = permuted[:, there]  # -1 reads the last clip, and does not count
            usable = open_ & (there >= 0) & ~setup.removed(permuted, other)
            hits |= usable & (setup.person[permuted] == setup.person[other])
            open_ &= ~usable
            if not open_.any():
                break
        count = asked.sum(axis=1)
        values[start:stop] = np.divide(hits.sum(axis=1), count, out=np.full(stop - start, np.nan), where=count > 0)
    return floor_of(values, found.rank1)


def linkage_map_floor(
    embeddings: ArrayLike,
    setup: LinkageSetup,
    found: Linkage,
    *,
    gallery: ArrayLike | None = None,
    permutations: int = PERMUTATIONS,
) -> Floor:
    """Floor of linkage's mAP, permuted in the same way.

    A clip's average precision depends on the places of its person's clips in its ranking and on nothing else, so the
    places of all clips are looked up once, and of each permutation only those of the same person are read. The places
    take 12 bytes per pair of clips: 1.2 GB for 10,000.
    """
    count = len(setup)
    order = nearest(embeddings, setup, gallery=gallery, depth=count)
    places = np.full((count, count + 1), count, dtype=np.int32)  # the last column takes what is outside the gallery
    np.put_along_axis(places, np.where(order >= 0, order, count), np.arange(count, dtype=np.int32)[None], axis=1)
    values = np.empty(permutations)
    slots = _slots(setup.person) if setup.clothes == "any" else None
    for start, stop, batch in permutation_batches(permute_within, _strata(setup), permutations, count):
        if slots is not None:
            values[start:stop] = _mean_precisions(places, setup.person, found, batch, slots)
            continue
        for permutation, permuted in enumerate(batch, start):
            query, other = _pairs_of_a_person(setup.person, permuted)
            place = places[query, other]
            inside = (place < count) & found.queries[permuted[query]]
            query, other, place = query[inside], other[inside], place[inside]
            sequence = np.argsort(query * np.int64(count) + place)
            query, other, place = query[sequence], other[sequence], place[sequence]
            gone = setup.removed(permuted[query], permuted[other])
            sizes = np.bincount(query, minlength=count)
            starts = (np.cumsum(sizes) - sizes)[query]  # where the clips of each query begin
            passed: Ints = np.cumsum(gone) - gone  # clips taken out before, over all queries
            nth = np.arange(len(query)) - starts - (passed - passed[starts]) + 1  # the n-th clip of the person
            precision = np.where(gone, 0.0, nth / (place + 1 - (passed - passed[starts])))
            sums = np.bincount(query, weights=precision, minlength=count)
            values[permutation] = np.mean((sums / np.maximum(found.positives[permuted], 1))[found.queries[permuted]])
    return floor_of(values, found.mean_average_precision)


def _strata(setup: LinkageSetup) -> Ints:
    """What a clip's gallery depends on besides identity: clips are permuted among those where this is the same."""
    fixed = [column for column in (setup.action, setup.probes, setup.among) if column is not None]
    return np.unique(np.stack([setup.person < 0, *fixed]), axis=1, return_inverse=True)[1].reshape(-1)


def _slots(person: Ints) -> Ints | None:
    """(P, m): after sorting clips by person, where those of each known person stand; -1 where they have fewer than m.
    Permuting does not change it. None if people's numbers of clips differ so much that most of it would be empty."""
    unknown, sizes = int((person < 0).sum()), np.unique(person[person >= 0], return_counts=True)[1]
    if not len(sizes) or len(sizes) * sizes.max() ** 2 > 4 * (sizes**2).sum():
        return None
    within = np.arange(sizes.max())
    begins = unknown + np.cumsum(sizes) - sizes
    return np.where(within < sizes[:, None], begins[:, None] + within, -1)


def _mean_precisions(places: NDArray[np.int32], person: Ints, found: Linkage, batch: Ints, slots: Ints) -> Floats:
    """mAP under each permutation (b, N) -> (b,), for galleries that nothing is taken out of: a person's clips, sorted
    by their places in the ranking of each other, many permutations at a time."""
    count, (people, most) = len(person), slots.shape
    values = np.empty(len(batch))
    step = max(1, AT_ONCE // (people * most**2))
    nth = np.arange(1, most + 1)
    for start in range(0, len(batch), step):
        permuted = batch[start : start + step]  # (b, N)
        clips = np.argsort(person[permuted], axis=1, kind="stable")[:, slots]  # (b, P, m)
        place = places[clips[..., None], clips[:, :, None, :]]  # (b, P, m, m): query, other
        place[np.broadcast_to(slots[:, None, :] < 0, place.shape)] = count
        place[..., np.arange(most), np.arange(most)] = count  # nobody is in their own gallery
        place.sort(axis=-1)
        sums = np.where(place < count, nth / (place + 1), 0.0).sum(axis=-1)  # (b, P, m)
        whose = np.take_along_axis(permuted, clips.reshape(len(permuted), -1), axis=1).reshape(clips.shape)
        asked = found.queries[whose] & (slots >= 0)
        each = np.where(asked, sums / np.maximum(found.positives[whose], 1), 0.0)
        values[start : start + step] = each.sum(axis=(1, 2)) / np.maximum(asked.sum(axis=(1, 2)), 1)
    return values


def _pairs_of_a_person(person: Ints, permuted: Ints) -> tuple[Ints, Ints]:
    """All pairs of different places at which the same known person stands after permuting."""
    who = person[permuted]
    row = np.argsort(who, kind="stable")
    row = row[who[row] >= 0]
    first, sizes = np.searchsorted(who[row], who[row]), np.bincount(who[row])[who[row]] if len(row) else row
    query = np.repeat(row, sizes)
    within = np.arange(len(query)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    other = row[np.repeat(first, sizes) + within]
    return query[query != other], other[query != other]
