"""Networks that find faces and people in one picture.

    faces          CenterFace (Xu et al. 2019): a map of where face centres are, a quarter of the picture's size, and
                   for each centre the logarithm of height and width, and the offset within its cell of 4 pixels
    people         YOLOX-Nano (Ge et al. 2021) on COCO: for each cell of three grids (8, 16, 32 pixels) a centre, the
                   logarithm of a size, and how sure it is that something, and that a person, is there
    FILE.onnx      any other detector, described by FILE.json: see docs/detection.md

A detector looks at a whole picture, or closely at a piece of it around a place where it expects somebody: that costs a
hundredth, so it can be done on every frame where it matters.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from threading import Lock, Thread
from typing import Any, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import WeightsError
from vidveil.core.frame import Region
from vidveil.core.rotation import Picture
from vidveil.detect.detections import Boxes, Cells, likely_boxes
from vidveil.detect.onnx_network import Network
from vidveil.detect.tracks import clipped, grown, widened
from vidveil.weights import describe, lookup, weights

CELL = 32  # networks halve their picture five times: sides are multiples of this
AT_LEAST = 3.0  # pixels of padding on each side
ROUND = 0.21  # of padding, at least, for an ellipse: less would leave the corners of the box outside


class Detector(ABC):
    """What finds one kind of thing. Safe to use from several threads."""

    kind: str
    weights: str
    """Name and hash of the network."""
    start: float
    """Score from which a find begins a track."""
    carry: float
    """Score from which a find continues a track that is there already."""
    pad: float
    """How much of a box's width and height is added on each side before it is hidden."""
    ellipse: bool
    """Whether what is hidden is round."""
    glance: int
    """Side of the square piece that the network sees when it looks closely."""
    context: float
    """How many times the size of the thing such a piece covers."""
    notes: str | None = None
    """The file that describes a user's own detector."""
    size: float = 1.0
    """How many times as wide and as high as usual what is hidden is."""

    def __init__(self, bring: Callable[[], Network]) -> None:
        self._bring = bring
        self._lock = Lock()
        self._loaded: Network | None = None

    @property
    def network(self) -> Network:
        """Loaded, and fetched, when it is needed first."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._bring()
            return self._loaded

    def ready(self) -> None:
        """Load what is needed; raises VidveilError if it is not to be had."""
        assert self.network

    def give_up(self, thread: Thread) -> None:
        """End, as soon as may be, the look that this thread does: nobody waits for it any more."""
        if self._loaded is not None:
            self._loaded.give_up(thread)

    @abstractmethod
    def scale(self, width: int, height: int) -> float:
        """How many pixels of the network's picture one pixel of a whole picture becomes."""

    @abstractmethod
    def run(self, picture: Picture) -> Cells:
        """What the network says of a picture, as it is. Raises DetectorError if its outputs cannot be read."""

    def look(self, picture: Picture, scale: float = 1.0, threshold: float | None = None) -> Boxes:
        """What is in a picture, seen at this scale, with a score of `carry` or more.

        Raises DetectorError if what the network returned makes no sense.
        """
        height, width = picture.shape[:2]
        if scale != 1:
            size = max(1, round(width * scale)), max(1, round(height * scale))
            how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
            picture = cast(Picture, cv2.resize(np.ascontiguousarray(picture), size, interpolation=how))
        least = self.carry if threshold is None else threshold
        found = likely_boxes(self.run(picture), least, picture.shape[1], picture.shape[0])
        found[:, :4] *= np.tile([width / picture.shape[1], height / picture.shape[0]], 2)
        return inside(found, width, height)

    def padded(self, region: Region, size: tuple[int, int]) -> Region | None:
        """A region with its margin, to a tenth of a pixel; None if nothing of it is in the picture."""
        if region.box is None:
            return region
        pad = max(self.pad, ROUND) if self.ellipse else self.pad
        x0, y0, x1, y1 = region.box
        box = widened(region.box, *(max(AT_LEAST, pad * side) for side in (x1 - x0, y1 - y0)))
        box = grown(box, self.size - 1)
        x0, y0, x1, y1 = clipped(box, size)
        if x1 - x0 < 1 or y1 - y0 < 1:
            return None
        left, top, right, bottom = (round(v, 1) for v in box)
        return replace(region, box=(left, top, right, bottom), shape="ellipse" if self.ellipse else "box")


class CenterFace(Detector):
    kind, start, carry, pad, ellipse, glance, context = "faces", 0.2, 0.12, 0.3, True, 96, 3.0

    def __init__(self) -> None:
        super().__init__(lambda: _checked("centerface"))
        self.weights = describe("centerface")

    def scale(self, width: int, height: int) -> float:
        """Full size up to 1080p; small pictures twice their size, since below 10 pixels no face is found."""
        return min(2.0 if max(width, height) <= 640 else 1.0, 1920 / max(width, height))

    def run(self, picture: Picture) -> Cells:
        blob = planar(picture)
        heat, size, offset = self.network(blob, ["537", "538", "539"])

        def boxes(cells: NDArray[np.intp]) -> NDArray[Any]:
            rows, columns = np.unravel_index(cells, heat.shape[2:])
            height, width = np.exp(size[0, :, rows, columns]).T * 4
            y = (rows + offset[0, 0, rows, columns] + 0.5) * 4
            x = (columns + offset[0, 1, rows, columns] + 0.5) * 4
            return np.stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2], 1)

        return Cells(heat[0, 0].ravel(), boxes, seen=blob.shape[2:])


class Yolox(Detector):
    kind, start, carry, pad, ellipse, glance, context = "people", 0.3, 0.15, 0.1, False, 224, 1.7
    side = 640  # of the whole picture, the longer one

    def __init__(self) -> None:
        super().__init__(lambda: _checked("yolox_nano"))
        self.weights = describe("yolox_nano")

    def scale(self, width: int, height: int) -> float:
        return self.side / max(width, height)

    def run(self, picture: Picture) -> Cells:
        blob = planar(picture[..., ::-1])  # it was trained on BGR
        found = self.network(blob)[0][0]  # (cells, 5 + classes)
        return yolox_cells(found, found[:, 5], blob.shape[2], blob.shape[3])


def yolox_cells(found: NDArray[Any], classes: NDArray[Any], height: int, width: int) -> Cells:
    """YOLOX's output (cells, 5 + classes) on a picture of this size, and of the wanted class the scores (cells,)."""
    corner, stride = grid(height, width)

    def boxes(cells: NDArray[np.intp]) -> NDArray[Any]:
        centre = (found[cells, :2] + corner[cells]) * stride[cells]
        reach = np.exp(found[cells, 2:4]) * stride[cells] / 2
        return np.concatenate([centre - reach, centre + reach], 1)

    with np.errstate(over="ignore", invalid="ignore"):  # `likely_boxes` looks for what comes of it
        return Cells(found[:, 4] * classes, boxes, found[:, 4:], (height, width))


def _checked(name: str) -> Network:
    """A network of the catalogue, whose bytes are those that were loaded, not only those that were fetched."""
    network = Network(weights(name))
    if network.sha256 != lookup(name).sha256:
        raise WeightsError(f"{lookup(name).file} was changed while it was being read")
    return network


def grid(height: int, width: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(cells, 2) column and row of each cell of the three grids, (cells, 1) its pixels."""
    corners, strides = [], []
    for stride in (8, 16, 32):
        rows, columns = np.mgrid[: height // stride, : width // stride]
        corners.append(np.stack([columns.ravel(), rows.ravel()], 1))
        strides.append(np.full((rows.size, 1), stride))
    return np.concatenate(corners).astype(np.float32), np.concatenate(strides).astype(np.float32)


def planar(picture: Picture) -> NDArray[np.float32]:
    """(H, W, 3) → (1, 3, H', W') in 0..255, with black below and on the right up to the next multiple of a cell."""
    height, width = picture.shape[:2]
    blob = np.zeros((1, 3, height + -height % CELL, width + -width % CELL), np.float32)
    for channel in range(3):
        blob[0, channel, :height, :width] = picture[..., channel]
    return blob


def inside(found: Boxes, width: int, height: int) -> Boxes:
    """Boxes with their middle in the picture. They may stick out: half a face at the border has a whole one's box."""
    size = np.array([width, height], np.float32)
    middle = (found[:, :2] + found[:, 2:4]) / 2
    kept = (middle >= 0).all(1) & (middle <= size).all(1) & ((found[:, 2:4] - found[:, :2]) > 1).all(1)
    return found[kept]
