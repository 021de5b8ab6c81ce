"""Methods that change the whole frame: the baselines of every paper, and what people use today.

    downsample:N   each N × N pixels become their mean, drawn smoothly at the old size
    blur:S         Gaussian of σ = S of the frame's short side: weak 1/32, strong 1/16
    pixelate:N     mosaic of blocks of N × N pixels
    solid          black
    stride:N       every N-th frame, as it is
    motion:N       what changed since the frame before, in grey, in blocks of N × N pixels

All but the last two are averages within a plane, so they are painted on Y, U and V as stored, on 8-bit integers.
"""

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.errors import UsageError
from vidveil.methods.anonymizer import Anonymized, Anonymizer, FrameMethod, check_clip, refuse_knobs
from vidveil.video.frame import FULL_BLACK, LIMITED_BLACK, NEUTRAL, Frame, Plane, SafeFrame

if TYPE_CHECKING:
    from torch import Tensor

BLUR_STRENGTHS = {"weak": 1 / 32, "strong": 1 / 16}
"""σ as a share of the short side. At 112 pixels, σ = 3.5 and 7: the weak and strong blur of the papers' baselines."""
REGION_STRENGTHS = {"weak": 1 / 12, "strong": 1 / 6}
"""The same of a region that holds a face and its margin: what remains has three or six shades across."""
GAIN = 4  # of differences: most are small
NOISE = 6  # grey levels that are no motion: sensors and compression make them, along the edges of what stands still
CUT = 30  # grey levels by which all of a picture changes on the mean: another scene, or the light went on
SMALL = 32  # pixels a side of pictures that are compared as wholes
FLAT = 2.0  # grey levels: the deviation of a picture that shows nothing, such as black
ALIKE = 0.5  # correlation of two neighbouring frames, at least
ITSELF = 0.7  # correlation of a difference with the picture, at most: light that comes and goes shows what it lights
LUMA = (0.299, 0.587, 0.114)
REGION_BLOCKS = 6  # across a region, at most
FINE = 2.0  # pixels of σ, at least, when a wide blur is computed on a small picture: more changes nothing one can see


class Downsample(FrameMethod):
    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        self.factor = _whole(spec, argument, default=2, low=2, high=64)

    def caution(self, short_side: int) -> str | None:
        return _too_fine(self.spec, self.factor, short_side)

    def paint(self, source: Plane, target: Plane, shrink: int, /) -> None:  # noqa: ARG002
        _smooth(_shrunk(source, self.factor), target, self.factor)

    def paint_region(self, source: Plane, target: Plane, shrink: int, side: int, /) -> None:  # noqa: ARG002
        factor = max(self.factor, -(-side // REGION_BLOCKS))
        _smooth(_shrunk(source, factor), target, factor)


class Blur(FrameMethod):
    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        strength = argument or "strong"
        if strength not in BLUR_STRENGTHS:
            raise UsageError(f"{spec}: the strength of a blur is one of {', '.join(BLUR_STRENGTHS)}")
        self.share, self.region_share = BLUR_STRENGTHS[strength], REGION_STRENGTHS[strength]

    def caution(self, short_side: int) -> str | None:  # noqa: ARG002
        weak = self.share < BLUR_STRENGTHS["strong"]
        return f"{self.spec} is weak: people may be recognised by eye; blur:strong hides more" if weak else None

    def paint(self, source: Plane, target: Plane, shrink: int, /) -> None:  # noqa: ARG002
        self._blur(source, target, self.share * min(source.shape))

    def paint_region(self, source: Plane, target: Plane, shrink: int, side: int, /) -> None:  # noqa: ARG002
        self._blur(source, target, self.region_share * side)

    @staticmethod
    def _blur(source: Plane, target: Plane, sigma: float) -> None:
        sigma = max(0.8, sigma)
        factor = 1 << max(0, int(math.log2(sigma / FINE)))
        small = _shrunk(source, factor)
        # Averaging and enlarging blur a little by themselves: together by a variance of about factor²/6.
        rest = math.sqrt(sigma**2 - (factor**2 - 1) / 6) / factor
        small = cast(Plane, cv2.GaussianBlur(small, (0, 0), rest, borderType=cv2.BORDER_REPLICATE))
        _smooth(small, target, factor)


class Pixelate(FrameMethod):
    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        self.block = _whole(spec, argument, default=16, low=2, high=4096)
        if self.block % 2:
            raise UsageError(f"{spec}: the block must be even, since video stores one colour for 2 × 2 pixels")

    def caution(self, short_side: int) -> str | None:
        return _too_fine(self.spec, self.block, short_side)

    def paint(self, source: Plane, target: Plane, shrink: int, /) -> None:
        block = self.block // shrink
        _tiles(_shrunk(source, block), target, block)

    def paint_region(self, source: Plane, target: Plane, shrink: int, side: int, /) -> None:
        block = max(self.block // shrink, -(-side // REGION_BLOCKS))
        _tiles(_shrunk(source, block), target, block)


class Solid(FrameMethod):
    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        _no_argument(spec, argument)

    def hide(self, frame: Frame) -> SafeFrame:
        return frame.black(None)

    def paint(self, source: Plane, target: Plane, shrink: int, /) -> None:  # noqa: ARG002
        target[:] = 0

    def paint_region(self, source: Plane, target: Plane, shrink: int, side: int, /) -> None:  # noqa: ARG002
        target[:] = NEUTRAL if shrink == 2 else 0


class Stride(Anonymizer):
    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        self.step = _whole(spec, argument, default=5, low=1, high=100_000)

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


class Motion(Anonymizer):
    """Y = 4 · max(|Yₜ − Yₜ₋₁| − 6, 0), without colour: what stands still is black, whatever it looks like.

    There is nothing to compare with at the beginning, after a gap or a lost frame, and at a cut: such frames are black.
    """

    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        self.block = _whole(spec, argument, default=1, low=1, high=4096)

    def caution(self, short_side: int) -> str | None:
        return _too_fine(self.spec, self.block, short_side)

    def stream(self, frames: Iterable[Frame]) -> Iterator[SafeFrame]:
        before: Plane | None = None
        for frame in frames:
            if frame.picture is None or (isinstance(frame, SafeFrame) and frame.hidden is not None):
                before = None
                yield _kept(frame)
                continue
            luma = frame.planes[0].copy()
            with_it = None if frame.after_gap else before
            before = luma
            try:
                yield self._painted(frame, self._changed(luma, with_it))
            except Exception as error:  # whatever it was: this frame must not pass
                yield frame.black(f"could not be anonymized ({type(error).__name__})")

    def _painted(self, frame: Frame, changed: Plane | None) -> SafeFrame:
        if changed is None:
            return frame.black(None)
        dark, bright = (FULL_BLACK, 255) if frame.full_range else (LIMITED_BLACK, 235)

        def paint(source: Plane, target: Plane, shrink: int, /) -> None:  # noqa: ARG001
            target[:] = NEUTRAL if shrink == 2 else np.minimum(dark + GAIN * changed.astype(np.int32), bright)

        return frame.paint(paint)

    def _changed(self, luma: Plane, before: Plane | None) -> Plane | None:
        """By how many grey levels more than noise each block has changed; None if there is nothing to compare with."""
        if before is None or before.shape != luma.shape:
            return None
        changed = cast(Plane, cv2.absdiff(luma, before))
        if _tells_more_than_motion(luma, before, changed):
            return None
        blocks = np.empty_like(luma)
        _tiles(_shrunk(cast(Plane, cv2.subtract(changed, NOISE)), self.block), blocks, self.block)  # type: ignore[call-overload]
        return blocks

    def anonymize(
        self, clip: "Tensor", *, keep: float | None = None, privacy_weight: float | None = None
    ) -> Anonymized:
        import torch

        refuse_knobs(self.spec, keep, privacy_weight)
        check_clip(clip)
        luma = torch.einsum("cthw,c->thw", clip.detach().cpu().float() * 255, torch.tensor(LUMA))
        planes = luma.round().clamp(max=255).to(torch.uint8).contiguous().numpy()
        shown = np.zeros_like(planes)
        for number in range(1, len(planes)):
            if (changed := self._changed(planes[number], planes[number - 1])) is not None:
                shown[number] = np.minimum(GAIN * changed.astype(np.int32), 255)
        grey = torch.from_numpy(shown).to(clip.device, clip.dtype).div_(255)
        return Anonymized(grey.expand(3, -1, -1, -1).contiguous())


def _tells_more_than_motion(luma: Plane, before: Plane, changed: Plane) -> bool:
    """Whether a difference is a picture of its own: of two scenes at once, or of one that comes out of the dark."""
    if changed.mean() > CUT:
        return True
    small = [
        cv2.resize(plane, (SMALL, SMALL), interpolation=cv2.INTER_AREA).astype(np.float64).ravel()
        for plane in (luma, before, changed)
    ]
    now, then, difference = (plane - plane.mean() for plane in small)
    if min(now.std(), then.std()) < FLAT:
        return True
    return _cosine(now, then) < ALIKE or max(_cosine(difference, now), _cosine(difference, then)) > ITSELF


def _cosine(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(one @ other / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-9))


def _kept(frame: Frame) -> SafeFrame:
    if isinstance(frame, SafeFrame):
        return frame
    return frame.black(frame.lost) if frame.picture is None else frame.as_it_is()


def _shrunk(source: Plane, factor: int) -> Plane:
    """Means of blocks of factor × factor pixels. Blocks that stick out over the edge see its last pixels repeated."""
    height, width = source.shape
    right, bottom = -width % factor, -height % factor
    if right or bottom:
        source = cast(Plane, cv2.copyMakeBorder(source, 0, bottom, 0, right, cv2.BORDER_REPLICATE))
    while factor % 2 == 0:  # OpenCV halves ten times faster than it divides by anything else
        source, factor = _divided(source, 2), factor // 2
    return source if factor == 1 else _divided(source, factor)


def _divided(source: Plane, factor: int) -> Plane:
    size = (source.shape[1] // factor, source.shape[0] // factor)
    return cast(Plane, cv2.resize(source, size, interpolation=cv2.INTER_AREA))


def _smooth(small: Plane, target: Plane, factor: int) -> None:
    """Draw a small picture at full size without edges between its pixels, and leave off what sticks out."""
    height, width = small.shape[0] * factor, small.shape[1] * factor
    if target.shape == (height, width):
        drawn = cv2.resize(small, (width, height), dst=target, interpolation=cv2.INTER_LINEAR)
        if np.shares_memory(drawn, target):  # OpenCV may allocate instead of filling
            return
    else:
        drawn = cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR)
    np.copyto(target, cast(Plane, drawn)[: target.shape[0], : target.shape[1]])


def _tiles(small: Plane, target: Plane, factor: int) -> None:
    """Draw each pixel of a small picture as a block, and leave off what sticks out."""
    height, width = target.shape
    wide = small.repeat(factor, 1)[:, :width]
    whole = height // factor
    np.copyto(target[: whole * factor].reshape(whole, factor, width), wide[:whole, None])
    target[whole * factor :] = wide[whole:]


def _too_fine(spec: str, block: int, short_side: int) -> str | None:
    """A face as high as a quarter of the frame must not keep more than 8 × 8 blocks."""
    least = math.ceil(short_side / 32 / 2) * 2
    if block >= least:
        return None
    return f"{spec} is weak on pictures of this size: people may be recognised by eye; N = {least} or more hides them"


def _whole(spec: str, argument: str | None, *, default: int, low: int, high: int) -> int:
    if argument is None:
        return default
    if not argument.isascii() or not argument.isdigit() or not low <= int(argument) <= high:
        raise UsageError(f"{spec}: a whole number from {low} to {high} is expected after the colon")
    return int(argument)


def _no_argument(spec: str, argument: str | None) -> None:
    if argument is not None:
        raise UsageError(f"{spec}: takes nothing after a colon")
