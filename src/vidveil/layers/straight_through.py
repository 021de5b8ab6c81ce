"""A top-k mask that lets gradients through: hard forwards, a soft gate backwards.

    m = 1[i kept] + (σ − stop(σ)),   σ_i = sigmoid((s_i − θ) / (τ · std(s))),   θ between the last kept and first dropped

Over several selections the gates multiply: a tubelet is seen if every selection it took part in kept it.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor


class Chosen(Protocol):
    live: Tensor
    act: Tensor
    priv: Tensor
    kept: Tensor


def gate(
    selections: Sequence[Chosen],
    count: int,
    weight: float,
    temperature: float,
    only: Literal["act", "priv"] | None = None,
) -> Tensor:
    """(B, count) float: 1 where a tubelet was kept by all selections, else 0, with gradients to α_act and α_priv.

    `only` one of the two gets gradients, where each is taught by a loss of its own.
    """
    soft = hard = None
    for chosen in selections:
        act = chosen.act.detach() if only == "priv" else chosen.act
        priv = chosen.priv.detach() if only == "act" else chosen.priv
        scores = act - weight * priv  # (B, m)
        kept = torch.zeros_like(scores).scatter(1, chosen.kept, 1.0)
        values = scores.detach()
        last = values.masked_fill(kept == 0, float("inf")).amin(1, keepdim=True)
        first = values.masked_fill(kept == 1, float("-inf")).amax(1, keepdim=True)
        edge = torch.where(first.isinf(), last, (last + first) / 2)  # nothing dropped: the lowest
        spread = values.std(1, keepdim=True).clamp(min=1e-12)
        open_ = ((scores - edge) / (temperature * spread)).sigmoid()
        base = scores.new_zeros(len(scores), count + 1)  # one more: fuse tokens have no place
        now_soft = base.scatter(1, chosen.live, open_)
        now_hard = base.scatter(1, chosen.live, kept)
        took_part = base.scatter(1, chosen.live, torch.ones_like(kept)) > 0
        soft = now_soft if soft is None else torch.where(took_part, soft * now_soft, soft)
        hard = now_hard
    assert soft is not None and hard is not None
    return (hard + soft - soft.detach())[:, :count]
