"""Small silhouettes of CASIA-A and CASIA-B, made for tests."""

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.data.readers import casia_b


def casia_a(path: Path, people: int = 20) -> list[NDArray[np.uint8]]:
    """Write the archive: three views of each person, four walks each. Returns the frames (T, 64, 64) of each walk."""
    rng = np.random.default_rng(0)
    names = [f"p{p:02d}/{view}_{r}" for p in range(people) for view in ("00", "45", "90") for r in range(1, 5)]
    counts = rng.integers(1, 4, len(names))
    frames = rng.integers(0, 2, (counts.sum(), 64, 64), dtype=np.uint8)
    np.savez(path, names=np.array(names), counts=counts, bits=np.packbits(frames))
    return np.split(frames, np.cumsum(counts)[:-1])


def body(height: int, *, at: int, width: int = 12, tilt: int = 0) -> NDArray[np.uint8]:
    """A white block of this height on black, 240 x 320; its lower half stands `tilt` further right."""
    picture = np.zeros((240, 320), np.uint8)
    picture[20 : 20 + height, at : at + width] = 255
    picture[20 + height // 2 : 20 + height, at + width : at + width + tilt] = 255
    return picture


def walk(root: Path, path: str, *, frames: int = 3, nobody: int = 0) -> Path:
    """A walk of CASIA-B, such as `001/nm-01/000`: first pictures of nobody, then of a person."""
    folder = root / casia_b.FOLDER / path
    folder.mkdir(parents=True)
    person = int(path[:3])
    for i in range(nobody + frames):
        shown = body(100, at=40 + 7 * i, width=12 + person // 40 * 4, tilt=person % 40)
        picture = shown if i >= nobody else np.zeros_like(shown)
        cv2.imwrite(str(folder / f"{path.replace('/', '-')}-{i + 1:03d}.png"), picture)
    return folder
