"""Films with heads whose places are known exactly, and a detector that knows nothing but colours.

A head is a disc under a checkerboard of single pixels: where that shows in an output, the head was not hidden. Its hue
says what the detector makes of it:

    MAGENTA, RED     found; two hues, so that two heads that touch stay two
    BLUE             found with a score that continues a track, but begins none
    GREEN            not found: a head that turned away
    YELLOW           the detector breaks
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.frame import Frame, plane_views
from vidveil.detect.detections import Cells
from vidveil.detect.detectors import Detector
from vidveil.detect.onnx_network import Network

Luma = NDArray[np.uint8]
Way = Callable[[float], tuple[float, float] | None]
MAGENTA, RED, BLUE, GREEN, YELLOW = (190, 200), (110, 220), (220, 110), (70, 70), (40, 150)
DETAIL = 60  # the checkerboard's brightness, above and below 128
RATE = 25


@dataclass(frozen=True)
class Head:
    way: Way
    """The middle at a time; None while it is not there."""
    hue: Callable[[float], tuple[int, int]] = lambda _: MAGENTA
    radius: float = 14.0


@dataclass(frozen=True)
class Shot:
    heads: Sequence[Head] = ()
    frames: int = 50
    light: int = 110
    """Mean brightness; a difference of 25 between shots is a cut."""
    pole: tuple[int, int] | None = None
    """Left and right of what stands in front of everybody."""
    flashes: Sequence[int] = ()
    """Frames of the film that are overexposed."""


@dataclass(kw_only=True)
class Film:
    shots: Sequence[Shot]
    rate: int = RATE
    width: int = 240
    height: int = 160
    ticks: Sequence[int] | None = None
    """Milliseconds at which the frames are shown; otherwise `rate` says."""
    matrix: tuple[int, ...] | None = None
    """Display matrix; the pictures are stored so that it brings them upright."""
    broken: Sequence[int] = ()
    """Frames that cannot be decoded."""
    path: Path | None = field(default=None, init=False)

    @property
    def seconds(self) -> list[float]:
        count = sum(shot.frames for shot in self.shots)
        return [t / 1000 for t in self.ticks] if self.ticks is not None else [i / self.rate for i in range(count)]

    @cached_property
    def upright(self) -> list[tuple[Luma, Luma, Luma]]:
        """The planes of each frame as it is shown."""
        return [self._drawn(i, shot, t) for i, (shot, t) in enumerate(self._plan())]

    def truth(self) -> list[list[NDArray[np.bool_]]]:
        """Of each frame and each head in it: the pixels that show it, (H, W), less a margin of two."""
        masks = []
        for shot, t in self._plan():
            front = self._pole(shot)
            of_frame = []
            for head in reversed(shot.heads):  # from front to back
                disc = self._disc(head, t)
                seen = disc & ~front
                front |= disc
                of_frame.append(cv2.erode(seen.astype(np.uint8), np.ones((5, 5), np.uint8)).astype(bool))
            masks.append(of_frame[::-1])
        return masks

    def frames(self) -> Iterator[Frame]:
        """As a reader would give them."""
        for frame in self._taken():
            if frame.index in self.broken:
                frame.picture, frame.lost = None, "could not be decoded"
            yield frame

    def _taken(self) -> Iterator[Frame]:
        for i, (planes, t) in enumerate(zip(self.upright, self.seconds, strict=True)):
            stored = [stored_as(plane, self.matrix) for plane in planes]
            yield frame_of(stored, index=i, seconds=t, matrix=self.matrix)

    def make(self, path: Path) -> Path:
        self.path = path
        with av.open(str(path), "w") as output:
            options = {"preset": "ultrafast", "crf": "6", "g": "1" if self.broken else "25"}
            video = output.add_stream("libx264", rate=self.rate, options=options)
            base = Fraction(1, 1000) if self.ticks is not None else Fraction(1, self.rate)
            video.time_base = video.codec_context.time_base = base
            if self.matrix is not None:
                video.set_display_matrix(self.matrix)
            at = 0
            for i, frame in enumerate(self._taken()):
                picture = _exact(frame)
                if i == 0:
                    video.width, video.height, video.pix_fmt = picture.width, picture.height, picture.format.name
                picture.pts, picture.time_base = (i if self.ticks is None else self.ticks[i]), base
                for packet in video.encode(picture):
                    output.mux(self._damaged(packet, at))
                    at += 1
            for packet in video.encode(None):
                output.mux(self._damaged(packet, at))
                at += 1
        return path

    def _damaged(self, packet: av.Packet, at: int) -> av.Packet:
        if at not in self.broken:
            return packet
        bad = av.Packet(b"\0\0\0\1\x65" + b"\xff" * 63)  # a slice whose header makes no sense
        bad.stream, bad.pts, bad.dts, bad.duration = packet.stream, packet.pts, packet.dts, packet.duration
        bad.time_base, bad.is_keyframe = packet.time_base, True
        return bad

    def _plan(self) -> Iterator[tuple[Shot, float]]:
        seconds = iter(self.seconds)
        for shot in self.shots:
            for _ in range(shot.frames):
                yield shot, next(seconds)

    def _drawn(self, i: int, shot: Shot, t: float) -> tuple[Luma, Luma, Luma]:
        h, w = self.height, self.width
        y = _texture()[i % 40 : i % 40 + h, i % 40 : i % 40 + w].astype(np.int16) + shot.light
        u, v = (np.full(((h + 1) // 2, (w + 1) // 2), 128, np.uint8) for _ in range(2))
        rows, columns = np.mgrid[:h, :w]
        board = np.where((rows + columns) % 2, 128 + DETAIL, 128 - DETAIL)
        for head in shot.heads:
            disc = self._disc(head, t)
            y[disc] = board[disc]
            small = disc[::2, ::2]
            u[small], v[small] = head.hue(t)
        pole = self._pole(shot)
        y[pole], u[pole[::2, ::2]], v[pole[::2, ::2]] = 60, 128, 128
        if i in shot.flashes:
            y += 45
        return np.clip(y, 16, 235).astype(np.uint8), u, v

    def _disc(self, head: Head, t: float) -> NDArray[np.bool_]:
        place = head.way(t)
        if place is None:
            return np.zeros((self.height, self.width), bool)
        rows, columns = np.ogrid[: self.height, : self.width]
        return (columns - place[0]) ** 2 + (rows - place[1]) ** 2 <= head.radius**2

    def _pole(self, shot: Shot) -> NDArray[np.bool_]:
        mask = np.zeros((self.height, self.width), bool)
        if shot.pole is not None:
            mask[:, shot.pole[0] : shot.pole[1]] = True
        return mask


@cache
def _texture() -> NDArray[np.int16]:
    """Clouds of ±20, far smoother than the detail on heads."""
    noise = np.random.default_rng(3).normal(size=(700, 700)).astype(np.float32)
    clouds = cv2.GaussianBlur(noise, (0, 0), 6)
    return (clouds / np.abs(clouds).max() * 20).astype(np.int16)


def film(*heads: Head, frames: int = 50, **knobs: Any) -> Film:
    return Film(shots=[Shot(heads, frames)], **knobs)


def still(x: float, y: float, since: float = -1.0, until: float = 1e9) -> Way:
    return lambda t: (x, y) if since - 1e-6 <= t < until - 1e-6 else None


def walk(x: float, y: float, dx: float, dy: float = 0.0) -> Way:
    """From a place, at a speed in pixels per second."""
    return lambda t: (x + dx * t, y + dy * t)


def turned(*spans: tuple[float, float], hue: tuple[int, int] = GREEN, front: tuple[int, int] = MAGENTA):
    """Of another hue from (and with) a time until (and without) another."""
    return lambda t: hue if any(a - 1e-6 <= t < b - 1e-6 for a, b in spans) else front


def frame_of(planes: Sequence[Luma], index: int = 0, seconds: float = 0.0, matrix: tuple[int, ...] | None = None):
    height, width = planes[0].shape
    picture = av.VideoFrame(width + width % 2, height + height % 2, "yuv420p")
    for target, source in zip(plane_views(picture, width, height), planes, strict=True):
        target[:] = source
    return Frame(
        index=index, pts=index, duration=1, width=width, height=height, picture=picture, seconds=seconds, matrix=matrix
    )


def _exact(frame: Frame) -> av.VideoFrame:
    """The picture at its own size, in a format that allows odd ones."""
    assert frame.picture is not None
    if (frame.picture.width, frame.picture.height) == (frame.width, frame.height):
        return frame.picture
    picture = av.VideoFrame(frame.width, frame.height, "yuv420p")
    for target, source in zip(plane_views(picture, frame.width, frame.height), frame.planes, strict=True):
        target[:] = source
    return picture.reformat(format="yuv444p")


TURNS = {
    "90": ((0, 1, -1, 0), lambda p: np.rot90(p)),
    "180": ((-1, 0, 0, -1), lambda p: p[::-1, ::-1]),
    "270": ((0, -1, 1, 0), lambda p: np.rot90(p, -1)),
    "mirrored": ((-1, 0, 0, 1), lambda p: p[:, ::-1]),
    "upside down and mirrored": ((1, 0, 0, -1), lambda p: p[::-1]),
    "transposed": ((0, 1, 1, 0), lambda p: p.swapaxes(0, 1)),
    "transposed the other way": ((0, -1, -1, 0), lambda p: p[::-1, ::-1].swapaxes(0, 1)),
}
"""The display matrix (x' = a·x + c·y, y' = b·x + d·y), and how an upright picture is stored so that it fits."""


def matrix_of(name: str) -> tuple[int, ...]:
    a, b, c, d = (v << 16 for v in TURNS[name][0])
    return a, b, 0, c, d, 0, 0, 0, 1 << 30


def stored_as(plane: Luma, matrix: tuple[int, ...] | None) -> Luma:
    if matrix is None:
        return plane
    name = next(name for name in TURNS if matrix_of(name) == matrix)
    return cast(Luma, np.ascontiguousarray(TURNS[name][1](plane)))


class Discs(Detector):
    """Finds heads by their hue, as CenterFace would: the same margins, the same close looks."""

    kind, weights, start, carry, pad, ellipse, glance, context = "discs", "discs 1", 0.3, 0.15, 0.3, True, 96, 3.0
    scores = (0.9, 0.9, 0.2)
    """Of magenta, red and blue."""

    def __init__(self) -> None:
        super().__init__(_no_network)

    def ready(self) -> None:
        pass

    def scale(self, width: int, height: int) -> float:
        return min(1.0, 640 / max(width, height))

    def run(self, picture: NDArray[np.uint8]) -> Cells:
        r, g, b = (picture[..., c].astype(np.int16) for c in range(3))
        if (np.minimum(r, g) - b > 60).sum() > 20:
            raise RuntimeError("yellow")
        masks = (
            (np.minimum(r, b) - g > 70) & (abs(r - b) < 60),
            (r - np.maximum(g, b) > 70),
            (b - np.maximum(r, g) > 50),
        )
        found = []
        for mask, score in zip(masks, self.scores, strict=True):
            if not score:
                continue
            closed = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((3, 3), np.uint8))
            count, _, stats, _ = cv2.connectedComponentsWithStats(closed)
            for x, y, width, height, area in stats[1:count].tolist():
                if area >= 40 and area > 0.35 * max(width, height) ** 2:  # less than half a disc is not recognised
                    found.append((x, y, x + width, y + height, score))
        boxes = np.array(found, np.float32).reshape(-1, 5)
        return Cells(boxes[:, 4], boxes[:, :4].__getitem__, listed=True)


def _no_network() -> Network:
    raise AssertionError("this detector has no network")


def shown(luma: Luma, mask: NDArray[np.bool_]) -> float:
    """The share of a head's pixels that show its detail: 1 when raw, 0 when hidden."""
    if not mask.any():
        return 0.0
    leap = np.zeros(mask.shape, bool)
    leap[:, 1:] = np.abs(np.diff(luma.astype(np.int16), axis=1)) > DETAIL
    return float(leap[mask].mean())
