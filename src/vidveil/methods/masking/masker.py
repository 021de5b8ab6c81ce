"""A network decides for each tubelet of a video whether it stays visible; everything else is painted over.

    clip (3, T, H, W)  →  squashed to size × size, in windows of `frames` frames  →  Scorer.decide
                       →  kept (L, h, w) of each window, laid over the T × H × W pixels of the original

No pixel that is shown has been through the network: it is the original's, or it is hidden. The network sees the whole
picture, never a crop of it. Where a cell's border runs through a pixel, or two windows disagree, the pixel is hidden.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vidveil.core.anonymizer import Anonymized
from vidveil.core.tubelets import kept_count
from vidveil.methods.learned.anonymizer import LearnedAnonymizer, LearnedNetwork
from vidveil.methods.learned.cells import laid_over, spread
from vidveil.methods.learned.clips import as_float
from vidveil.methods.learned.windows import squashed_clips
from vidveil.methods.masking.stream import MaskedSegment

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Decision:
    """What a network decided about clips."""

    kept: "Tensor"
    """(B, L, h, w) bool"""
    scores: "Tensor"
    """(B, L, h, w) float: higher is more worth keeping."""


class Scorer(LearnedNetwork, ABC):
    """A network that decides which tubelets of a clip stay."""

    tubelet: tuple[int, int, int]
    """Frames, height, width."""
    own: Mapping[str, float] | None = None
    prune_at: tuple[int, ...] = ()
    """Numbers of the blocks in which it drops tubelets, from 1; none if it decides in another way."""
    stride = 2

    @abstractmethod
    def decide(self, clips: "Tensor", keep: float | None, privacy_weight: float | None) -> Decision:
        """`clips` are float (B, 3, frames, size, size) in [0, 1]. None: the network's own setting."""


class TubeletMasker(LearnedAnonymizer):
    """Lays a network's decisions over videos of any length and size.

    `fill` replaces hidden pixels (see `core.tubelets`); the mean is that of a whole clip, in streams that of each
    frame. The output of `preprocess` is all that the network sees, and all that is ever shown.
    """

    def __init__(self, spec: str, scorer: Scorer, **options: Any) -> None:
        """The options are those of `LearnedAnonymizer`."""
        super().__init__(spec, scorer, **options)

    @property
    def scorer(self) -> Scorer:
        found: Scorer = self.network
        return found

    @property
    def shows_everything(self) -> bool:
        times, height, width = self.scorer.tubelet
        count = (self.scorer.frames // times) * (self.scorer.size // height) * (self.scorer.size // width)
        keep = (self.scorer.own or {}).get("keep") if self.keep is None else self.keep
        kept = keep is not None and kept_count(count, keep) == count
        return kept and self.preprocess is None and not self.draws

    def caution(self, short_side: int) -> str | None:
        if self.preprocess is not None:
            return self.preprocess.caution(short_side)
        left = "leaves what it keeps as it is: people may be recognised by eye"
        return f"{self.spec} {left}; --also-hide faces hides more"

    def process(self, clips: "Tensor", keep: float | None, privacy_weight: float | None) -> Anonymized:
        import torch

        from vidveil.models.layers.tubelets import paint

        video = as_float(clips)
        kept, scores = self._decided(video, keep, privacy_weight)  # (B, T, h, w)
        height, width = clips.shape[-2:]
        mask = laid_over(kept, height, width)  # (B, T, H, W)
        shown = paint(video if clips.dtype == torch.uint8 else clips, mask, self.fill)
        return Anonymized(shown, mask, spread(scores, height, width))

    def segment(self) -> MaskedSegment:
        return MaskedSegment(self)

    def ask(self, clips: "Tensor", keep: float | None = None, privacy_weight: float | None = None) -> Decision:
        """The network's decision about clips of its own shape, checked: a wrong output must not become a mask."""
        import torch

        with torch.no_grad():
            decision = self.scorer.decide(
                clips.to(self.device),
                self.keep if keep is None else keep,
                self.privacy_weight if privacy_weight is None else privacy_weight,
            )
        times, height, width = self.scorer.tubelet
        wanted = (len(clips), self.scorer.frames // times, self.scorer.size // height, self.scorer.size // width)
        if tuple(decision.kept.shape) != wanted or tuple(decision.scores.shape) != wanted:
            raise ValueError(f"the network decided about {tuple(decision.kept.shape)} tubelets instead of {wanted}")
        if decision.kept.dtype != torch.bool or decision.scores.isnan().any():
            raise ValueError("the network's decision is not bool, or a score is not a number")
        return decision

    def _decided(self, video: "Tensor", keep: float | None, privacy_weight: float | None) -> "tuple[Tensor, Tensor]":
        """For each cell at each frame whether it is kept, and its score: (B, T, h, w)."""
        import torch

        count, _, length = video.shape[:3]
        windows = self.plan.windows(length)
        small = squashed_clips(video, self.scorer.size)  # (B, 3, T, size, size)
        shown = torch.cat([small[:, :, list(window.samples)] for window in windows])  # (windows · B, 3, frames, …)
        found = [self.ask(part, keep, privacy_weight) for part in torch.split(shown, max(self.scorer.at_once, count))]
        kept = torch.cat([decision.kept for decision in found])  # (windows · B, L, h, w)
        scores = torch.cat([decision.scores for decision in found]).float()
        cells = kept.shape[-2:]
        all_kept = torch.ones(count, length, *cells, dtype=torch.bool, device=kept.device)
        lowest = torch.full((count, length, *cells), math.inf, device=kept.device)
        for number, window in enumerate(windows):
            own = slice(number * count, (number + 1) * count)
            for layer, (begin, end) in enumerate(window.spans):
                all_kept[:, begin:end] &= kept[own, layer, None]
                lowest[:, begin:end] = torch.minimum(lowest[:, begin:end], scores[own, layer, None])
        return all_kept, lowest
