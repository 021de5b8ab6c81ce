"""From the scores of tubelets to those that stay, and back to gradients for the attention maps.

eq. 5        the k = ceil(r · m) of the m live tubelets with the highest s stay, over the whole clip
smooth       s̃_i = Σ w_ij s_j / Σ w_ij,   live j: i itself and the 26 tubelets around it; w_ij is 1, times 1/2 for a
             step in time, times 1/4 for each step to a side. A head or a torso is larger than one tubelet
gate         m = 1[i kept] + (g − stop(g)),   g_i = sigmoid((s_i − θ) / (τ · std(s))),   θ between the last that is
             kept and the first that is dropped. Over several selections the g multiply
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from vidveil.core.tubelets import kept_count
from vidveil.models.layers.tubelets import as_mask

NEIGHBOUR_WEIGHTS = (0.5, 0.25, 0.25)
"""Of the tubelets before and after, above and below, left and right."""


class Selection(NamedTuple):
    """One pruning layer. m tubelets were live, k of them stay."""

    live: Tensor
    """(B, m) numbers of tubelets; M stands for a fuse token, in `reference` only."""
    act: Tensor
    """(B, m) α_act, and"""
    priv: Tensor
    """(B, m) α_priv, with their gradients."""
    scores: Tensor
    """(B, m) s, divided by 1 + λ: the same order, and λ may be infinite. With `smooth`: s̃."""
    kept: Tensor
    """(B, k) positions in `live`."""


def select(live: Tensor, act: Tensor, priv: Tensor, scores: Tensor, keep: float) -> Selection:
    """Eq. 5."""
    # Unsorted: sorting is half of the cost, and attention does not depend on the order.
    kept = scores.detach().topk(kept_count(live.shape[1], keep), 1, sorted=False).indices
    return Selection(live, act, priv, scores, kept)


def final_decision(selections: list[Selection], count: int) -> tuple[Tensor, Tensor]:
    """(B, M) bool: kept to the end; (B, M) float: later selections above earlier ones, s decides within one."""
    first, last = selections[0].scores, selections[-1]
    scores = first.new_full((len(first), count + 1), -1.0, dtype=torch.float32)  # one more: for fuse tokens
    for number, selection in enumerate(selections):
        s = selection.scores.detach().float() * selection.scores.shape[1]  # about 1, whatever the number of tubelets
        scores = scores.scatter(1, selection.live, 2 * number + s / (1 + s.abs()))  # in (−1, 1), the order unchanged
    kept = as_mask(last.live.gather(1, last.kept), count + 1)
    return kept[:, :count], scores[:, :count]


def average_neighbours(scores: Tensor, live: Tensor, grid: tuple[int, int, int]) -> Tensor:
    """(B, m) scores of the tubelets with these numbers (B, m) → (B, m).

    Tubelets that are not live have no weight, so that a hole does not count as a low score. The average is linear: it
    may be taken of s or of the two attentions that s is made of.
    """
    empty = scores.new_zeros(len(scores), grid[0] * grid[1] * grid[2])
    total = _neighbour_sums(empty.scatter(1, live, scores), grid)
    weight = _neighbour_sums(empty.scatter(1, live, scores.new_ones(scores.shape)), grid)
    return total.gather(1, live) / weight.gather(1, live)


def _neighbour_sums(flat: Tensor, grid: tuple[int, int, int]) -> Tensor:
    """(B, M) → (B, M): weighted sums over neighbours; 0 outside the clip."""
    x = flat.view(-1, *grid)
    for axis, weight in enumerate(NEIGHBOUR_WEIGHTS, 1):
        pads = [0] * 6
        pads[2 * (3 - axis)] = pads[2 * (3 - axis) + 1] = 1  # F.pad counts axes from the last
        near, count = F.pad(x, pads), x.shape[axis]
        x = x + weight * (near.narrow(axis, 0, count) + near.narrow(axis, 2, count))
    return x.flatten(1)


def straight_through(
    selections: Sequence[Selection],
    count: int,
    score: Callable[[Tensor, Tensor, Tensor], Tensor],
    temperature: float,
    only: Literal["act", "priv"] | None = None,
) -> Tensor:
    """(B, count) float: 1 where a tubelet was kept by all selections, else 0, with gradients to α_act and α_priv.

    `score` computes from both, and from `live`, what the selections compared: each (B, m). With `only`, one of the two
    attentions gets gradients: where each has a loss of its own.
    """
    device = selections[0].act.device
    soft = torch.ones(len(selections[0].act), count + 1, device=device)
    hard = soft
    for selection in selections:
        act = selection.act.detach() if only == "priv" else selection.act
        priv = selection.priv.detach() if only == "act" else selection.priv
        scores = score(act, priv, selection.live)  # (B, m)
        kept = torch.zeros_like(scores).scatter(1, selection.kept, 1.0)
        values = scores.detach()
        last = values.masked_fill(kept == 0, float("inf")).amin(1, keepdim=True)
        first = values.masked_fill(kept == 1, float("-inf")).amax(1, keepdim=True)
        edge = torch.where(first.isinf(), last, (last + first) / 2)  # nothing dropped: the lowest
        single = values.shape[1] == 1  # one value has no deviation
        spread = torch.ones_like(edge) if single else values.std(1, keepdim=True).clamp(min=1e-12)
        gate = ((scores - edge) / (temperature * spread)).sigmoid()
        base = scores.new_zeros(len(scores), count + 1)  # one more: fuse tokens have no position
        now_soft = base.scatter(1, selection.live, gate)
        now_hard = base.scatter(1, selection.live, kept)
        compared = base.scatter(1, selection.live, torch.ones_like(kept)) > 0
        soft = torch.where(compared, soft * now_soft, soft)
        hard = now_hard
    return (hard + soft - soft.detach())[:, :count]
