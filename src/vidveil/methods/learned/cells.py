"""Masks of cells: where a learned method hides something, a cell of the picture is hidden or kept.

Cells are the positions of tubelets. Where the border of a hidden one runs through a pixel, or two windows disagree
about it, the pixel is hidden.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vidveil.core.frame import CellScores, Frame, SafeFrame
from vidveil.core.rotation import turn_of
from vidveil.methods.learned.windows import overlap, stored

if TYPE_CHECKING:
    from torch import Tensor

Grid = NDArray[np.bool_]
"""(h, w) of cells: True for those that are kept."""
Rectangle = tuple[int, int, int, int]
"""Top, bottom, left, right in whole pixels; bottom and right lie outside."""


@dataclass(frozen=True, slots=True)
class CellDecision:
    """About the cells of a frame, of the upright picture."""

    kept: Grid
    ranks: NDArray[np.float32]
    """(h, w): of each score, the share of scores of its window that are lower."""

    def and_also(self, other: "CellDecision") -> "CellDecision":
        """What either of two windows hides is hidden."""
        return CellDecision(self.kept & other.kept, np.minimum(self.ranks, other.ranks))

    def on(self, frame: Frame, *, preprocessed: bool) -> CellScores:
        """As the picture is stored. `preprocessed`: the frame is the network's input, and not the source."""
        turn = turn_of(frame)
        under = frame if preprocessed and isinstance(frame, SafeFrame) else None
        return CellScores(stored(self.kept, turn), stored(self.ranks, turn), under)


def decisions(kept: "Tensor", scores: "Tensor") -> list[CellDecision]:
    """Of each layer of a window: kept and scores are (L, h, w)."""
    ranks = score_ranks(scores.float().cpu().numpy())
    return [CellDecision(*layer) for layer in zip(kept.cpu().numpy(), ranks, strict=True)]


def score_ranks(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """For each score, the share of scores that are lower."""
    lower = np.searchsorted(np.sort(scores, axis=None), scores)
    return (lower / max(1, scores.size - 1)).astype(np.float32)


def laid_over(kept: "Tensor", height: int, width: int) -> "Tensor":
    """(..., h, w) cells → (..., H, W) pixels: True for those that no hidden cell touches."""
    import torch

    rows, columns = (
        torch.from_numpy(overlap(cells, side) > 0).to(kept.device, torch.float32)  # (cells, side)
        for cells, side in zip(kept.shape[-2:], (height, width), strict=True)
    )
    return rows.T @ (~kept).float() @ columns == 0


def spread(scores: "Tensor", height: int, width: int) -> "Tensor":
    """(..., h, w) cells → (..., H, W) pixels: for each the value of the cell in which its middle lies."""
    import torch

    rows, columns = (
        (2 * torch.arange(side, device=scores.device) + 1) * cells // (2 * side)
        for cells, side in zip(scores.shape[-2:], (height, width), strict=True)
    )
    return scores[..., rows, :][..., columns]


def rectangles(kept: Grid, width: int, height: int) -> list[Rectangle]:
    """The hidden parts of a picture, rounded outwards to pairs of pixels, so that luma and chroma cover the same."""
    rows, columns = _edges(height, kept.shape[0]), _edges(width, kept.shape[1])
    found = []
    for (top, bottom), row in zip(rows, kept, strict=True):
        begin = None
        for i, shown in enumerate([*row, True]):
            if not shown and begin is None:
                begin = columns[i][0]
            elif shown and begin is not None:
                found.append((top, bottom, begin, columns[i - 1][1]))
                begin = None
    return found


@cache
def _edges(size: int, cells: int) -> tuple[tuple[int, int], ...]:
    """The pixels that each cell touches: from, to."""
    outer = [(i * size // cells, -(-(i + 1) * size // cells)) for i in range(cells)]
    return tuple((begin - begin % 2, end + end % 2) for begin, end in outer)
