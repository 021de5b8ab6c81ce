"""One frame of a video, and the type that says whether it may be shown.

A `Frame` comes from the reader and is raw. A `SafeFrame` comes out of an anonymizer. The writer takes `SafeFrame`
alone, so a raw picture cannot reach a file by mistake: type checkers refuse it, and so does the writer.

Pictures are 8-bit YUV 4:2:0, the layout in which nearly all video is stored and H.264 is written. Working on its three
planes saves two colour conversions and half of the values.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # methods work on clips where PyAV is not installed
    import av

Plane = NDArray[np.uint8]
Painter = Callable[[Plane, Plane, int], None]
"""(source, target, shrink): fills `target` from `source`; `shrink` is 1 for luma, 2 for the half-size chroma planes."""

LIMITED_BLACK, FULL_BLACK, NEUTRAL = 16, 0, 128
FULL_RANGE = 2  # AVCOL_RANGE_JPEG
Box = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels; right and bottom are exclusive."""
COLOURS = ("colorspace", "color_range", "color_trc", "color_primaries")


def plane_views(picture: "av.VideoFrame", width: int, height: int) -> tuple[Plane, Plane, Plane]:
    """The Y, U and V planes of a yuv420p picture as arrays on its own memory, cut to a picture of width × height."""
    y, u, v = (np.frombuffer(p, np.uint8).reshape(-1, p.line_size) for p in picture.planes)  # type: ignore[call-overload]
    w, h = (width + 1) // 2, (height + 1) // 2
    return y[:height, :width], u[:h, :w], v[:h, :w]


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A place in a picture where somebody is, to be hidden."""

    box: Box | None
    """On the upright picture, as it is shown. None: the whole frame, because the place is unknown."""
    shape: str = "box"
    """`box`, or the `ellipse` in it."""
    kind: str
    """What was searched for: `faces`, `people`, or the name of a user's own detector."""
    track: int
    """Number of the track: the same in all frames of one person's path through the video."""
    score: float
    """Confidence of the detector, 0 to 1; 0 where nothing was detected in this frame."""
    source: str
    """How the box came about: see docs/detection.md."""


@dataclass(frozen=True, slots=True)
class CellScores:
    """A learned method's mask and ranking of the cells of a picture, as the source stores it."""

    kept: NDArray[np.bool_]
    """(h, w)"""
    worth: NDArray[np.float32]
    """(h, w): the share of the tubelets of its clip that would be hidden before this one."""
    under: "SafeFrame | None" = None
    """The network's input, where that was not the source."""


@dataclass(slots=True, kw_only=True)
class Frame:
    """A decoded picture that is not anonymized yet."""

    index: int
    """Position in the source, from 0, counting lost frames."""
    pts: int
    """Presentation time in the source's time base, strictly increasing."""
    duration: int
    width: int
    height: int
    full_range: bool = False
    picture: "av.VideoFrame | None" = field(default=None, repr=False)
    """yuv420p; None if the picture could not be decoded."""
    lost: str | None = None
    """Why there is no picture."""
    seconds: float = 0.0
    """When it is shown, on the output's clock."""
    matrix: tuple[int, ...] | None = None
    """How the picture must be turned to be upright: the source's display matrix."""
    regions: tuple[Region, ...] | None = None
    """Where somebody is; None as long as the frame was not searched."""
    heat: CellScores | None = field(default=None, repr=False)
    """What a learned method based its mask on."""
    drawn: NDArray[np.uint8] | None = field(default=None, repr=False)
    """(H, W, 3) RGB as a network drew it, exactly: `picture` has half of the colour resolution."""
    blank: bool = False
    """Whether it is black because a method that compares frames had none to compare with."""
    everywhere: bool = False
    """Whether such a method found motion all over the picture, as when the camera moves."""
    after_gap: bool = False
    """Whether this is the first frame after an outage of a live source: tracking must restart."""

    @property
    def planes(self) -> tuple[Plane, Plane, Plane]:
        if self.picture is None:
            raise ValueError(f"frame {self.index} has no picture: {self.lost}")
        return plane_views(self.picture, self.width, self.height)

    def rgb(self) -> NDArray[np.uint8]:
        """(H, W, 3), as stored: a rotation tag is not applied."""
        if self.drawn is not None:
            return self.drawn.copy()
        if self.picture is None:
            raise ValueError(f"frame {self.index} has no picture: {self.lost}")
        array: NDArray[np.uint8] = self.picture.to_ndarray(format="rgb24")[: self.height, : self.width]  # type: ignore[assignment]
        return array

    def paint(self, painter: Painter) -> "SafeFrame":
        """A new picture, each plane filled by `painter`; it holds nothing else of the old one."""
        picture = self._canvas()
        targets = plane_views(picture, self.width, self.height)
        for shrink, source, target in zip((1, 2, 2), self.planes, targets, strict=True):
            painter(source, target, shrink)
        return self._safe(picture)

    def black(self, why: str | None) -> "SafeFrame":
        """A black picture in place of this one. `why` is recorded; None if the method draws black on purpose."""
        picture = self._canvas()
        y, u, v = plane_views(picture, self.width, self.height)
        y[:] = FULL_BLACK if self.full_range else LIMITED_BLACK
        u[:] = NEUTRAL
        v[:] = NEUTRAL
        return self._safe(picture, hidden=why)

    def instead(self, width: int, height: int) -> "Frame":
        """A frame without a picture yet, upright and of another size, with the index and time of this one."""
        return Frame(
            index=self.index,
            pts=self.pts,
            duration=self.duration,
            width=width,
            height=height,
            full_range=self.full_range,
            seconds=self.seconds,
            blank=self.blank,
            everywhere=self.everywhere,
            after_gap=self.after_gap,
        )

    def as_it_is(self) -> "SafeFrame":
        """The picture unchanged: only for methods that do not change pictures and say so to the user."""
        return self.paint(lambda source, target, _: np.copyto(target, source))

    def _canvas(self) -> "av.VideoFrame":
        import av

        # H.264 in 4:2:0 has even sides only. Chroma planes of odd pictures are rounded up anyway; luma is padded below.
        return av.VideoFrame(self.width + self.width % 2, self.height + self.height % 2, "yuv420p")

    def _safe(self, picture: "av.VideoFrame", hidden: str | None = None) -> "SafeFrame":
        if self.width % 2 or self.height % 2:
            y, _, _ = plane_views(picture, picture.width, picture.height)
            y[:, self.width :] = y[:, self.width - 1 : self.width]
            y[self.height :] = y[self.height - 1 : self.height]
        if self.picture is not None:
            for name in COLOURS:
                setattr(picture, name, getattr(self.picture, name))
        return SafeFrame(
            index=self.index,
            pts=self.pts,
            duration=self.duration,
            width=self.width,
            height=self.height,
            full_range=self.full_range,
            picture=picture,
            seconds=self.seconds,
            matrix=self.matrix,
            regions=self.regions,
            heat=self.heat,
            blank=self.blank,
            everywhere=self.everywhere,
            after_gap=self.after_gap,
            hidden=hidden,
        )


@dataclass(slots=True, kw_only=True)
class SafeFrame(Frame):
    """A picture that an anonymizer made. Its `picture` has even sides."""

    hidden: str | None = None
    """Why the whole frame is black, where that was a failure and not the method's output."""
