"""A small UCF101 with VP-UCF101's labels, made for tests."""

import pickle
from pathlib import Path

import numpy as np

from tests.media import Film
from vidveil.data.readers import ucf101


def ucf(root: Path, *, film: bool = True) -> list[str]:
    """Two classes of five groups, one clip each; the first group is test."""
    lists = root / "ucfTrainTestlist"
    lists.mkdir()
    (lists / "classInd.txt").write_text("1 Archery\n2 Biking\n")
    paths = []
    for number, name in enumerate(("Archery", "Biking"), 1):
        (root / "UCF-101" / name).mkdir(parents=True)
        for group in range(1, 6):
            path = f"{name}/v_{name}_g{group:02d}_c01.avi"
            paths.append(path)
            if film:
                frames = 10 * number + 2 * group
                Film(frames=frames, width=64, height=48, codec="mpeg4", bframes=0).make(root / "UCF-101" / path)
            with (lists / ("testlist01.txt" if group == 1 else "trainlist01.txt")).open("a") as file:
                file.write(f"{path}\r\n" if group == 1 else f"{path} {number}\r\n")
    return paths


def vp(root: Path, paths: list[str]) -> None:
    """The relationship is visible in every second of these clips, skin colour and gender in all, the rest in none."""
    labels = {path.replace(".avi", ".mp4"): np.array([[1, 0, 1, 0, i % 2]]) for i, path in enumerate(paths)}
    (root / ucf101.LABELS).write_bytes(pickle.dumps(labels, 4))
