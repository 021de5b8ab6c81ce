"""Methods that change the whole frame: the baselines of every paper, and what people use today.

    downsample:N   each N × N pixels become their mean, drawn smoothly at the old size
    blur:N         Gaussian of σ = an N-th of the frame's short side: weak is 32, strong 16
    pixelate:N     mosaic of blocks of N × N pixels
    solid          black
    stride:N       every N-th frame, as it is

All but the last are averages within a plane, so they are painted on Y, U and V as stored, on 8-bit integers.
"""

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

import cv2

from vidveil.core.anonymizer import Anonymized, Anonymizer, FrameMethod, check_clip, refuse_knobs
from vidveil.core.errors import UsageError
from vidveil.core.frame import NEUTRAL, Frame, Plane, SafeFrame
from vidveil.methods.arguments import no_argument, whole_number
from vidveil.methods.blocks import shrunk, smooth, tiles, too_fine

if TYPE_CHECKING:
    from torch import Tensor

BLUR_STRENGTHS = {"weak": 32, "strong": 16}
"""The short side in σ. At 112 pixels, σ = 3.5 and 7: the weak and strong blur of the papers' baselines."""
REGION_BLUR = 8 / 3
"""σ of a region that holds a face and its margin, as a share of its short side, against that of a frame: of strong and
weak blur, what remains has three or six shades across."""
REGION_BLOCKS = 6  # across a region, at most
FINE = 2.0  # pixels of σ, at least, when a wide blur is computed on a small picture: more changes nothing one can see


class Downsample(FrameMethod):
    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        self.factor = whole_number(spec, argument, default=2, low=2, high=64)

    def caution(self, short_side: int) -> str | None:
        return too_fine(self.spec, self.factor, short_side)

    def paint(self, source: Plane, target: Plane, shrink: int, /) -> None:  # noqa: ARG002
        smooth(shrunk(source, self.factor), target, self.factor)

    def paint_region(self, source: Plane, target: Plane, shrink: int, side: int, /) -> None:  # noqa: ARG002
        factor = max(self.factor, -(-side // REGION_BLOCKS))
        smooth(shrunk(source, factor), target, factor)


class Blur(FrameMethod):
    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        named = BLUR_STRENGTHS.get(argument or "strong")
        try:
            sigmas = named or whole_number(spec, argument, default=0, low=2, high=64)
        except UsageError as error:
            raise UsageError(f"{error}, the short side in σ; or {' or '.join(BLUR_STRENGTHS)}") from None
        self.share = 1 / sigmas
        self.region_share = REGION_BLUR * self.share

    def caution(self, short_side: int) -> str | None:  # noqa: ARG002
        weak = self.share < 1 / BLUR_STRENGTHS["strong"]
        return f"{self.spec} is weak: people may be recognised by eye; blur:strong hides more" if weak else None

    def paint(self, source: Plane, target: Plane, shrink: int, /) -> None:  # noqa: ARG002
        self._blur(source, target, self.share * min(source.shape))

    def paint_region(self, source: Plane, target: Plane, shrink: int, side: int, /) -> None:  # noqa: ARG002
        self._blur(source, target, self.region_share * side)

    @staticmethod
    def _blur(source: Plane, target: Plane, sigma: float) -> None:
        sigma = max(0.8, sigma)
        factor = 1 << max(0, int(math.log2(sigma / FINE)))
        small = shrunk(source, factor)
        # Averaging and enlarging blur a little by themselves: together by a variance of about factor²/6.
        rest = math.sqrt(sigma**2 - (factor**2 - 1) / 6) / factor
        small = cast(Plane, cv2.GaussianBlur(small, (0, 0), rest, borderType=cv2.BORDER_REPLICATE))
        smooth(small, target, factor)


class Pixelate(FrameMethod):
    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        self.block = whole_number(spec, argument, default=16, low=2, high=4096)
        if self.block % 2:
            raise UsageError(f"{spec}: the block must be even, since video stores one colour for 2 × 2 pixels")

    def caution(self, short_side: int) -> str | None:
        return too_fine(self.spec, self.block, short_side)

    def paint(self, source: Plane, target: Plane, shrink: int, /) -> None:
        block = self.block // shrink
        tiles(shrunk(source, block), target, block)

    def paint_region(self, source: Plane, target: Plane, shrink: int, side: int, /) -> None:
        block = max(self.block // shrink, -(-side // REGION_BLOCKS))
        tiles(shrunk(source, block), target, block)


class Solid(FrameMethod):
    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        no_argument(spec, argument)

    def hide(self, frame: Frame) -> SafeFrame:
        return frame.black(None)

    def paint(self, source: Plane, target: Plane, shrink: int, /) -> None:  # noqa: ARG002
        target[:] = 0

    def paint_region(self, source: Plane, target: Plane, shrink: int, side: int, /) -> None:  # noqa: ARG002
        target[:] = NEUTRAL if shrink == 2 else 0


class Stride(Anonymizer):
    unchanged = True

    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        self.step = whole_number(spec, argument, default=5, low=1, high=100_000)

    def caution(self, short_side: int) -> str | None:  # noqa: ARG002
        return f"{self.spec} alone leaves the pictures as they are: people in them can be recognised"

    def keeps(self, index: int) -> bool:
        return index % self.step == 0

    def stream(self, frames: Iterable[Frame]) -> Iterator[SafeFrame]:
        kept: SafeFrame | None = None
        gap = False
        for frame in frames:
            gap |= frame.after_gap
            if self.keeps(frame.index):
                if kept is not None:
                    yield kept
                kept = _kept(frame)
                kept.after_gap, gap = gap, False  # also where the first one after it was left out
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
