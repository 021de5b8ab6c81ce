"""Any other detector in an ONNX file: number plates, badges, screens.

Next to `plates.onnx` lies `plates.json`, which says how the network wants its picture and what its numbers mean. Only
`layout` has to be there; docs/detection.md explains every field.

    {"layout": "yolov8", "size": 640, "classes": [0], "start": 0.3}

    yolox      (1, cells, 5 + classes): centre and size on grids of 8, 16 and 32 pixels, still to be laid on them
    yolov8     (1, 4 + classes, cells): centre and size in pixels of the network's picture
    boxes      (N, 4) left, top, right, bottom in pixels, (N,) scores, and (N,) classes where there are several; these
               are the names of the outputs `boxes`, `scores` and `labels`, or their order
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from vidveil.core.bounded import read_bytes, read_json, reason, regular
from vidveil.core.errors import DetectorError, UsageError
from vidveil.core.rotation import Picture
from vidveil.core.text import printable
from vidveil.core.typed import from_values
from vidveil.detect.detections import Cells
from vidveil.detect.detectors import Detector, grid, planar, yolox_cells
from vidveil.detect.onnx_network import MODEL_BYTES, Network

LAYOUTS = ("yolox", "yolov8", "boxes")
SHAPES = {
    "yolox": "its output is (1, cells, 5 + classes)",
    "yolov8": "its output is (1, 4 + classes, cells)",
    "boxes": "its outputs are boxes (N, 4), scores (N,), and perhaps labels (N,)",
}
NOTES_BYTES = 1 << 20
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


class UserDetector(Detector):
    """A user's detector. Its kind is the name of its file."""

    context = 2.0

    def __init__(self, path: Path) -> None:
        about = describe(path)
        super().__init__(partial(Network, path, free=not about.fixed))
        self.description, self.kind, self.notes = about, path.stem, path.with_suffix(".json").name
        hashed = hashlib.sha256(repr(about).encode()).hexdigest()  # stands in manifests: Description keeps its name
        self.weights = f"{path.name} sha256:{_hash(path)[:16]} as {hashed[:8]}"  # the same file may be used otherwise
        self.start, self.carry, self.pad, self.ellipse = about.start, about.carry, about.pad, about.shape == "ellipse"
        self.glance = about.size if about.fixed else max(96, about.size // 2 // 32 * 32)

    def scale(self, width: int, height: int) -> float:
        return self.description.size / max(width, height)

    def run(self, picture: Picture) -> Cells:
        layout, side = self.description.layout, self.description.size
        blob = planar(picture if self.description.colours == "rgb" else picture[..., ::-1])
        if self.description.fixed and blob.shape[2:] != (side, side):
            square = np.zeros((1, 3, side, side), np.float32)
            square[:, :, : blob.shape[2], : blob.shape[3]] = blob
            blob = square
        scale = self.description.scale or (1 / 255 if layout == "yolov8" else 1.0)
        if scale != 1:
            blob *= np.float32(scale)
        try:
            outputs = self.network(blob)
        except DetectorError:
            raise
        except Exception as error:  # the runtime has no tree of errors
            size = f"{blob.shape[3]} × {blob.shape[2]}"
            reason = f"could not take in a picture of {size} pixels ({type(error).__name__})"
            raise DetectorError(reason, "`size` and `fixed`") from error
        if layout == "boxes":
            return self._boxes(outputs)._replace(seen=blob.shape[2:])
        (found,) = _numbers(outputs[:1], layout)
        if found.ndim != 3 or len(found) != 1:
            raise DetectorError(f"returned an output of shape {found.shape}", f"`layout`: {SHAPES[layout]}")
        if layout == "yolox":
            return self._yolox(found[0], *blob.shape[2:])
        return self._yolov8(found[0].T)._replace(seen=blob.shape[2:])

    def _yolox(self, found: NDArray[Any], height: int, width: int) -> Cells:
        cells = len(grid(height, width)[0])
        if len(found) != cells or found.shape[1] < 6:
            raise DetectorError(
                f"returned {len(found)} × {found.shape[1]} numbers where YOLOX has {cells} × 6 or more", "`layout`"
            )
        return yolox_cells(found, self._best(found[:, 5:]), height, width)

    def _yolov8(self, found: NDArray[Any]) -> Cells:
        if found.shape[1] < 5:
            raise DetectorError(
                f"returned {found.shape[1]} numbers for each cell where there are 5 or more", "`layout`"
            )

        def boxes(cells: NDArray[np.intp]) -> NDArray[Any]:
            centre, reach = found[cells, :2], found[cells, 2:4] / 2
            return np.concatenate([centre - reach, centre + reach], 1)

        return Cells(self._best(found[:, 4:]), boxes, found[:, 4:])

    def _boxes(self, outputs: list[Any]) -> Cells:
        names = self.network.outputs
        if len(outputs) < 2:
            raise DetectorError("returned one output where boxes and scores are expected", "`layout`")
        at = [names.index(name) if name in names else i for i, name in enumerate(("boxes", "scores", "labels"))]
        wanted = at if self.description.classes is not None and at[2] < len(outputs) else at[:2]
        boxes, scores, *labels = _numbers([outputs[i] for i in wanted], "boxes")
        count = scores.size
        if boxes.size != 4 * count or (count and boxes.shape[-1] != 4) or any(each.size != count for each in labels):
            raise DetectorError(f"returned boxes of shape {boxes.shape} and scores of shape {scores.shape}", "`layout`")
        boxes, probabilities = boxes.reshape(-1, 4), scores.reshape(-1)
        chosen = probabilities
        for each in labels:
            if not np.isfinite(each).all():
                raise DetectorError("returned labels that are not finite", "`layout`, and the order of the outputs")
            chosen = np.where(np.isin(each.reshape(-1), self.description.classes or ()), chosen, 0)
        return Cells(chosen, boxes.__getitem__, probabilities, listed=True)

    def _best(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Of the wanted classes' scores (cells, classes), the highest of each cell."""
        if self.description.classes is None:
            best: NDArray[Any] = scores.max(1)
            return best
        if max(self.description.classes) >= scores.shape[1]:
            raise DetectorError(f"returned scores of {scores.shape[1]} classes", "`classes`: they count from 0")
        return cast(NDArray[Any], scores[:, list(self.description.classes)].max(1))


def _numbers(outputs: Sequence[Any], layout: str) -> list[NDArray[Any]]:
    """Outputs as float arrays. Raises DetectorError where one is something else: text, a list, a dictionary."""
    for output in outputs:
        if not isinstance(output, np.ndarray) or output.dtype.kind not in "fiu":
            kind = output.dtype if isinstance(output, np.ndarray) else type(output).__name__
            raise DetectorError(f"returned a {kind} where numbers are expected", f"`layout`: {SHAPES[layout]}")
    with np.errstate(over="ignore"):
        return [output if output.dtype == np.float32 else output.astype(np.float64) for output in outputs]


def describe(path: Path) -> Description:
    """The description in the JSON file next to a network."""
    notes = path.with_suffix(".json")
    try:
        regular(path, MODEL_BYTES)
    except FileNotFoundError as error:
        raise UsageError(
            f"{printable(path.name)} is not there: a detector is faces, people, or the path of an ONNX file"
        ) from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{printable(path.name)} {reason(error)}") from error
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
        return hashlib.sha256(read_bytes(path, MODEL_BYTES)).hexdigest()
    except (OSError, ValueError) as error:
        raise UsageError(f"{path.name} {reason(error)}") from error
