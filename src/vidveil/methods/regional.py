"""A whole-frame method at work only where somebody is: inside the regions that were found on a frame.

Strengths are measured by the region, not by the frame, so that a near face is hidden as well as a far one. A frame that
nobody has searched does not pass: it becomes black.
"""

import math
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vidveil.core.anonymizer import Anonymized, Anonymizer, Chain, FrameMethod, check_clip, refuse_knobs
from vidveil.core.frame import Box, Frame, Plane, Region, SafeFrame
from vidveil.core.rotation import turn_of
from vidveil.methods.classical import Blur

if TYPE_CHECKING:
    from torch import Tensor

LOST = "somebody was lost from sight"
WIDEST = 2
"""A region that is more than so many times as wide as the picture is blurred as if it were not: the picture is one
colour by then, and a wider blur takes memory by the square of its width."""
FindRegions = Callable[["Tensor"], list[tuple[Region, ...]]]
"""A clip (3, T, H, W) → the regions of each of its frames."""


class InRegions(FrameMethod):
    """Paints the regions of some kinds (None: of all), and leaves the rest of the frame as it is."""

    def __init__(
        self, method: FrameMethod, kinds: Collection[str] | None = None, find_regions: FindRegions | None = None
    ) -> None:
        super().__init__(method.spec)
        self.method, self.kinds = method, kinds
        self._find_regions = find_regions
        self.weights = method.weights

    def hide(self, frame: Frame) -> SafeFrame:
        if frame.regions is None:
            return frame.black("was not searched")
        regions = [r for r in frame.regions if self.kinds is None or r.kind in self.kinds or r.box is None]
        if any(region.box is None for region in regions):
            return frame.black(LOST)
        turn = turn_of(frame)
        places = [(turn.stored(region.box), region.shape) for region in regions if region.box is not None]
        places.sort(key=lambda place: _area(place[0]))  # the largest last: it is the coarsest, and must not be undone

        def paint(source: Plane, target: Plane, shrink: int) -> None:
            np.copyto(target, source)
            for box, shape in places:
                self._fill(source, target, shrink, box, shape)

        return frame.paint(paint)

    def caution(self, short_side: int) -> str | None:
        """Mosaics and small pictures are coarse in a region, however fine they are in a frame; a weak blur is weak."""
        return self.method.caution(short_side) if isinstance(self.method, Blur) else None

    def warnings(self) -> list[str]:
        return self.method.warnings()

    def paint(self, source: Plane, target: Plane, shrink: int, /) -> None:
        raise NotImplementedError("a region is needed: see hide")

    def anonymize(
        self, clip: "Tensor", *, keep: float | None = None, privacy_weight: float | None = None
    ) -> Anonymized:
        """The clip is searched, and each frame's regions are painted."""
        import torch

        refuse_knobs(self.spec, keep, privacy_weight)
        check_clip(clip)
        if self._find_regions is None:
            raise ValueError("this method has nothing to search clips with: load it with a region")
        planes = (clip.detach().cpu() * 255).round().to(torch.uint8).contiguous().numpy()  # (3, T, H, W)
        painted, kept = planes.copy(), np.ones(planes.shape[1:], bool)
        for t, regions in enumerate(self._find_regions(clip)):
            for region in sorted(regions, key=lambda r: math.inf if r.box is None else _area(r.box)):
                if self.kinds is not None and region.kind not in self.kinds and region.box is not None:
                    continue
                for source, target in zip(planes[:, t], painted[:, t], strict=True):
                    if region.box is None:
                        target[:] = 0
                    else:
                        self._fill(source, target, 1, region.box, region.shape)
                kept[t] &= ~_mask(kept.shape[1:], region)
        video = torch.from_numpy(painted).to(clip.device, clip.dtype).div_(255)
        return Anonymized(video, mask=torch.from_numpy(kept).to(clip.device))

    def _fill(self, source: Plane, target: Plane, shrink: int, box: Box, shape: str) -> None:
        """Paint one box, or the ellipse in it, of a plane. The box may stick out over the edge."""
        height, width = source.shape
        x0, y0, x1, y1 = _whole_pixels(box, shrink)
        left, top, right, bottom = max(x0, 0), max(y0, 0), min(x1, width), min(y1, height)
        if left >= right or top >= bottom:
            return
        piece = np.ascontiguousarray(source[top:bottom, left:right])
        drawn = np.empty_like(piece)
        side = min(x1 - x0, y1 - y0, WIDEST * max(height, width))
        self.method.paint_region(piece, drawn, shrink, side)
        there = target[top:bottom, left:right]
        if shape == "ellipse":
            inside = ellipse(y1 - y0, x1 - x0, (top - y0, left - x0, bottom - y0, right - x0))
            np.copyto(there, drawn, where=inside)
        else:
            np.copyto(there, drawn)


def ellipse(height: int, width: int, part: tuple[int, int, int, int] | None = None) -> NDArray[np.bool_]:
    """The pixels that the ellipse in a box touches; of a part of the box: top, left, bottom, right."""
    top, left, bottom, right = part or (0, 0, height, width)
    y, x = np.ogrid[top:bottom, left:right]
    # of each pixel the corner nearest to the middle
    down = np.maximum(np.abs(y + 0.5 - height / 2) - 0.5, 0) / max(height / 2, 0.5)
    across = np.maximum(np.abs(x + 0.5 - width / 2) - 0.5, 0) / max(width / 2, 0.5)
    inside: NDArray[np.bool_] = down**2 + across**2 <= 1
    return inside


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _whole_pixels(box: Box, shrink: int) -> tuple[int, int, int, int]:
    """The pixels of a plane that a box touches, in pairs of luma pixels, so that luma and chroma cover the same."""
    x0, y0 = (int(v // 2) * 2 // shrink for v in box[:2])
    x1, y1 = (int(-(-v // 2)) * 2 // shrink for v in box[2:])
    return x0, y0, x1, y1


def _mask(shape: tuple[int, ...], region: Region) -> NDArray[np.bool_]:
    mask = np.zeros(shape, bool)
    if region.box is None:
        return ~mask
    x0, y0, x1, y1 = _whole_pixels(region.box, 1)
    top, left, bottom, right = max(y0, 0), max(x0, 0), min(y1, shape[0]), min(x1, shape[1])
    if top < bottom and left < right:
        part = (top - y0, left - x0, bottom - y0, right - x0)
        mask[top:bottom, left:right] = region.shape == "box" or ellipse(y1 - y0, x1 - x0, part)
    return mask


def paints(method: Anonymizer) -> bool:
    """Whether a region can say where this method works: at least one of its stages paints frames one by one, and what
    was found is still where it was."""
    stages = method.stages if isinstance(method, Chain) else (method,)
    return any(isinstance(stage, FrameMethod) for stage in stages) and not method.elsewhere


def in_regions(
    method: Anonymizer, kinds: Collection[str] | None, find_regions: FindRegions | None = None
) -> Anonymizer:
    """The method, with every stage of it that paints frames bound to regions."""
    if isinstance(method, Chain):
        stages = [InRegions(s, kinds, find_regions) if isinstance(s, FrameMethod) else s for s in method.stages]
        return Chain(stages)
    return InRegions(method, kinds, find_regions) if isinstance(method, FrameMethod) else method
