"""A small CUHK Avenue, made for tests, with masks in .mat files that scipy writes as MATLAB does."""

from pathlib import Path

import numpy as np
import scipy.io

from tests.media import Film
from vidveil.data.readers import avenue

FRAMES = {1: 20, 2: 80}
"""Of the test videos."""
LABELS = {1: [0] * 5 + [1] * 10 + [0] * 5, 2: [1] * 3 + [0] * 70 + [1] * 7}


def masks(path: Path, labels, *, dtype=np.uint8, compressed=True, variable="volLabel") -> Path:
    """A mask for each label, with one pixel set where it is 1."""
    cells = np.empty((1, len(labels)), object)
    for i, label in enumerate(labels):
        cells[0, i] = np.zeros((6, 8), dtype)
        cells[0, i][2, 3] = label
    path.parent.mkdir(parents=True, exist_ok=True)
    scipy.io.savemat(path, {"other": np.arange(3.0), variable: cells}, do_compression=compressed)
    return path


def made(root: Path, *, film: bool = False) -> Path:
    """Four training videos, two test videos, and masks of the latter."""
    folder = root / "Avenue Dataset"
    for part, lengths in (("training_videos", {1: 10, 2: 12, 3: 14, 4: 16}), ("testing_videos", FRAMES)):
        for number, frames in lengths.items():
            path = folder / part / f"{number:02d}.avi"
            path.parent.mkdir(parents=True, exist_ok=True)
            if film:
                Film(frames=frames, width=64, height=36, codec="mpeg4", bframes=0).make(path)
            else:
                path.write_bytes(b"video")
    for number, labels in LABELS.items():
        masks(root / avenue.LABELS / f"{number}_label.mat", labels)
    return folder
