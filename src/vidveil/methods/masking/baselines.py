"""Baselines that choose tubelets without training: what every learned mask has to beat at the same keep rate.

    random    at random
    moving    those whose pixels change most over time
    centre    those nearest to the middle of the picture, the same in every segment
    oracle    by ground truth: those of the action first, those of identity alone last (synthetic people only)

Each is a function (frames, row, truth, grid) → scores (L, h, w), higher = more worth keeping. Selection is the same for
all: the best ceil(keep · M) of the M tubelets of a clip stay, of equal ones the first.

    random:dual_cls:RUN     random tubelets in the windows of a learned mask

`random` cuts tubelets of its own. On videos that are larger and longer than a network's input, the network's tubelets
are larger, and its windows overlap; finer random holes leave something else to see at the same share. With
`random:dual_cls:RUN` only the choice differs from the learned method: as many tubelets, chosen at random.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vidveil.core.anonymizer import Anonymizer
from vidveil.core.errors import UsageError
from vidveil.core.tubelets import grid as tubelet_grid
from vidveil.core.tubelets import kept_count
from vidveil.methods.masking.masker import Decision, Scorer, TubeletMasker

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
Kinds = NDArray[np.uint8]
"""(T, H, W): what each pixel belongs to: 0 neither, 1 identity only, 2 action only, 3 both."""

TUBELET_FRAMES = 2
SMALL = 64
"""Up to this many pixels a side a tubelet is 8 pixels wide, above it 16."""
SEED = 0x7B
RANDOM_PRUNING = "random:dual_cls:"
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
        """(T, H, W) → (L, h, w): the sum over the pixels of each tubelet."""
        found = values.astype(np.float64)
        for axis, step in enumerate((self.frames, self.side, self.side)):
            found = np.add.reduceat(found, np.arange(0, found.shape[axis], step), axis=axis)
        return found

    def pixels(self, values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """(L, h, w) → (T, H, W): each pixel gets the value of its tubelet."""
        steps, height, width = shape[:3]
        whole = values.repeat(self.frames, 0).repeat(self.side, 1).repeat(self.side, 2)
        return whole[:steps, :height, :width]


Score = Callable[[NDArray[np.uint8], int, Kinds | None, Grid], Floats]


def random_scores(frames: NDArray[np.uint8], row: int, _: Kinds | None, grid: Grid) -> Floats:
    """Different for each clip, and always the same for one."""
    shape = grid.shape(*frames.shape[:3])
    scores = np.empty(int(np.prod(shape)))
    scores[np.random.default_rng([SEED, row]).permutation(len(scores))] = -np.arange(len(scores), dtype=np.float64)
    return scores.reshape(shape)


def motion_scores(frames: NDArray[np.uint8], _row: int, _: Kinds | None, grid: Grid) -> Floats:
    """Mean absolute difference between each frame and those before and after it, also across the tubelet's ends."""
    pictures = frames.astype(np.int16)
    steps = np.abs(np.diff(pictures, axis=0)).mean(axis=-1)  # (T - 1, H, W)
    change = np.zeros(frames.shape[:3])
    neighbours = np.zeros((len(frames), 1, 1))
    for part in (slice(None, -1), slice(1, None)):
        change[part] += steps
        neighbours[part] += 1
    return grid.sums(change / np.maximum(neighbours, 1)) / grid.sums(np.ones(frames.shape[:3]))


def centre_scores(frames: NDArray[np.uint8], _row: int, _: Kinds | None, grid: Grid) -> Floats:
    """Positions in the order of their distance from the middle. Each is taken in all segments before the next one, so
    that the mask hardly changes over time."""
    segments, high, wide = grid.shape(*frames.shape[:3])
    y, x = (np.arange(count) - (count - 1) / 2 for count in (high, wide))
    distance = np.square(y)[:, None] + np.square(x)  # (h, w)
    order = np.argsort(distance.ravel(), kind="stable")
    places = np.empty(len(order))
    places[order] = -np.arange(len(order), dtype=np.float64)
    return np.tile(places.reshape(1, high, wide), (segments, 1, 1))


def oracle_scores(frames: NDArray[np.uint8], row: int, truth: Kinds | None, grid: Grid) -> Floats:
    """Pixels of the action minus pixels of identity alone. Most tubelets have neither: of these, those near the
    middle come first."""
    if truth is None:
        raise UsageError("oracle needs the ground truth of synthetic people: take data: puppets, without view=")
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
    """A baseline as recipes write it: `NAME[:SIDE]`, with the side of a tubelet in pixels."""

    name: str
    side: int | None
    keep: float

    def grid(self, height: int, width: int) -> Grid:
        return Grid(TUBELET_FRAMES, self.side or (8 if min(height, width) <= SMALL else 16))

    @property
    def needs_truth(self) -> bool:
        return self.name == "oracle"

    def choose(
        self, frames: NDArray[np.uint8], row: int, truth: Kinds | None = None
    ) -> tuple[NDArray[np.bool_], Floats]:
        """Which tubelets stay, and their scores: (L, h, w) each."""
        scores = CONTROLS[self.name](frames, row, truth, self.grid(*frames.shape[1:3]))
        return select(scores, self.keep), scores


def is_pruning_control(method: str) -> bool:
    return method.strip().partition(":")[0] in CONTROLS and not is_random_pruning(method)


def pruning_control(method: str, keep: float | None) -> PruningControl | None:
    """The baseline that a method names; None if it names something else. UsageError without a keep rate: these have
    none of their own, and would keep everything."""
    if not is_pruning_control(method):
        return None
    name, colon, argument = method.strip().partition(":")
    if colon and (not argument.isdecimal() or int(argument) < 1):
        raise UsageError(f"{method}: after the colon comes the side of a tubelet in pixels, as in {name}:8")
    if keep is None:
        raise UsageError(f"{name} needs a share of tubelets to keep: keep=[0.5]")
    kept_count(1, keep)  # refuses what is not a share
    return PruningControl(name, int(argument) if colon else None, keep)


def select(scores: Floats, keep: float) -> NDArray[np.bool_]:
    """The best ceil(keep · M); of equal ones the first."""
    kept = np.zeros(scores.size, dtype=np.bool_)
    kept[np.argsort(-scores.ravel(), kind="stable")[: kept_count(scores.size, keep)]] = True
    return kept.reshape(scores.shape)


def is_random_pruning(method: str) -> bool:
    return method.startswith(RANDOM_PRUNING)


def with_random_pruning(method: Anonymizer, spec: str) -> TubeletMasker:
    """The masker, which chooses at random from now on."""
    if not isinstance(method, TubeletMasker) or not method.scorer.prune_at:
        raise UsageError(f"{spec}: random pruning replaces the choice of a dual-CLS network, and this is not one")
    method.network = RandomPruning(method.scorer)
    return method


class RandomPruning(Scorer):
    """Ignores the pixels: always the same choice for one clip, another one for others."""

    def __init__(self, network: Scorer) -> None:
        assert network.own is not None
        self.frames, self.size, self.tubelet = network.frames, network.size, network.tubelet
        self.grid = tubelet_grid(network.frames, network.size, network.tubelet)
        self.selections, self.keep = len(network.prune_at), network.own["keep"]

    def decide(self, clips: "Tensor", keep: float | None, privacy_weight: float | None) -> Decision:  # noqa: ARG002
        import torch

        count = self.grid[0] * self.grid[1] * self.grid[2]
        left = count
        for _ in range(self.selections):  # as many as after each selection of the network
            left = kept_count(left, self.keep if keep is None else keep)
        orders = [torch.randperm(count, generator=_generator(clip)) for clip in clips]
        ranks = torch.stack(orders).to(clips.device).view(len(clips), *self.grid)  # (B, L, h, w): 0 stays longest
        return Decision(ranks < left, -ranks.float())


def _generator(clip: "Tensor") -> Any:
    import torch

    pixels = (clip * 255).round().byte().cpu().numpy().tobytes()
    return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(pixels).digest()[:7], "big"))
