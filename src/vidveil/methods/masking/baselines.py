"""Ways to choose tubelets that learn nothing: what every learned mask has to beat at the same keep rate.

    random    by lot
    moving    those whose pixels change most over time
    centre    those nearest to the middle of the picture, the same in every segment
    oracle    by ground truth: those of the action first, those of identity alone last (built-in people only)

Each is a function (frames, row, truth, grid) → scores (L, h, w), higher = more worth keeping. What is done with scores
is the same for all: the best ceil(keep · M) of the M tubelets of a clip stay, of equal ones the first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import UsageError
from vidveil.core.tubelets import kept_count
from vidveil.methods.masking.random_pruning import is_random_pruning

Floats = NDArray[np.float64]
Kinds = NDArray[np.uint8]
"""(T, H, W): what a pixel carries: 0 neither, 1 identity only, 2 action only, 3 both."""

TUBELET_FRAMES = 2
SMALL = 64
"""Up to this many pixels a side a tubelet is 8 pixels wide, above it 16."""
STREAM = 0x7B
IDENTITY_ONLY, ACTION_ONLY = 1, 2


@dataclass(frozen=True)
class Grid:
    """Tubelets of `frames` × `side` × `side` pixels over a clip; those at the far edges may be cut off."""

    frames: int
    side: int

    def shape(self, steps: int, height: int, width: int) -> tuple[int, int, int]:
        """(L, h, w) over (T, H, W)."""
        return -(-steps // self.frames), -(-height // self.side), -(-width // self.side)

    def sums(self, values: NDArray[Any]) -> Floats:
        """What the pixels of each tubelet add up to. (T, H, W) → (L, h, w)"""
        found = values.astype(np.float64)
        for axis, step in enumerate((self.frames, self.side, self.side)):
            found = np.add.reduceat(found, np.arange(0, found.shape[axis], step), axis=axis)
        return found

    def pixels(self, values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Each pixel has what its tubelet has. (L, h, w) → (T, H, W)"""
        steps, height, width = shape[:3]
        whole = values.repeat(self.frames, 0).repeat(self.side, 1).repeat(self.side, 2)
        return whole[:steps, :height, :width]


Score = Callable[[NDArray[np.uint8], int, Kinds | None, Grid], Floats]


def random_scores(frames: NDArray[np.uint8], row: int, _: Kinds | None, grid: Grid) -> Floats:
    """Another draw for each clip, the same one whenever the clip is asked about."""
    shape = grid.shape(*frames.shape[:3])
    scores = np.empty(int(np.prod(shape)))
    scores[np.random.default_rng([STREAM, row]).permutation(len(scores))] = -np.arange(len(scores), dtype=np.float64)
    return scores.reshape(shape)


def motion_scores(frames: NDArray[np.uint8], _row: int, _: Kinds | None, grid: Grid) -> Floats:
    """Mean absolute difference of each frame to the ones before and after it: inside the tubelet, and to its
    neighbours in time."""
    pictures = frames.astype(np.int16)
    steps = np.abs(np.diff(pictures, axis=0)).mean(axis=-1)  # (T - 1, H, W)
    change = np.zeros(frames.shape[:3])
    neighbours = np.zeros((len(frames), 1, 1))
    for part in (slice(None, -1), slice(1, None)):
        change[part] += steps
        neighbours[part] += 1
    return grid.sums(change / np.maximum(neighbours, 1)) / grid.sums(np.ones(frames.shape[:3]))


def centre_scores(frames: NDArray[np.uint8], _row: int, _: Kinds | None, grid: Grid) -> Floats:
    """Places in the order of their distance from the middle. Each is taken in all segments before the next one is, so
    that the mask hardly changes over time."""
    segments, high, wide = grid.shape(*frames.shape[:3])
    y, x = (np.arange(count) - (count - 1) / 2 for count in (high, wide))
    distance = np.square(y)[:, None] + np.square(x)  # (h, w)
    order = np.argsort(distance.ravel(), kind="stable")
    places = np.empty(len(order))
    places[order] = -np.arange(len(order), dtype=np.float64)
    return np.tile(places.reshape(1, high, wide), (segments, 1, 1))


def oracle_scores(frames: NDArray[np.uint8], row: int, truth: Kinds | None, grid: Grid) -> Floats:
    """Pixels of the action minus pixels of identity alone. Most tubelets have neither: of these the middle ones
    first."""
    if truth is None:
        raise UsageError("oracle knows the truth of built-in people only: take data: puppets, without view=")
    balance = grid.sums(truth >= ACTION_ONLY) - grid.sums(truth == IDENTITY_ONLY)
    places = centre_scores(frames, row, None, grid)
    return balance + 0.5 * places / places.size  # in (-0.5, 0]: less than one pixel


CONTROLS: dict[str, Score] = {
    "random": random_scores,
    "moving": motion_scores,
    "centre": centre_scores,
    "oracle": oracle_scores,
}


@dataclass(frozen=True)
class PruningControl:
    """A control as a recipe writes it: `NAME[:SIDE]`, with the side of a tubelet in pixels."""

    name: str
    side: int | None
    keep: float

    def grid(self, height: int, width: int) -> Grid:
        return Grid(TUBELET_FRAMES, self.side or (8 if min(height, width) <= SMALL else 16))

    @property
    def wants_truth(self) -> bool:
        return self.name == "oracle"

    def choose(
        self, frames: NDArray[np.uint8], row: int, truth: Kinds | None = None
    ) -> tuple[NDArray[np.bool_], Floats]:
        """What stays and why: (L, h, w) twice."""
        scores = CONTROLS[self.name](frames, row, truth, self.grid(*frames.shape[1:3]))
        return select(scores, self.keep), scores


def pruning_control(method: str, keep: float | None) -> PruningControl | None:
    """The control that a method names; None if it names something else."""
    name, colon, argument = method.strip().partition(":")
    if name not in CONTROLS or is_random_pruning(method):
        return None
    if colon and (not argument.isdecimal() or int(argument) < 1):
        raise UsageError(f"{method}: after the colon comes the side of a tubelet in pixels, as in {name}:8")
    share = 1.0 if keep is None else keep
    kept_count(1, share)  # refuses what is no share
    return PruningControl(name, int(argument) if colon else None, share)


def select(scores: Floats, keep: float) -> NDArray[np.bool_]:
    """The best ceil(keep · M); of equal ones the first."""
    kept = np.zeros(scores.size, dtype=np.bool_)
    kept[np.argsort(-scores.ravel(), kind="stable")[: kept_count(scores.size, keep)]] = True
    return kept.reshape(scores.shape)
