"""RandomPruning behind a learned mask's own windows: `random:dual_cls:RUN`, what that method has to beat on real video.

`random` alone cuts tubelets of its own. On videos that are larger and longer than what a network sees, a network's
tubelets are larger, and its windows overlap; a finer scatter of holes leaves something else to see at the same share.
Here everything is the method's, but for which tubelets stay: as many, drawn by lot.
"""

import hashlib
from typing import TYPE_CHECKING, Any

from vidveil.core.errors import UsageError
from vidveil.core.tubelets import kept_count
from vidveil.methods.masking.masker import Decision, TubeletMasker

if TYPE_CHECKING:
    from torch import Tensor

PREFIX = "random:dual_cls:"


def is_random_pruning(method: str) -> bool:
    return method.startswith(PREFIX)


def with_random_pruning(method: Any, spec: str) -> TubeletMasker:
    """The masker, choosing by lot from now on."""
    if not isinstance(method, TubeletMasker) or not hasattr(method.scorer, "prune_at"):
        raise UsageError(f"{spec}: lots take the place of a dual-CLS network, and this is none")
    method.scorer = RandomPruning(method.scorer)
    return method


class RandomPruning:
    """A scorer that has seen nothing: the same lots for the same clip, others for others."""

    def __init__(self, network: Any) -> None:
        self.frames, self.size, self.tubelet = network.frames, network.size, network.tubelet
        self.grid, self.selections, self.keep = network.grid, len(network.prune_at), network.network.keep

    def decide(self, clips: "Tensor", keep: float | None, privacy_weight: float | None) -> Decision:  # noqa: ARG002
        import torch

        count = self.grid[0] * self.grid[1] * self.grid[2]
        left = count
        for _ in range(self.selections):  # as many as after each selection of the network
            left = kept_count(left, self.keep if keep is None else keep)
        drawn = [torch.randperm(count, generator=_generator(clip)) for clip in clips]
        places = torch.stack(drawn).to(clips.device).view(len(clips), *self.grid)  # (B, L, h, w): 0 stays longest
        return Decision(places < left, -places.float())


def _generator(clip: "Tensor") -> Any:
    import torch

    pixels = (clip * 255).round().byte().cpu().numpy().tobytes()
    return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(pixels).digest()[:7], "big"))
