"""How large the frame of a moving figure is on real video: 0.5 and more is the whole picture, since everything moves.

    python benchmarks/figure_boxes.py --data FOLDER          five classes of UCF101, one clip a group, a minute

Of the middle frame of each video half a side of the box, as `figure` has it, and how much of the picture moves.
"""

import argparse
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.data.decode import decode
from vidveil.methods.figure import MOVES, SPAN, box_of, looked_at
from vidveil.methods.motion import changed

RESULTS = Path(__file__).parent / "results" / "figure_boxes.json"
WHOLE = 0.5


def middle_box(pictures: list[NDArray[np.uint8]]) -> tuple[float, float] | None:
    """Half of the box's side around the middle frame, and the share of pixels that move; None if nothing does."""
    changes = [changed(after, before) for before, after in pairwise(pictures)]
    near = changes[max(0, len(changes) // 2 - SPAN) : len(changes) // 2 + SPAN + 1]
    moved = [change for change in near if change is not None]
    box = box_of(np.sum([looked_at(change).sums for change in moved], axis=0)) if moved else None
    return None if box is None else (box.half, float(np.mean([(change > MOVES).mean() for change in moved])))


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("--data", type=Path, required=True, help="folder that holds ucf101_5")
    about.add_argument("--out", type=Path, default=RESULTS)
    given = about.parse_args()
    files = sorted((given.data / "ucf101_5").glob("*/*_c01.mp4"))
    found = []
    for file in files:
        grey = [cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY) for frame in decode(file)]
        found.append(middle_box(grey))
    halves, moving = np.array([one for one in found if one is not None]).T
    told: dict[str, Any] = {
        "clips": len(files),
        "half_quartiles": [round(float(q), 3) for q in np.quantile(halves, (0.25, 0.5, 0.75))],
        "whole_picture": round(float((halves >= WHOLE).mean()), 3),
        "moving_quartiles": [round(float(q), 3) for q in np.quantile(moving, (0.25, 0.5, 0.75))],
    }
    given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(told))


if __name__ == "__main__":
    main()
