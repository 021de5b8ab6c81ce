"""What every method is: a thing that anonymizes clips, and streams of frames.

`anonymize` is for learning and measuring: a float clip in, a clip of the same size out. `stream` is for files and
cameras: frames in, safe frames out, in order. A method that looks at one frame at a time writes `paint` alone and gets
both; a method that needs to see several overrides `stream`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from vidveil.core.frame import Frame, Plane, SafeFrame

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Anonymized:
    """What a method gives for a clip."""

    video: "Tensor"
    """(3, T, H, W) float in [0, 1], the input's size."""
    mask: "Tensor | None" = None
    """What was kept, where the method hides by a mask."""
    scores: "Tensor | None" = None
    """What the mask was drawn from."""


class Anonymizer(ABC):
    """A method with its knobs set. Deterministic, and each clip is treated by itself."""

    weights: str | None = None
    """Name and hash of what the method learned, where it learned something."""
    unchanged = False
    """Whether pictures that it lets pass are as they were filmed."""
    elsewhere = False
    """Whether things are shown at other places than they were filmed at: what was found there is not there any more."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        """The method as written: `blur:strong`."""

    @abstractmethod
    def anonymize(
        self, clip: "Tensor", *, keep: float | None = None, privacy_weight: float | None = None
    ) -> Anonymized:
        """`keep` and `privacy_weight` are the knobs of learned methods; the others have none and refuse them."""

    @abstractmethod
    def stream(self, frames: Iterable[Frame]) -> Iterator[SafeFrame]:
        """Frames in order, each anonymized or black; fewer only where the method leaves frames out."""

    def caution(self, short_side: int) -> str | None:  # noqa: ARG002
        """What whoever shares a video of this size should know, where people may still be recognised by eye."""
        return None

    def keeps(self, index: int) -> bool:  # noqa: ARG002
        """Whether the frame with this index comes out at all."""
        return True


class FrameMethod(Anonymizer):
    """A method that paints each frame from that frame alone."""

    @abstractmethod
    def paint(self, source: Plane, target: Plane, shrink: int, /) -> None:
        """Fill one plane of the new picture. `shrink` is 2 for chroma planes, which have half the size."""

    def paint_region(self, source: Plane, target: Plane, shrink: int, side: int, /) -> None:  # noqa: ARG002
        """Fill a piece of a plane that holds a face or person, or the part of them that is inside the picture.

        Strengths are measured by `side`, the short side of the whole region in pixels of this plane.
        """
        self.paint(source, target, shrink)

    def hide(self, frame: Frame) -> SafeFrame:
        return frame.paint(self.paint)

    def stream(self, frames: Iterable[Frame]) -> Iterator[SafeFrame]:
        for frame in frames:
            yield fail_closed(self, frame)

    def anonymize(
        self, clip: "Tensor", *, keep: float | None = None, privacy_weight: float | None = None
    ) -> Anonymized:
        """Every frame of the clip painted anew; the size stays."""
        import torch

        refuse_knobs(self.spec, keep, privacy_weight)
        check_clip(clip)
        # (3, T, H, W) → 3·T planes of 8 bits: the very arithmetic that files go through
        planes = (clip.detach().cpu() * 255).round().to(torch.uint8).flatten(0, 1).contiguous().numpy()
        painted = np.empty_like(planes)
        for source, target in zip(planes, painted, strict=True):
            self.paint(source, target, 1)
        video = torch.from_numpy(painted).to(clip.device, clip.dtype).div_(255).view(clip.shape)
        return Anonymized(video)


class Chain(Anonymizer):
    """Several methods, one after the other."""

    def __init__(self, stages: Sequence[Anonymizer]) -> None:
        super().__init__(" | ".join(stage.spec for stage in stages))
        self.stages = tuple(stages)
        self.weights = " + ".join(stage.weights for stage in stages if stage.weights) or None
        self.unchanged = all(stage.unchanged for stage in stages)
        self.elsewhere = any(stage.elsewhere for stage in stages)

    def caution(self, short_side: int) -> str | None:
        painting = [stage for stage in self.stages if not stage.unchanged] or self.stages
        cautions = [stage.caution(short_side) for stage in painting]
        return None if None in cautions else cautions[-1]  # one stage that hides is enough; the last one is seen

    def keeps(self, index: int) -> bool:
        return all(stage.keeps(index) for stage in self.stages)

    def stream(self, frames: Iterable[Frame]) -> Iterator[SafeFrame]:
        first, *others = self.stages
        return reduce(lambda safe, stage: stage.stream(safe), others, first.stream(frames))

    def anonymize(
        self, clip: "Tensor", *, keep: float | None = None, privacy_weight: float | None = None
    ) -> Anonymized:
        refuse_knobs(self.spec, keep, privacy_weight)
        result = Anonymized(clip)
        for stage in self.stages:
            result = stage.anonymize(result.video)
        return result


def fail_closed(method: FrameMethod, frame: Frame) -> SafeFrame:
    """The frame as the method paints it; black if there is no picture, or the method fails on it."""
    if isinstance(frame, SafeFrame) and frame.hidden is not None:
        return frame  # black already, from an earlier stage
    if frame.picture is None:
        return frame.black(frame.lost or "had no picture")
    try:
        return method.hide(frame)
    except Exception as error:  # whatever it was: this frame must not pass
        return frame.black(f"could not be anonymized ({type(error).__name__})")


def refuse_knobs(spec: str, keep: float | None, privacy_weight: float | None) -> None:
    if keep is not None or privacy_weight is not None:
        from vidveil.core.errors import UsageError

        raise UsageError(f"{spec} has no knobs: keep and privacy_weight belong to learned methods")


def check_clip(clip: "Tensor") -> None:
    import torch

    what = "a clip is a float tensor (3, T, H, W) in [0, 1]"
    if not isinstance(clip, torch.Tensor):
        raise ValueError(f"{what}, got {type(clip).__name__}")
    if clip.ndim != 4 or clip.shape[0] != 3 or not clip.is_floating_point():
        raise ValueError(f"{what}, got {clip.dtype} {tuple(clip.shape)}")
    if clip.numel() and not 0 <= clip.min() <= clip.max() <= 1:
        raise ValueError(f"{what}, got values from {clip.min():g} to {clip.max():g}")
