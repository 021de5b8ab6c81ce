"""The base class of methods: each anonymizes clips, and streams of frames.

`anonymize` is for training and evaluation: a float clip in, a clip of the same size out. `stream` is for files and
cameras: frames in, safe frames out, in order. A method that works frame by frame implements `paint` alone and gets
both; a method that needs several frames overrides `stream`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from vidveil.core.errors import UsageError
from vidveil.core.frame import Frame, Plane, SafeFrame

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Anonymized:
    """What a method returns for a clip."""

    video: "Tensor"
    """(3, T, H, W) float in [0, 1], the input's size."""
    mask: "Tensor | None" = None
    """What was kept, where the method hides by a mask."""
    scores: "Tensor | None" = None
    """From which the mask was computed."""


class Anonymizer(ABC):
    """A method with its parameters set. Deterministic, and each clip is treated by itself."""

    weights: str | None = None
    """Name and hash of the weights of a learned method."""
    unchanged = False
    """Whether the frames that it keeps are unchanged."""
    preprocess: "Anonymizer | None" = None
    """The method that this one applies to videos before its own network."""
    elsewhere = False
    """Whether the output shows things at other positions than the source: boxes on the source do not fit the output."""
    draws = False
    """Whether a network draws all that is shown, and no pixel of the video is. What is hidden on top changes nothing of
    a drawing, and so does not silence its caution."""
    device: "torch.device | None" = None
    """Where the network of a learned method is, if it says so."""
    limits: tuple[str, ...] = ()
    """What the checkpoint of a learned method says against its weights: `predicted the action no better than chance`.
    Whoever loads a method from a checkpoint sets it, whatever its class."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        """The method as written: `blur:strong`."""

    @property
    def knobs(self) -> dict[str, Any] | None:
        """How a learned method is set, for the manifest; None for methods without knobs."""
        return None

    def warnings(self) -> list[str]:
        """What whoever shares an output must know, whatever the video shows: of the method's weights, and of the method
        before its network. Overrides add to it."""
        before = [] if self.preprocess is None else self.preprocess.warnings()
        return [*before, *(f"{self.spec} {limit}" for limit in self.limits)]

    @abstractmethod
    def anonymize(
        self, clip: "Tensor", *, keep: float | None = None, privacy_weight: float | None = None
    ) -> Anonymized:
        """`keep` and `privacy_weight` are parameters of learned methods; other methods refuse them."""

    @abstractmethod
    def stream(self, frames: Iterable[Frame]) -> Iterator[SafeFrame]:
        """Frames in order, each anonymized or black; fewer only where the method leaves frames out."""

    def caution(self, short_side: int) -> str | None:  # noqa: ARG002
        """A warning where people in a video of this size may still be recognised by eye."""
        return None

    def keeps(self, index: int) -> bool:  # noqa: ARG002
        """Whether the output has the frame with this index."""
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
        """Every frame of the clip painted; the size stays the same."""
        import torch

        refuse_knobs(self.spec, keep, privacy_weight)
        check_clip(clip)
        # (3, T, H, W) → 3·T planes of 8 bits: the same arithmetic as for files
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
        self.draws = any(stage.draws for stage in stages)
        self.device = next((stage.device for stage in stages if stage.device is not None), None)

    @property
    def knobs(self) -> dict[str, Any] | None:
        """Those of its first stage that has any."""
        return next((stage.knobs for stage in self.stages if stage.knobs is not None), None)

    def warnings(self) -> list[str]:
        return list(dict.fromkeys(warning for stage in self.stages for warning in stage.warnings()))

    def caution(self, short_side: int) -> str | None:
        painting = [stage for stage in self.stages if not stage.unchanged] or self.stages
        cautions = {stage: stage.caution(short_side) for stage in painting}
        if None not in cautions.values():
            return cautions[painting[-1]]
        # one stage that hides is enough, but not over a drawing
        return next((caution for stage, caution in cautions.items() if stage.draws and caution is not None), None)

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
    except Exception as error:  # whatever it was: this frame must not be shown
        return frame.black(f"could not be anonymized ({type(error).__name__})")


def refuse_knobs(spec: str, keep: float | None, privacy_weight: float | None) -> None:
    if keep is not None or privacy_weight is not None:
        raise UsageError(f"keep and privacy_weight are settings of learned methods, and {spec} is none")


def check_clip(clip: "Tensor") -> None:
    import torch

    what = "a clip is a float tensor (3, T, H, W) in [0, 1]"
    if not isinstance(clip, torch.Tensor):
        raise ValueError(f"{what}, got {type(clip).__name__}")
    if clip.ndim != 4 or clip.shape[0] != 3 or not clip.is_floating_point():
        raise ValueError(f"{what}, got {clip.dtype} {tuple(clip.shape)}")
    if clip.numel() and not 0 <= clip.min() <= clip.max() <= 1:
        raise ValueError(f"{what}, got values from {clip.min():g} to {clip.max():g}")
