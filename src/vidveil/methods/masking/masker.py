"""A network decides for each tubelet of a video whether it stays visible; everything else is painted over.

    clip (3, T, H, W)  →  squashed to size × size, in windows of `frames` frames  →  Scorer.decide
                       →  kept (L, h, w) of each window, laid over the T × H × W pixels of the original

No pixel that is shown has been through the network: it is the original's, or it is hidden. The network sees the whole
picture, never a crop of it. Where a cell's border runs through a pixel, or two windows disagree, the pixel is hidden.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vidveil.core.anonymizer import Anonymized, Anonymizer, Chain, check_clip, refuse_knobs
from vidveil.core.errors import UsageError
from vidveil.core.frame import Frame, SafeFrame
from vidveil.core.tubelets import FILLS
from vidveil.methods import load
from vidveil.methods.learned.stream import StreamSegment
from vidveil.methods.learned.windows import Plan, laid_over, spread, squashed_clips

if TYPE_CHECKING:
    import torch
    from torch import Tensor

AT_ONCE = 64  # windows of a long clip in one call of the network
RAW = "raw"  # no preprocessing


@dataclass(frozen=True)
class Decision:
    """What a network decided about clips."""

    kept: "Tensor"
    """(B, L, h, w) bool"""
    scores: "Tensor"
    """(B, L, h, w) float: higher is more worth keeping."""


class Scorer(ABC):
    """A network that decides which tubelets of a clip stay."""

    frames: int
    """Of its input."""
    size: int
    """Side of its square input, in pixels."""
    tubelet: tuple[int, int, int]
    """Frames, height, width."""
    own: Mapping[str, float] | None = None
    """Its own `keep` and `privacy_weight`, or those of the two that it has; None: not known."""
    prune_at: tuple[int, ...] = ()
    """Numbers of the blocks in which it drops tubelets, from 1; none if it decides in another way."""
    stride = 2
    """Of a long video it is shown every so many-th frame."""
    preprocess = RAW
    """The method that is applied to videos before it."""
    weights: str | None = None
    """Name and hash of its weights, for manifests."""
    trained_on_puppets = False
    learned = True
    """Whether it predicts the action better than chance."""

    @abstractmethod
    def decide(self, clips: "Tensor", keep: float | None, privacy_weight: float | None) -> Decision:
        """`clips` are float (B, 3, frames, size, size) in [0, 1]. None: the network's own setting."""


class TubeletMasker(Anonymizer):
    """Lays a network's decisions over videos of any length and size.

    `weights`, `stride` and `preprocess` are the scorer's unless they are given; `keep` and `privacy_weight` are the
    network's own unless they are given, here or with a call. `fill` replaces hidden pixels (see `core.tubelets`); the
    mean is that of a whole clip, in streams that of each frame. The output of `preprocess` is all that the network
    sees, and all that is ever shown.
    """

    draws = False
    """Whether the network draws what is shown, and no pixel of the video is."""
    stretched = True
    """Whether frames of a stream have the video's size, or the network's. Clips keep their own."""

    def __init__(
        self,
        spec: str,
        scorer: Scorer,
        *,
        weights: str | None = None,
        fill: str = "black",
        stride: int | None = None,
        preprocess: str | None = None,
        keep: float | None = None,
        privacy_weight: float | None = None,
        device: str = "auto",
    ) -> None:
        super().__init__(spec)
        check_knobs(keep, privacy_weight)
        for knob, value in (("keep", keep), ("privacy_weight", privacy_weight)):
            if value is not None and scorer.own is not None and knob not in scorer.own:
                raise UsageError(f"{spec} has no {knob}: leave it out")
        if fill not in FILLS:
            raise UsageError(f"fill is {', '.join(FILLS[:-1])} or {FILLS[-1]}, not {fill!r}")
        stride = scorer.stride if stride is None else stride
        if stride < 1:
            raise UsageError(f"stride is 1 or more, not {stride}")
        self.scorer, self.stride = scorer, stride
        self.fill: str = fill
        self.preprocess = loaded_unless_raw(scorer.preprocess if preprocess is None else preprocess)
        self.elsewhere = self.preprocess is not None and self.preprocess.elsewhere
        self.weights = scorer.weights if weights is None else weights
        self.keep, self.privacy_weight = keep, privacy_weight
        self.plan = Plan(scorer.frames, scorer.tubelet[0], stride)
        self.device = _placed(scorer, device)

    @property
    def knobs(self) -> dict[str, Any]:
        """For the manifest. None: the network does not say what its own setting is."""
        own = self.scorer.own or {}
        keep = own.get("keep") if self.keep is None else self.keep
        weight = own.get("privacy_weight") if self.privacy_weight is None else self.privacy_weight
        knobs = {
            "keep": keep,
            "privacy_weight": "inf" if weight == math.inf else weight,  # JSON has no such number
            "fill": self.fill,
            "stride": self.stride,
        }
        return knobs if self.preprocess is None else knobs | {"preprocess": self.preprocess.spec}

    def caution(self, short_side: int) -> str | None:
        if self.preprocess is not None:
            return self.preprocess.caution(short_side)
        left = "leaves what it keeps as it is: people may be recognised by eye"
        return f"{self.spec} {left}; --also-hide faces hides more"

    def keeps(self, index: int) -> bool:
        return self.preprocess is None or self.preprocess.keeps(index)

    def tuned(self, keep: float | None, privacy_weight: float | None, device: str | None = None) -> "TubeletMasker":
        """The same network with other knobs; None leaves one as it is."""
        return type(self)(
            self.spec,
            self.scorer,
            weights=self.weights,
            fill=self.fill,
            stride=self.stride,
            preprocess=RAW if self.preprocess is None else self.preprocess.spec,
            keep=self.keep if keep is None else keep,
            privacy_weight=self.privacy_weight if privacy_weight is None else privacy_weight,
            device=str(self.device) if device is None else device,
        )

    def alone(self) -> "TubeletMasker":
        """The same masks, for videos that were preprocessed already."""
        masker = copy(self)
        masker.preprocess = None
        return masker

    def anonymize(
        self, clip: "Tensor", *, keep: float | None = None, privacy_weight: float | None = None
    ) -> Anonymized:
        """A clip of any length and size.

        `mask` is (T, H, W) bool: the pixels that are kept. `scores` is (T, H, W) float: for each pixel the score of the
        tubelet in which its middle lies; where two windows overlap, the lower one.
        """
        import torch

        if not isinstance(clip, torch.Tensor) or clip.dtype != torch.uint8:
            check_clip(clip)
        done = self.anonymize_batch(clip[None], keep=keep, privacy_weight=privacy_weight)
        assert done.mask is not None
        assert done.scores is not None
        return Anonymized(done.video[0], done.mask[0], done.scores[0])

    def anonymize_batch(
        self, clips: "Tensor", *, keep: float | None = None, privacy_weight: float | None = None
    ) -> Anonymized:
        """Clips of one shape: (B, 3, T, H, W), float in [0, 1] or uint8. All that is returned has a leading B.

        The video has the type and device of the clips. Clips as long as the network's need one call of it.
        """
        import torch

        from vidveil.models.layers.tubelets import paint

        check_knobs(keep, privacy_weight)
        check_clips(clips)
        if self.preprocess is not None:
            clips = self._preprocessed(clips)
        with torch.no_grad():
            moved = clips.to(self.device)
            video = moved.float() / 255 if moved.dtype == torch.uint8 else moved.float()
            kept, scores = self._decided(video, keep, privacy_weight)  # (B, T, h, w)
            height, width = video.shape[-2:]
            mask, scores = laid_over(kept, height, width), spread(scores, height, width)  # (B, T, H, W)
            if clips.dtype == torch.uint8:
                painted = (paint(video, mask, self.fill) * 255).round().to(torch.uint8)
            else:
                painted = paint(moved, mask, self.fill)
        there = clips.device
        return Anonymized(painted.to(there), mask.to(there), scores.to(there))

    def stream(self, frames: Iterable[Frame]) -> Iterator[SafeFrame]:
        """Frames come out when the windows that cover them are complete: `plan.span` frames later, or fewer."""
        if self.fill not in ("black", "mean"):
            raise UsageError(
                f"{self.spec}: the fill {self.fill} needs a whole clip, which a stream does not have; take black"
            )
        return self._stream(frames if self.preprocess is None else self.preprocess.stream(frames))

    def _stream(self, frames: Iterable[Frame]) -> Iterator[SafeFrame]:
        segment = self._segment()
        for frame in frames:
            if frame.after_gap:  # frames before an outage say nothing about those after it
                yield from segment.end()
                segment = self._segment()
            yield from segment.take(frame)
        yield from segment.end()

    def _segment(self) -> StreamSegment:
        return StreamSegment(self)

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

    def _preprocessed(self, clips: "Tensor") -> "Tensor":
        """The clips after `preprocess`, in their own type."""
        import torch

        assert self.preprocess is not None
        whole = clips.dtype == torch.uint8
        shown = torch.stack([self.preprocess.anonymize(clip.float() / 255 if whole else clip).video for clip in clips])
        return (shown * 255).round().to(torch.uint8) if whole else shown

    def _decided(self, video: "Tensor", keep: float | None, privacy_weight: float | None) -> "tuple[Tensor, Tensor]":
        """For each cell at each frame whether it is kept, and its score: (B, T, h, w)."""
        import torch

        count, _, length = video.shape[:3]
        if not count or not length or not video.shape[3] or not video.shape[4]:
            raise ValueError(f"there is nothing in clips of {tuple(video.shape)}")
        windows = self.plan.windows(length)
        small = squashed_clips(video, self.scorer.size)  # (B, 3, T, size, size)
        shown = torch.cat([small[:, :, list(window.samples)] for window in windows])  # (windows · B, 3, frames, …)
        found = [self.ask(part, keep, privacy_weight) for part in torch.split(shown, max(AT_ONCE, count))]
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


def check_clips(clips: "Tensor") -> None:
    import torch

    if clips.ndim != 5 or clips.shape[1] != 3 or not (clips.is_floating_point() or clips.dtype == torch.uint8):
        raise ValueError(f"clips are (B, 3, T, H, W), float or uint8, got {clips.dtype} {tuple(clips.shape)}")


def check_knobs(keep: float | None, privacy_weight: float | None) -> None:
    if keep is not None and not 0 < keep <= 1:
        raise UsageError(f"keep is a share in (0, 1], got {keep:g}")
    if privacy_weight is not None and not privacy_weight >= 0:
        raise UsageError(f"the privacy weight is 0 or more, got {privacy_weight:g}")


def tuned(
    method: Anonymizer, keep: float | None = None, privacy_weight: float | None = None, device: str | None = None
) -> Anonymizer:
    """The method with other knobs. Methods without knobs refuse them."""
    if masker_in(method) is None:
        refuse_knobs(method.spec, keep, privacy_weight)
        return method
    stages = method.stages if isinstance(method, Chain) else (method,)
    turned = [s.tuned(keep, privacy_weight, device) if isinstance(s, TubeletMasker) else s for s in stages]
    return Chain(turned) if isinstance(method, Chain) else turned[0]


def masker_in(method: Anonymizer) -> TubeletMasker | None:
    """The method, or the stage of it, that masks by a network; None if nothing in it is learned."""
    if isinstance(method, Chain):  # hiding faces on top makes a chain of a chain
        return next(filter(None, map(masker_in, method.stages)), None)
    return method if isinstance(method, TubeletMasker) else None


def loaded_unless_raw(spec: str) -> Anonymizer | None:
    """The method that is applied before a mask's network."""
    if spec == RAW:
        return None
    method = load(spec)
    if method.unchanged:
        raise UsageError(f"preprocess: {spec} leaves pictures as they are; take one that hides, or raw")
    if masker_in(method) is not None:
        raise UsageError(f"preprocess: {spec} is learned itself; take one that is not, or raw")
    return method


def _placed(scorer: Scorer, device: str) -> "torch.device":
    """The device of the network, with the network on it."""
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if isinstance(scorer, torch.nn.Module):
        scorer.to(device).eval()
    return torch.device(device)
