"""A network decides, tubelet by tubelet, what of a video may stay visible; everything else is painted over.

    clip (3, T, H, W)  →  squashed to size × size, in windows of `frames` frames  →  Scorer.decide
                       →  kept (L, h, w) of each window, laid over the T × H × W pixels of the original

No pixel that is shown has been through the network: it is the original's, or it is hidden. The whole picture is looked
at, never a crop of it. Where a cell's border runs through a pixel, or two windows disagree, the pixel is hidden.
"""

import math
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from vidveil.core.anonymizer import Anonymized, Anonymizer, Chain, check_clip, refuse_knobs
from vidveil.core.errors import UsageError
from vidveil.core.frame import Frame, SafeFrame
from vidveil.methods.masking.stream import Stretch
from vidveil.methods.masking.windows import Plan, laid_over, spread, squashed_clips

if TYPE_CHECKING:
    import torch
    from torch import Tensor

AT_ONCE = 64  # windows of a long clip in one call of the network
RAW = "raw"  # no method before the mask


@dataclass(frozen=True)
class Decision:
    """What a network decided about clips."""

    kept: "Tensor"
    """(B, L, h, w) bool"""
    scores: "Tensor"
    """(B, L, h, w) float: higher is more worth keeping."""


class Scorer(Protocol):
    """A network that decides which tubelets of a clip stay.

    It may have `own`, its own `keep` and `privacy_weight`; `stride`; and `after`, the method whose output it looks at.
    """

    @property
    def frames(self) -> int:
        """Of a clip that it sees."""

    @property
    def size(self) -> int:
        """Side of the square that it sees."""

    @property
    def tubelet(self) -> tuple[int, int, int]:
        """Frames, height, width."""

    def decide(self, clips: "Tensor", keep: float | None, privacy_weight: float | None) -> Decision:
        """`clips` are float (B, 3, frames, size, size) in [0, 1]. None: the network's own setting."""


class TubeletMasker(Anonymizer):
    """Lays a network's decisions over videos of any length and size.

    `weights` is the name and hash that manifests tell; None: what the scorer says of itself, if it has `weights`.
    `keep` and `privacy_weight` are the network's own unless they are given, here or with a call. `stride` is that of
    videos longer than the network's clip; None: what the scorer says, else 2. `fill` says what stands in place of
    hidden pixels (see `core.tubelets`); the mean is that of a whole clip, in streams that of each frame. `after` is
    a method that videos go through first: the network sees what that leaves, and nothing else is ever shown. None: what
    the scorer says, else `raw`, which is none.
    """

    draws = False
    """Whether what it shows is drawn by the network, and no pixel of the video."""
    stretched = True
    """Whether frames of a stream have the video's size, or that at which the network draws. Clips keep their own."""

    def __init__(
        self,
        spec: str,
        scorer: Scorer,
        *,
        weights: str | None = None,
        fill: str = "black",
        stride: int | None = None,
        after: str | None = None,
        keep: float | None = None,
        privacy_weight: float | None = None,
        device: str = "auto",
    ) -> None:
        super().__init__(spec)
        from vidveil.core.tubelets import FILLS

        check_knobs(keep, privacy_weight)
        for knob, value in (("keep", keep), ("privacy_weight", privacy_weight)):
            if value is not None and knob not in getattr(scorer, "own", (knob,)):
                raise UsageError(f"{spec} has nothing that {knob} would turn: leave it out")
        if fill not in FILLS:
            raise UsageError(f"fill is {', '.join(FILLS[:-1])} or {FILLS[-1]}, not {fill!r}")
        stride = int(getattr(scorer, "stride", 2)) if stride is None else stride
        if stride < 1:
            raise UsageError(f"stride is 1 or more, not {stride}")
        self.scorer, self.stride = scorer, stride
        self.fill: str = fill
        self.after = loaded_unless_raw(getattr(scorer, "after", RAW) if after is None else after)
        self.elsewhere = self.after is not None and self.after.elsewhere
        self.weights = getattr(scorer, "weights", None) if weights is None else weights
        self.keep, self.privacy_weight = keep, privacy_weight
        self.plan = Plan(scorer.frames, scorer.tubelet[0], stride)
        self.device = _placed(scorer, device)

    @property
    def knobs(self) -> dict[str, Any]:
        """For the manifest. None: the network does not say how it is set by itself."""
        own = getattr(self.scorer, "own", {})
        keep = own.get("keep") if self.keep is None else self.keep
        weight = own.get("privacy_weight") if self.privacy_weight is None else self.privacy_weight
        weight = "inf" if weight == math.inf else weight  # JSON has no such number
        after = {} if self.after is None else {"after": self.after.spec}
        return {"keep": keep, "privacy_weight": weight, "fill": self.fill, "stride": self.stride, **after}

    def caution(self, short_side: int) -> str | None:
        if self.after is not None:
            return self.after.caution(short_side)
        return f"{self.spec} leaves what it keeps as it is: people may be recognised by eye; --guard faces hides more"

    def keeps(self, index: int) -> bool:
        return self.after is None or self.after.keeps(index)

    def tuned(self, keep: float | None, privacy_weight: float | None, device: str | None = None) -> "TubeletMasker":
        """The same network with other knobs; None leaves one as it is."""
        return type(self)(
            self.spec,
            self.scorer,
            weights=self.weights,
            fill=self.fill,
            stride=self.stride,
            after=RAW if self.after is None else self.after.spec,
            keep=self.keep if keep is None else keep,
            privacy_weight=self.privacy_weight if privacy_weight is None else privacy_weight,
            device=str(self.device) if device is None else device,
        )

    def alone(self) -> "TubeletMasker":
        """The same masks, for videos that have been through `after` already."""
        masker = copy(self)
        masker.after = None
        return masker

    def anonymize(
        self, clip: "Tensor", *, keep: float | None = None, privacy_weight: float | None = None
    ) -> Anonymized:
        """For a clip of any length and size.

        `mask` is (T, H, W) bool, the pixels that are kept. `scores` is (T, H, W) float, of each pixel the score of the
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
        """For clips of one shape: (B, 3, T, H, W), float in [0, 1] or uint8. A leading B on everything that returns.

        The video has the type and device of the clips. Clips as long as the network's take one call of it.
        """
        import torch

        from vidveil.models.layers.tubelets import paint

        check_knobs(keep, privacy_weight)
        if clips.ndim != 5 or clips.shape[1] != 3 or not (clips.is_floating_point() or clips.dtype == torch.uint8):
            raise ValueError(f"clips are (B, 3, T, H, W), float or uint8, got {clips.dtype} {tuple(clips.shape)}")
        if self.after is not None:
            clips = self._after(clips)
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
                f"{self.spec}: the fill {self.fill} looks at a whole clip, a stream has none; fill black does"
            )
        return self._stream(frames if self.after is None else self.after.stream(frames))

    def _stream(self, frames: Iterable[Frame]) -> Iterator[SafeFrame]:
        stretch = self._stretch()
        for frame in frames:
            if frame.after_gap:  # what lies before an outage says nothing about what comes after it
                yield from stretch.end()
                stretch = self._stretch()
            yield from stretch.take(frame)
        yield from stretch.end()

    def _stretch(self) -> Stretch:
        return Stretch(self)

    def ask(self, clips: "Tensor", keep: float | None = None, privacy_weight: float | None = None) -> Decision:
        """The network's decision about clips of its own shape, checked: a wrong answer must not pass for a mask."""
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
            raise ValueError("the network's decision is not made of yes, no and numbers")
        return decision

    def _after(self, clips: "Tensor") -> "Tensor":
        """What the method before this one leaves of the clips, as they came."""
        import torch

        assert self.after is not None
        whole = clips.dtype == torch.uint8
        shown = torch.stack([self.after.anonymize(clip.float() / 255 if whole else clip).video for clip in clips])
        return (shown * 255).round().to(torch.uint8) if whole else shown

    def _decided(self, video: "Tensor", keep: float | None, privacy_weight: float | None) -> "tuple[Tensor, Tensor]":
        """Kept or not, and scores, of each cell at each frame: (B, T, h, w)."""
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


def check_knobs(keep: float | None, privacy_weight: float | None) -> None:
    if keep is not None and not 0 < keep <= 1:
        raise UsageError(f"keep is a share in (0, 1], got {keep:g}")
    if privacy_weight is not None and not privacy_weight >= 0:
        raise UsageError(f"the privacy weight is 0 or more, got {privacy_weight:g}")


def tuned(
    method: Anonymizer, keep: float | None = None, privacy_weight: float | None = None, device: str | None = None
) -> Anonymizer:
    """The method with its knobs turned. Methods without knobs refuse them."""
    if masker_in(method) is None:
        refuse_knobs(method.spec, keep, privacy_weight)
        return method
    stages = method.stages if isinstance(method, Chain) else (method,)
    turned = [s.tuned(keep, privacy_weight, device) if isinstance(s, TubeletMasker) else s for s in stages]
    return Chain(turned) if isinstance(method, Chain) else turned[0]


def masker_in(method: Anonymizer) -> TubeletMasker | None:
    """The method, or the stage of it, that masks by a network; None if nothing in it is learned."""
    if isinstance(method, Chain):  # a guard makes a chain of a chain
        return next(filter(None, map(masker_in, method.stages)), None)
    return method if isinstance(method, TubeletMasker) else None


def loaded_unless_raw(spec: str) -> Anonymizer | None:
    """The method that a mask's network looks through."""
    if spec == RAW:
        return None
    from vidveil.methods import load

    method = load(spec)
    if method.unchanged:
        raise UsageError(f"after: {spec} leaves pictures as they are; take one that hides, or raw")
    if masker_in(method) is not None:
        raise UsageError(f"after: {spec} is learned itself; take one that is not, or raw")
    return method


def _placed(scorer: Scorer, device: str) -> "torch.device":
    """Where the network works, with the network there."""
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if isinstance(scorer, torch.nn.Module):
        scorer.to(device).eval()
    return torch.device(device)
