"""Methods that change the whole frame: the baselines of every paper, and what people use today.

    downsample:N   each N × N pixels become their mean, drawn smoothly at the old size
    blur:S         Gaussian of σ = S of the frame's short side: weak 1/32, strong 1/16
    pixelate:N     mosaic of blocks of about N pixels
    solid          black
    stride:N       every N-th frame, as it is

All but `stride` are averages within a plane, so they are painted on Y, U and V as stored, on 8-bit integers.
"""

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

import cv2
import numpy as np

from vidveil.errors import UsageError
from vidveil.methods.anonymizer import Anonymized, Anonymizer, FrameMethod, check_clip, refuse_knobs
from vidveil.video.frame import Frame, Plane, SafeFrame

if TYPE_CHECKING:
    from torch import Tensor

BLUR_STRENGTHS = {"weak": 1 / 32, "strong": 1 / 16}
"""σ as a share of the short side. At 112 pixels, σ = 3.5 and 7: the weak and strong blur of the papers' baselines."""
FINE = 3.0  # pixels of σ that remain when a wide blur is computed on a small picture; more changes nothing one can see


class Downsample(FrameMethod):
    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        self.factor = _whole(spec, argument, default=2, low=2, high=64)

    def paint(self, source: Plane, target: Plane, shrink: int, /) -> None:  # noqa: ARG002
        height, width = source.shape
        small = _shrunk(source, math.ceil(width / self.factor), math.ceil(height / self.factor))
        _enlarge(small, target, cv2.INTER_LINEAR)


class Blur(FrameMethod):
    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        strength = argument or "strong"
        if strength not in BLUR_STRENGTHS:
            raise UsageError(f"{spec}: the strength of a blur is one of {', '.join(BLUR_STRENGTHS)}")
        self.share = BLUR_STRENGTHS[strength]

    def paint(self, source: Plane, target: Plane, shrink: int, /) -> None:  # noqa: ARG002
        height, width = source.shape
        sigma = max(0.8, self.share * min(height, width))
        factor = max(1, int(sigma / FINE))
        small = _shrunk(source, math.ceil(width / factor), math.ceil(height / factor)) if factor > 1 else source
        # Averaging and enlarging blur a little by themselves: each adds about factor²/12 of variance.
        rest = math.sqrt(max(sigma**2 - (factor**2 - 1) / 6, 0.01)) / factor
        small = cast(Plane, cv2.GaussianBlur(small, (0, 0), rest, borderType=cv2.BORDER_REPLICATE))
        _enlarge(small, target, cv2.INTER_LINEAR)


class Pixelate(FrameMethod):
    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        self.block = _whole(spec, argument, default=16, low=2, high=4096)

    def paint(self, source: Plane, target: Plane, shrink: int, /) -> None:
        height, width = source.shape
        columns, rows = (max(1, round(side * shrink / self.block)) for side in (width, height))
        small = _shrunk(source, min(columns, width), min(rows, height))
        _enlarge(small, target, cv2.INTER_NEAREST)


class Solid(FrameMethod):
    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        _no_argument(spec, argument)

    def hide(self, frame: Frame) -> SafeFrame:
        return frame.black(None)

    def paint(self, source: Plane, target: Plane, shrink: int, /) -> None:  # noqa: ARG002
        target[:] = 0


class Stride(Anonymizer):
    hides = False

    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        self.step = _whole(spec, argument, default=5, low=1, high=100_000)

    def stream(self, frames: Iterable[Frame]) -> Iterator[SafeFrame]:
        kept: SafeFrame | None = None
        for frame in frames:
            if frame.index % self.step == 0:
                if kept is not None:
                    yield kept
                kept = _kept(frame)
            elif kept is not None:
                kept.duration += frame.duration  # the kept picture stays on until the next one
        if kept is not None:
            yield kept

    def anonymize(
        self, clip: "Tensor", *, keep: float | None = None, privacy_weight: float | None = None
    ) -> Anonymized:
        """A clip keeps its length: each kept frame stands until the next."""
        import torch

        refuse_knobs(self.spec, keep, privacy_weight)
        check_clip(clip)
        times = torch.arange(clip.shape[1], device=clip.device)
        return Anonymized(clip[:, times - times % self.step])


def _kept(frame: Frame) -> SafeFrame:
    if isinstance(frame, SafeFrame):
        return frame
    return frame.black(frame.lost) if frame.picture is None else frame.as_it_is()


def _shrunk(source: Plane, width: int, height: int) -> Plane:
    return cast(Plane, cv2.resize(source, (width, height), interpolation=cv2.INTER_AREA))


def _enlarge(small: Plane, target: Plane, how: int) -> None:
    height, width = target.shape
    drawn = cv2.resize(small, (width, height), dst=target, interpolation=how)
    if drawn is not target and not np.shares_memory(drawn, target):  # OpenCV may allocate instead of filling
        np.copyto(target, drawn)


def _whole(spec: str, argument: str | None, *, default: int, low: int, high: int) -> int:
    if argument is None:
        return default
    if not argument.isascii() or not argument.isdigit() or not low <= int(argument) <= high:
        raise UsageError(f"{spec}: a whole number from {low} to {high} is expected after the colon")
    return int(argument)


def _no_argument(spec: str, argument: str | None) -> None:
    if argument is not None:
        raise UsageError(f"{spec}: takes nothing after a colon")
