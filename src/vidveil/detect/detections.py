"""What a detector may return: finite numbers, probabilities, boxes about where the picture is, and not thousands.

Every detector's outputs pass `likely_boxes`. Whatever makes no sense raises DetectorError: NaN is not greater than a
threshold, so without these checks a network that fails would look like one that found nobody.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DetectorError

Boxes = NDArray[np.float32]
"""(N, 5): left, top, right, bottom, score; best first"""

OVERLAP = 0.3  # two boxes that share more of their union are one
TOLERANCE = 1e-3  # by which rounding may carry a probability out of 0..1
PADDING = -1.0  # the score of rows with which some exporters fill up a list of boxes
BORDER = 16.0  # pixels by which a small thing at the border may be placed outside of what the network saw
SMALLEST = 1.5  # pixels: if no box is larger, they are shares of the picture, which may stick out over its border
MOST_CANDIDATES = 20_000  # boxes above the threshold, and
MOST_FOUND = 1_000  # those left once overlapping ones are one

SCORES = "`layout`: scores are probabilities from 0 to 1"
PIXELS = "`layout`: boxes are in pixels of the picture that the network sees"


class Cells(NamedTuple):
    """What a network says of all the places (cells) at which it looks for something."""

    scores: NDArray[Any]
    """(cells,): how sure it is that what is looked for is there."""
    boxes: Callable[[NDArray[np.intp]], NDArray[Any]]
    """Indices of k cells → (k, 4): left, top, right, bottom in pixels of the picture that the network saw."""
    probabilities: NDArray[Any] | None = None
    """All numbers from which the scores were made, in any shape; None: the scores themselves."""
    seen: tuple[int, int] | None = None
    """Height and width of what the network saw, if black was added below and on the right of the picture."""
    listed: bool = False
    """Whether it returned a list of boxes, which may be empty or filled up, and not something for each of its cells."""


def likely_boxes(cells: Cells, threshold: float, width: int, height: int) -> Boxes:
    """The boxes of all cells with this score or more, in a picture of width × height pixels; overlapping ones are one.

    Raises DetectorError where scores of any cell, or boxes of these, make no sense. What the boxes of other cells are
    does not matter: networks often exaggerate there.
    """
    if not len(cells.scores) and not cells.listed:
        raise DetectorError("returned nothing for any place of the picture", "`layout`")
    _check_padding(cells)
    check_scores(cells.scores if cells.probabilities is None else cells.probabilities, padded=cells.listed)
    check_scores(cells.scores, padded=cells.listed)
    likely = np.nonzero(cells.scores >= threshold)[0]
    if len(likely) > MOST_CANDIDATES:
        raise DetectorError(f"returned more than {MOST_CANDIDATES:,} boxes", "`start` and `carry`, and `layout`")
    with np.errstate(over="ignore", invalid="ignore"):
        boxes = cells.boxes(likely)
        found = np.concatenate([boxes, cells.scores[likely, None]], 1).astype(np.float32)
    check_boxes(found, width, height, cells.seen)
    return without_doubles(found)


def _check_padding(cells: Cells) -> None:
    """A row that only fills up a list has no box: else it may be somebody, with a score that means something else."""
    if not cells.listed:
        return
    padding = np.nonzero(cells.scores == PADDING)[0]
    if len(padding) and not (cells.boxes(padding) <= 0).all():
        raise DetectorError("returned boxes with a score of -1, which marks rows without a box", SCORES)


def check_scores(scores: NDArray[Any], *, padded: bool = False) -> None:
    """Raises DetectorError if one is not finite, or no probability. With `padded`, some may be those of padding."""
    if not scores.size:
        return
    least, most = scores.min(), scores.max()  # NaN if one of them is
    if not (np.isfinite(least) and np.isfinite(most)):
        raise DetectorError("returned scores that are not finite", "`scale` and `colours`, and the network itself")
    negative = least < -TOLERANCE and not (padded and (scores[scores < -TOLERANCE] == PADDING).all())
    if negative or most > 1 + TOLERANCE:
        raise DetectorError("returned scores that are not from 0 to 1", SCORES)


def check_boxes(found: Boxes, width: int, height: int, seen: tuple[int, int] | None = None) -> None:
    """Raises DetectorError if they cannot be boxes in a picture of width × height pixels, `seen` with black added."""
    if not len(found):
        return
    if not np.isfinite(found).all():
        raise DetectorError("returned boxes that are not finite", "`layout` and `scale`, and the network itself")
    sides = found[:, 2:4] - found[:, :2]
    if (sides < 0).any():
        raise DetectorError("returned boxes that end before they begin", "`layout`: corners, or centres and sizes")
    size = np.array([width, height], np.float32)
    if (found[:, :2] < -size).any() or (found[:, 2:4] > 2 * size).any():
        raise DetectorError("returned boxes far outside of the picture", PIXELS)
    rows, columns = seen or (height, width)
    if (found[:, 2:4] < -BORDER).any() or (found[:, :2] > np.array([columns, rows], np.float32) + BORDER).any():
        raise DetectorError("returned boxes outside of the picture", PIXELS)
    if (sides <= SMALLEST).all():
        raise DetectorError("returned boxes smaller than a pixel, as shares of the picture would be", PIXELS)


def without_doubles(found: Boxes) -> Boxes:
    """The best box of each heap of overlapping ones, best first. Raises DetectorError for too many."""
    found = found[np.argsort(-found[:, 4], kind="stable")]
    kept: list[NDArray[np.float32]] = []
    while len(found):
        if len(kept) == MOST_FOUND:
            raise DetectorError(f"returned more than {MOST_FOUND:,} boxes that do not overlap", "`start` and `carry`")
        best, rest = found[0], found[1:]  # a box without an area does not even overlap itself
        kept.append(best)
        found = rest[overlaps(best, rest) <= OVERLAP]
    return np.stack(kept) if kept else np.empty((0, 5), np.float32)


def overlaps(one: NDArray[np.float32], many: Boxes) -> NDArray[np.float32]:
    """Shared area over joint area, of one box and many."""
    sides = np.minimum(one[2:4], many[:, 2:4]) - np.maximum(one[:2], many[:, :2])
    shared = sides.clip(0).prod(1)
    joint = (one[2:4] - one[:2]).prod() + (many[:, 2:4] - many[:, :2]).prod(1) - shared
    return cast(NDArray[np.float32], shared / np.maximum(joint, 1e-6))
