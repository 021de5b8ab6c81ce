"""What the attention maps learn from: a mask with gradients, and how much single tubelets predict.

Straight-through mask: hard forwards, soft backwards.

    m_i = 1[i kept] + (g_i − stop(g_i))               over several selections the g multiply
    g_i = sigmoid((s_i − θ) / (τ · std(s)))           θ: between the last score that is kept and the first that is not

Additive attribution, from a network whose votes for tubelets add up:

    z_i = g(pixels of tubelet i)                      nothing but its own pixels: no rim, no neighbour, no position
    p(y | clip) = softmax( c · Σ z_i over shown i )   learned by cross-entropy, with random tubelets left out
    e_i = size of z_i − median over the clip of z     strength of a vote, whatever it is for; a vote that most tubelets
                                                      share says nothing about any of them
    t_i = e_i / Σ e                                   its share of the clip: the target of an attention map

The sum makes the attribution exact: adding tubelet i to any set of others adds z_i, so its Shapley value is z_i. A
network that mixes tubelets can recognize a person from any corner of the clip, and a gradient through a mask says what
a pixel would change now, which is next to nothing while others predict the same. A vote stays where its pixels are.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.methods.dual_cls.model import Selection
from vidveil.models.layers.tubelets import cut_into_clips

SCALE = 20.0
"""c times the number of tubelets, so that small votes suffice."""


class Votes(nn.Module):
    """Clip (B, 3, T, H, W) → votes (B, M, outputs) of every task."""

    def __init__(self, embed: nn.Module, tubelet: tuple[int, int, int], width: int, outputs: Mapping[str, int]) -> None:
        super().__init__()
        self.embed, self.tubelet = embed, tubelet
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.hidden = nn.Linear(width, width)
        self.heads = nn.ModuleDict({name: nn.Linear(width, count) for name, count in outputs.items()})
        for head in self.heads.values():
            assert isinstance(head, nn.Linear)
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)

    def forward(self, clip: Tensor) -> dict[str, Tensor]:
        tiles = cut_into_clips(clip, self.tubelet)  # (B·M, 3, t, p, p)
        x = F.gelu(self.norm1(self.embed(tiles).flatten(1).view(len(clip), -1, self.hidden.in_features)))  # (B, M, D)
        x = x + F.gelu(self.norm2(self.hidden(x)))
        with torch.autocast(x.device.type, enabled=False):  # the median is subtracted later: full precision is needed
            return {name: head(x.float()) for name, head in self.heads.items()}


def sum_votes(votes: Tensor, shown: Tensor, shown_share: float = 1.0) -> Tensor:
    """(B, M, outputs), (B, M) of 0 and 1 → logits of the clip (B, outputs).

    Divided by the number of tubelets that are shown on average, not by that of this clip: a sum.
    """
    return SCALE * (votes * shown.unsqueeze(2)).sum(1) / (shown_share * shown.shape[1])


def vote_strength(votes: Tensor, *, several: bool) -> Tensor:
    """(B, M, outputs) → (B, M). `several`: each output is a question of its own, not one class among them."""
    votes = votes.float()
    if not several:
        votes = votes - votes.mean(2, keepdim=True)  # a softmax ignores what is added to all classes
    votes = votes - votes.median(1, keepdim=True).values
    return votes.abs().sum(2) if several else votes.square().mean(2).sqrt()


def random_tubelets(clips: int, count: int, shown_share: float, device: torch.device) -> Tensor:
    """(B, M) of 0 and 1: each tubelet is shown with probability `shown_share`."""
    return (torch.rand(clips, count, device=device) < shown_share).float()


def attribution_shares(strength: Tensor) -> Tensor:
    """(B, M), 0 or more → shares of the clip's sum."""
    return strength / strength.sum(1, keepdim=True).clamp(min=1e-9)


def attention_loss(attention: Tensor, target: Tensor, live: Tensor) -> Tensor:
    """Cross-entropy of an attention map (B, m) over live tubelets with the target (B, M) restricted to them."""
    wanted = attribution_shares(F.pad(target, (0, 1)).gather(1, live))  # one more: fuse tokens have no position
    return -(wanted * attention.clamp(min=1e-9).log()).sum(1).mean()


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
