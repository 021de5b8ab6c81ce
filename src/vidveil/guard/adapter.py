"""Any other detector in an ONNX file: number plates, badges, screens.

Beside `plates.onnx` lies `plates.json`, which says how the network wants its picture and what its numbers mean. Only
`layout` has to be there; docs/guard.md explains every field.

    {"layout": "yolov8", "size": 640, "classes": [0], "start": 0.3}

    yolox      (1, cells, 5 + classes): centre and size on grids of 8, 16 and 32 pixels, still to be laid on them
    yolov8     (1, 4 + classes, cells): centre and size in pixels of the network's picture
    boxes      (N, 4) left, top, right, bottom in pixels, (N,) scores, and (N,) classes where there are several; these
               are the names of the outputs `boxes`, `scores` and `labels`, or their order
"""

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidveil.core.bounded import is_file, read_json, reason, regular
from vidveil.core.text import printable
from vidveil.core.typed import from_values
from vidveil.errors import InputError, UsageError
from vidveil.guard.detectors import Boxes, Detector, grid, planar
from vidveil.guard.onnx_file import Network
from vidveil.guard.view import Picture
from vidveil.video.manifest import file_hash

LAYOUTS = ("yolox", "yolov8", "boxes")
NOTES_BYTES = 1 << 20
NETWORK_BYTES = 2 << 30
"""More no ONNX file can have in one piece."""
MOST_CLASSES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Description:
    layout: str
    """What the outputs mean: one of LAYOUTS."""
    size: int = 640
    """The longer side of the picture that the network sees."""
    classes: tuple[int, ...] | None = None
    """The classes that are hidden; all without it."""
    colours: str = "rgb"
    """Order of the input's channels, `rgb` or `bgr`."""
    scale: float | None = None
    """The input's numbers are pixels (0 to 255) times this; 1/255 for yolov8, 1 for the others."""
    fixed: bool = False
    """Whether the network takes pictures of size × size only."""
    start: float = 0.3
    """Score from which a find begins a track."""
    carry: float = 0.15
    """Score from which a find continues one."""
    pad: float = 0.1
    """Margin on each side, as a share of the box."""
    shape: str = "box"

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout is one of {', '.join(LAYOUTS)}, not {printable(repr(self.layout))}")
        if self.colours not in ("rgb", "bgr"):
            raise ValueError(f"colours is rgb or bgr, not {printable(repr(self.colours))}")
        if self.shape not in ("box", "ellipse"):
            raise ValueError(f"shape is box or ellipse, not {printable(repr(self.shape))}")
        if self.classes is not None and not (
            self.classes and 0 <= min(self.classes) <= max(self.classes) < MOST_CLASSES
        ):
            raise ValueError(f"classes is a list of numbers from 0 to {MOST_CLASSES - 1}")
        if self.scale is not None and not 0 < self.scale <= 1e6:
            raise ValueError("scale is above 0, up to 1,000,000")
        if not 32 <= self.size <= 4096 or self.size % 32:
            raise ValueError(f"size is a multiple of 32 up to 4096, not {self.size}")
        if not 0 < self.carry <= self.start < 1:
            raise ValueError("0 < carry <= start < 1 is expected")
        if not 0 <= self.pad <= 2:
            raise ValueError("pad is from 0 to 2")


class OwnDetector(Detector):
    """A user's detector. Its kind is the name of its file."""

    context = 2.0

    def __init__(self, path: Path) -> None:
        told = describe(path)
        super().__init__(partial(Network, path, free=not told.fixed))
        self.told, self.kind = told, path.stem
        notes = hashlib.sha256(repr(told).encode()).hexdigest()
        self.weights = f"{path.name} sha256:{_hash(path)[:16]} as {notes[:8]}"  # the same file may be used otherwise
        self.start, self.carry, self.pad, self.ellipse = told.start, told.carry, told.pad, told.shape == "ellipse"
        self.glance = told.size if told.fixed else max(96, told.size // 2 // 32 * 32)

    def scale(self, width: int, height: int) -> float:
        return self.told.size / max(width, height)

    def run(self, picture: Picture, threshold: float) -> Boxes:
        blob = planar(picture if self.told.colours == "rgb" else picture[..., ::-1])
        if self.told.fixed and blob.shape[2:] != (self.told.size, self.told.size):
            square = np.zeros((1, 3, self.told.size, self.told.size), np.float32)
            square[:, :, : blob.shape[2], : blob.shape[3]] = blob
            blob = square
        scale = self.told.scale or (1 / 255 if self.told.layout == "yolov8" else 1.0)
        if scale != 1:
            blob *= np.float32(scale)
        outputs = self.network(blob)
        boxes, scores = {"yolox": self._yolox, "yolov8": self._yolov8, "boxes": self._boxes}[self.told.layout](
            outputs, blob.shape[2], blob.shape[3]
        )
        sure = scores >= threshold
        return np.concatenate([boxes[sure], scores[sure, None]], 1).astype(np.float32)

    def _yolox(self, outputs: list[Any], height: int, width: int) -> tuple[NDArray[Any], NDArray[Any]]:
        found = outputs[0][0]
        corner, stride = grid(height, width)
        centre, reach = (found[:, :2] + corner) * stride, np.exp(found[:, 2:4]) * stride / 2
        return np.concatenate([centre - reach, centre + reach], 1), found[:, 4] * self._best(found[:, 5:])

    def _yolov8(self, outputs: list[Any], height: int, width: int) -> tuple[NDArray[Any], NDArray[Any]]:  # noqa: ARG002
        found = outputs[0][0].T
        centre, reach = found[:, :2], found[:, 2:4] / 2
        return np.concatenate([centre - reach, centre + reach], 1), self._best(found[:, 4:])

    def _boxes(self, outputs: list[Any], height: int, width: int) -> tuple[NDArray[Any], NDArray[Any]]:  # noqa: ARG002
        by_name = dict(zip(self.network.outputs, outputs, strict=True))
        if len(outputs) < 2:
            raise InputError(f"{self.kind}.onnx has one output: boxes and scores are expected")
        boxes = np.asarray(by_name.get("boxes", outputs[0])).reshape(-1, 4)
        scores = np.asarray(by_name.get("scores", outputs[1])).reshape(-1)
        labels = by_name.get("labels", outputs[2] if len(outputs) > 2 else None)
        if labels is not None and self.told.classes is not None:
            scores = scores * np.isin(np.asarray(labels).reshape(-1), self.told.classes)
        return boxes, scores

    def _best(self, scores: NDArray[Any]) -> NDArray[Any]:
        best: NDArray[Any] = (scores if self.told.classes is None else scores[:, list(self.told.classes)]).max(1)
        return best


def describe(path: Path) -> Description:
    """What the JSON file beside a network says."""
    notes = path.with_suffix(".json")
    if not is_file(path):
        raise UsageError(
            f"{printable(path.name)} is not there: a detector is faces, people, or the path of an ONNX file"
        )
    try:
        return from_values(Description, read_json(notes, NOTES_BYTES))
    except FileNotFoundError as error:
        raise UsageError(
            f'{notes.name} is not there: it says how {path.name} is read, for example {{"layout": "yolov8"}}'
        ) from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{notes.name}: {reason(error)}") from error


def _hash(path: Path) -> str:
    try:
        return file_hash(regular(path, NETWORK_BYTES))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path.name} {reason(error)}") from error
