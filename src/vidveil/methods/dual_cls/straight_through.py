"""A top-k mask that lets gradients through: hard forwards, a soft gate backwards.

    m = 1[i kept] + (σ − stop(σ)),   σ_i = sigmoid((s_i − θ) / (τ · std(s))),   θ between the last kept and the rest

Over several selections the gates multiply: a tubelet is seen if every selection it took part in kept it.
"""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor


class Chosen(Protocol):
    """A selection: (B, m) live tubelets with their two attentions, and (B, k) places among them that were kept."""

    @property
    def live(self) -> Tensor: ...
    @property
    def act(self) -> Tensor: ...
    @property
    def priv(self) -> Tensor: ...
    @property
    def kept(self) -> Tensor: ...


def gate(
    selections: Sequence[Chosen],
    count: int,
    score: Callable[[Tensor, Tensor, Tensor], Tensor],
    temperature: float,
    only: Literal["act", "priv"] | None = None,
) -> Tensor:
    """(B, count) float: 1 where a tubelet was kept by all selections, else 0, with gradients to α_act and α_priv.

    `score` makes of both, and of `live`, what the selections compared: each (B, m). `only` one of the two attentions
    gets gradients, where each is taught by a loss of its own.
    """
    device = selections[0].act.device
    soft = torch.ones(len(selections[0].act), count + 1, device=device)
    hard = soft
    for chosen in selections:
        act = chosen.act.detach() if only == "priv" else chosen.act
        priv = chosen.priv.detach() if only == "act" else chosen.priv
        scores = score(act, priv, chosen.live)  # (B, m)
        kept = torch.zeros_like(scores).scatter(1, chosen.kept, 1.0)
        values = scores.detach()
        last = values.masked_fill(kept == 0, float("inf")).amin(1, keepdim=True)
        first = values.masked_fill(kept == 1, float("-inf")).amax(1, keepdim=True)
        edge = torch.where(first.isinf(), last, (last + first) / 2)  # nothing dropped: the lowest
        alone = values.shape[1] == 1  # one value has no deviation
        spread = torch.ones_like(edge) if alone else values.std(1, keepdim=True).clamp(min=1e-12)
        open_ = ((scores - edge) / (temperature * spread)).sigmoid()
        base = scores.new_zeros(len(scores), count + 1)  # one more: fuse tokens have no place
        now_soft = base.scatter(1, chosen.live, open_)
        now_hard = base.scatter(1, chosen.live, kept)
        took_part = base.scatter(1, chosen.live, torch.ones_like(kept)) > 0
        soft = torch.where(took_part, soft * now_soft, soft)
        hard = now_hard
    return (hard + soft - soft.detach())[:, :count]
