"""A small UCSD Ped2 or Ped1, made for tests."""

from pathlib import Path

import cv2
import numpy as np

from vidveil.data.readers import ucsd

LINES = ("TestVideoFile{end+1}.gt_frame = [3:5];", "TestVideoFile{end+1}.gt_frame = [1:2, 70:100];")


def video(folder: Path, frames: int, shade: int) -> None:
    """Pictures whose brightness is their number."""
    folder.mkdir(parents=True)
    for i in range(frames):
        cv2.imwrite(str(folder / f"{i + 1:03d}.tif"), np.full((12, 16), shade + i, np.uint8))


def ped(root: Path, which: str = "ped2", train: int = 4) -> Path:
    """Short training videos and two test videos: one of 10 frames, one of 100."""
    folder = root / ucsd.FOLDER / ucsd.SETS[which]
    for i in range(train):
        video(folder / "Train" / f"Train{i + 1:03d}", 6 + i, 10 * i)
    for i, frames in enumerate((10, 100)):
        video(folder / "Test" / f"Test{i + 1:03d}", frames, 100)
    (folder / "Test" / f"{ucsd.SETS[which]}.m").write_text("\r\n".join(["TestVideoFile = {};", *LINES, ""]))
    return folder
