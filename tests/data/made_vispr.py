"""A small VISPR, made for tests."""

import json
from pathlib import Path

import cv2
import numpy as np

from vidveil.data.clips import SPLITS

PARTS = {"train": 4, "val": 2, "test": 3}
LABELS = (["a0_safe"], ["a4_gender", "a17_color", "a9_face_complete"], ["a65_rel_social", "a99_legal_involvement"])


def names(part: str) -> list[str]:
    """Numbers in a row, which a reader of sequences of pictures would take for one video."""
    return [f"2017_{1000 * (1 + SPLITS.index(part)) + i}" for i in range(PARTS[part])]


def made(root: Path, *, pictures: str = "", annotations: str | None = "", lists: bool = True) -> Path:
    """Nine pictures of noise with their labels in turn, none of them twice."""
    rng = np.random.default_rng(0)
    for part in SPLITS:
        folder = root / "vispr" / pictures / f"{part}2017"
        folder.mkdir(parents=True)
        for i, name in enumerate(names(part)):
            small = rng.integers(0, 256, (6, 8 + 2 * (i % 2), 3), np.uint8)
            cv2.imwrite(str(folder / f"{name}.jpg"), cv2.resize(small, None, fx=8, fy=8))
            if annotations is not None:
                place = root / "vispr" / annotations / f"{part}2017"
                place.mkdir(parents=True, exist_ok=True)
                (place / f"{name}.json").write_text(json.dumps({"id": name, "labels": LABELS[i % 3]}))
        if lists:
            lines = [f"annotations/{part}2017/{name}.json" for name in names(part)]
            (root / "vispr" / f"{part}2017.txt").write_text("\n".join(lines))
    return root
