"""Motion alone: what stands still is black, whatever it looks like.

    motion:N    D = max(|Yₜ − Yₜ₋₁| − 6, 0), the mean of each N × N pixels, four times as bright, without colour

There is nothing to compare with at the beginning, after a gap or a lost frame, and at a cut: such frames are black.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.anonymizer import Anonymized, Anonymizer, check_clip, refuse_knobs
from vidveil.core.frame import FULL_BLACK, LIMITED_BLACK, NEUTRAL, Frame, Plane, SafeFrame
from vidveil.methods.arguments import whole_number
from vidveil.methods.blocks import shrunk, tiles, too_fine

if TYPE_CHECKING:
    from torch import Tensor

GAIN = 4  # of differences: most are small
NOISE = 6  # grey levels that are no motion: sensors and compression make them, along the edges of what stands still
CUT = 30  # grey levels by which all of a picture changes on the mean: another scene, or the light went on
SMALL = 32  # pixels a side of pictures that are compared as wholes
FLAT = 2.0  # grey levels: the deviation of a picture that shows nothing, such as black
ALIKE = 0.5  # correlation of two neighbouring frames, at least
ITSELF = 0.7  # correlation of a difference with the picture, at most: light that comes and goes shows what it lights
LOOKED_AT = 128  # pixels of the short side, about, on which is decided whether all of a picture moves
MANY = 0.05  # of these: fewer that move are people, or noise
ALL_OVER = 0.2  # of a side: the deviation, both ways, of where something moves. All of a side has 0.29
LUMA = (0.299, 0.587, 0.114)

T = TypeVar("T")
Draw = Callable[[], Plane]
"""Makes what is shown of a frame, in grey levels from 0 to 255 at its full size."""


class MotionMethod(Anonymizer):
    """A method that shows something of how frames differ from those before them, and nothing else of them."""

    relative = False
    """Whether it draws shares of 255, whatever the range of the source; else differences of the source's own levels."""

    @abstractmethod
    def drawn(self, changes: Iterable[tuple[T, Plane | None]]) -> Iterator[tuple[T, Draw | None]]:
        """In the same order: of each frame, given how it differs (`changed`), what is shown of it. None is black."""

    def stream(self, frames: Iterable[Frame]) -> Iterator[SafeFrame]:
        for (frame, why, everywhere), draw in self.drawn(_compared(frames)):
            if draw is None:
                if isinstance(frame, SafeFrame) and frame.hidden is not None:
                    yield frame  # black already, from an earlier stage
                    continue
                black = frame.black(why)
                black.blank = why is None
                yield black
                continue
            try:
                safe = self._painted(frame, draw())
                safe.everywhere = everywhere
                yield safe
            except Exception as error:  # whatever it was: this frame must not pass
                yield frame.black(_failure(error))

    def _painted(self, frame: Frame, grey: Plane) -> SafeFrame:
        dark, bright = (FULL_BLACK, 255) if frame.full_range else (LIMITED_BLACK, 235)
        shares = (bright - dark) / 255 if self.relative else 1

        def paint(source: Plane, target: Plane, shrink: int, /) -> None:  # noqa: ARG001
            target[:] = NEUTRAL if shrink == 2 else np.minimum(dark + shares * grey.astype(np.float32), bright)

        return frame.paint(paint)

    def anonymize(
        self, clip: "Tensor", *, keep: float | None = None, privacy_weight: float | None = None
    ) -> Anonymized:
        import torch

        refuse_knobs(self.spec, keep, privacy_weight)
        check_clip(clip)
        luma = torch.einsum("cthw,c->thw", clip.detach().cpu().float() * 255, torch.tensor(LUMA))
        planes = luma.round().clamp(max=255).to(torch.uint8).contiguous().numpy()
        shown = np.zeros_like(planes)
        changes = ((i, changed(plane, planes[i - 1]) if i else None) for i, plane in enumerate(planes))
        for i, draw in self.drawn(changes):
            if draw is not None:
                shown[i] = draw()
        grey = torch.from_numpy(shown).to(clip.device, clip.dtype).div_(255)
        return Anonymized(grey.expand(3, -1, -1, -1).contiguous())


class Motion(MotionMethod):
    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        self.block = whole_number(spec, argument, default=1, low=1, high=4096)

    def caution(self, short_side: int) -> str | None:
        return too_fine(self.spec, self.block, short_side)

    def drawn(self, changes: Iterable[tuple[T, Plane | None]]) -> Iterator[tuple[T, Draw | None]]:
        for frame, change in changes:
            yield frame, None if change is None else partial(self._blocks, change)

    def _blocks(self, change: Plane) -> Plane:
        blocks = np.empty_like(change)
        tiles(shrunk(change, self.block), blocks, self.block)
        return np.minimum(GAIN * blocks.astype(np.int32), 255).astype(np.uint8)


def changed(luma: Plane, before: Plane) -> Plane | None:
    """By how many grey levels more than noise each pixel differs; None if the two cannot be compared."""
    if before.shape != luma.shape:
        return None
    difference = cast(Plane, cv2.absdiff(luma, before))
    if _tells_more_than_motion(luma, before, difference):
        return None
    return cast(Plane, cv2.subtract(difference, NOISE))  # type: ignore[call-overload]


def moves_everywhere(change: Plane) -> bool:
    """Whether what moves lies all over the picture: then it is the camera, or something that fills the picture."""
    step = max(1, min(change.shape) // LOOKED_AT)
    moved = change[::step, ::step] > 0
    if moved.mean() < MANY:
        return False
    for axis in (0, 1):
        counts = moved.sum(axis=1 - axis)
        where = (np.arange(len(counts)) + 0.5) / len(counts)
        middle = np.average(where, weights=counts)
        if np.average((where - middle) ** 2, weights=counts) < ALL_OVER**2:
            return False
    return True


def _compared(frames: Iterable[Frame]) -> Iterator[tuple[tuple[Frame, str | None, bool], Plane | None]]:
    """Each frame, with why there is nothing of it if that was a failure, whether all of it moves, and how it differs
    from the one before."""
    before: Plane | None = None
    for frame in frames:
        change, why, everywhere = None, None, False
        if frame.picture is None or (isinstance(frame, SafeFrame) and frame.hidden is not None):
            before, why = None, frame.lost or "had no picture"
        else:
            luma = frame.planes[0].copy()
            try:
                found = None if before is None or frame.after_gap else changed(luma, before)
                everywhere = found is not None and moves_everywhere(found)
                change = found
            except Exception as error:  # whatever it was: this frame must not pass
                why = _failure(error)
            before = luma
        yield (frame, why, everywhere), change


def _failure(error: Exception) -> str:
    return f"could not be anonymized ({type(error).__name__})"


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
