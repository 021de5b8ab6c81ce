"""Scores of tubelets, each averaged with those around it: a head or a torso is larger than one tubelet.

    s̃_i = Σ w_ij s_j / Σ w_ij        over live j: i itself and the 26 tubelets around it
    w_ij                             1, times 1/2 for a step in time, times 1/4 for each step to a side

Who is not live has no score and no weight, so that a hole does not count as a low score. The average is linear: it
makes no difference whether it is taken of s or of the two attentions that s is made of.
"""

from torch import Tensor
from torch.nn import functional as F

STEPS = (0.5, 0.25, 0.25)
"""Weights of the neighbours before and after, above and below, left and right."""


def averaged(scores: Tensor, live: Tensor, grid: tuple[int, int, int]) -> Tensor:
    """(B, m) scores of the tubelets with these numbers (B, m) → (B, m)."""
    empty = scores.new_zeros(len(scores), grid[0] * grid[1] * grid[2])
    total = _around(empty.scatter(1, live, scores), grid)
    weight = _around(empty.scatter(1, live, scores.new_ones(scores.shape)), grid)
    return total.gather(1, live) / weight.gather(1, live)


def _around(flat: Tensor, grid: tuple[int, int, int]) -> Tensor:
    """(B, M) → (B, M): sums over neighbours, weighted; beyond the rim there is nothing."""
    x = flat.view(-1, *grid)
    for axis, weight in enumerate(STEPS, 1):
        pads = [0] * 6
        pads[2 * (3 - axis)] = pads[2 * (3 - axis) + 1] = 1  # F.pad counts axes from the last
        near, count = F.pad(x, pads), x.shape[axis]
        x = x + weight * (near.narrow(axis, 0, count) + near.narrow(axis, 2, count))
    return x.flatten(1)
