"""Credit: what each tubelet tells by itself, from a reader that hears tubelets one by one and adds up their votes.

    z_i = g(pixels of tubelet i)                      nothing but its own pixels: no rim, no neighbour, no place
    p(y | clip) = softmax( c · Σ z_i over shown i )   learned by cross-entropy, with random tubelets left out
    e_i = size of z_i − median over the clip of z     how loud its vote is, whatever it votes for; what most tubelets
                                                      say alike is no news of any of them
    t_i = e_i / Σ e                                   where in the clip that is: the target of an attention map

The sum makes it exact: in a vote that adds up, what a tubelet adds is its vote, in any company (its Shapley value is
z_i). A network that mixes tubelets can tell a person from any corner of the clip, and a gradient through a mask says
what a pixel would change now, which is next to nothing while others tell the same. A vote stays where the pixels are.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.models.layers.tubelets import cut

SCALE = 20.0
"""c times the number of tubelets: votes need not be large to be heard."""


class Votes(nn.Module):
    """Clip (B, 3, T, H, W) → votes (B, M, outputs) for every question."""

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
        tiles = apart(clip, self.tubelet)  # (B·M, 3, t, p, p)
        x = F.gelu(self.norm1(self.embed(tiles).flatten(1).view(len(clip), -1, self.hidden.in_features)))  # (B, M, D)
        x = x + F.gelu(self.norm2(self.hidden(x)))
        with torch.autocast(x.device.type, enabled=False):  # what all say alike is taken off later: no bits to spare
            return {name: head(x.float()) for name, head in self.heads.items()}


def apart(clip: Tensor, tubelet: tuple[int, int, int]) -> Tensor:
    """(B, 3, T, H, W) → (B·M, 3, t, p, p): every tubelet a clip of its own."""
    return cut(clip, tubelet).reshape(-1, clip.shape[1], *tubelet)


def counted(votes: Tensor, shown: Tensor, share: float = 1.0) -> Tensor:
    """(B, M, outputs), (B, M) of 0 and 1 → logits of the clip (B, outputs).

    Divided by the number of tubelets that are shown on average, not by that of this clip: a sum.
    """
    return SCALE * (votes * shown.unsqueeze(2)).sum(1) / (share * shown.shape[1])


def loudness(votes: Tensor, *, several: bool) -> Tensor:
    """(B, M, outputs) → (B, M). `several`: yes or no to each output, instead of one among them."""
    votes = votes.float()
    if not several:
        votes = votes - votes.mean(2, keepdim=True)  # a softmax does not see what is added to all answers
    votes = votes - votes.median(1, keepdim=True).values
    return votes.abs().sum(2) if several else votes.square().mean(2).sqrt()


def random_company(clips: int, count: int, share: float, device: torch.device) -> Tensor:
    """(B, M) of 0 and 1: each tubelet is shown with probability `share`."""
    return (torch.rand(clips, count, device=device) < share).float()


def where(credit: Tensor) -> Tensor:
    """(B, M), 0 or more → shares of the clip's, with the sum 1."""
    return credit / credit.sum(1, keepdim=True).clamp(min=1e-9)


def taught(attention: Tensor, target: Tensor, live: Tensor) -> Tensor:
    """Cross-entropy of an attention map (B, m) over live tubelets to the target (B, M) among them."""
    wanted = where(F.pad(target, (0, 1)).gather(1, live))  # one more: fuse tokens have no place
    return -(wanted * attention.clamp(min=1e-9).log()).sum(1).mean()
