"""How many floating-point operations a dual-CLS network needs, counted by hand from the tokens that are alive.

A product of (a, b) and (b, c) counts 2·a·b·c. Norms, GELU, softmax and selection are not counted: what is reported as a
share of the ceiling is work that a matrix unit must do.
"""

from vidveil.core.tubelets import kept_count
from vidveil.methods.dual_cls.model import SIZES, DualCLS


def tokens_by_block(network: DualCLS, keep: float) -> list[tuple[int, int]]:
    """(tokens that the attention sees, tokens that the MLP sees) of each block."""
    live, fused, found = network.count, 0, []
    for number in range(1, len(network.blocks) + 1):
        before = network.tokens + live + fused
        if number in network.prune_at:
            live = kept_count(live, keep)
            fused += network.network.fusion
        found.append((before, network.tokens + live + fused))
    return found


def forward_flops(network: DualCLS, keep: float, *, mask_only: bool = False) -> float:
    """Of one clip, for networks with their privacy token in the backbone."""
    width = SIZES[network.network.size][0]
    times, height, across = network.tubelet
    total = 2.0 * network.count * 3 * times * height * across * width  # the embedding of tubelets
    for number, (n, after) in enumerate(tokens_by_block(network, keep), 1):
        total += 2 * n * width * 3 * width  # q, k, v
        if mask_only and number == network.prune_at[-1]:
            return total + 2 * network.tokens * n * width  # where the CLS tokens look: no more is needed
        total += 4 * n * n * width  # q kᵀ and weights · v
        total += 2 * n * width * width  # output projection
        total += 16 * after * width * width  # MLP
    return total


def training_flops(network: DualCLS, keep: float) -> float:
    """Of one clip, forwards and backwards: each product has two in the backward pass, except those on pixels, one."""
    times, height, across = network.tubelet
    first = 2.0 * network.count * 3 * times * height * across * SIZES[network.network.size][0]
    return 3 * forward_flops(network, keep) - first
