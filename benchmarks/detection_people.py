"""People in real videos whose boxes were marked by hand; see detection.py.

people_labels.json has {video: {frame: [[left, top, right, bottom], ...]}}: of everybody who is recognizable as a person
the visible part, hands and feet included. Blurs behind a railing that may or may not be somebody are left out.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from composed_clips.scoring import ENOUGH, Tracks, band_of
from contestants import vidveil_tracks
from video_speed import say, table

LABELS = Path(__file__).parent / "people_labels.json"
BANDS = ((0, 80), (80, 160), (160, 320), (320, 2000))
GROWN = 1.25  # of a marked box: what is hidden within that is hidden for this person


def people_part(options: argparse.Namespace) -> dict[str, Any]:
    data = Path(os.environ.get("VIDVEIL_DATA", "missing"))
    if not data.is_dir():
        return {"skipped": "VIDVEIL_DATA names no folder"}
    labels = json.loads(LABELS.read_text("utf-8"))
    found: dict[str, Any] = {}
    for name, marked in list(labels.items())[: 1 if options.quick else None]:
        say(f"people: {name}")
        tracks = vidveil_tracks(data / "videos" / name, "people")
        found[name] = people_score(tracks, {int(frame): boxes for frame, boxes in marked.items()})
    everyone: dict[str, list[int]] = {}
    for row in found.values():
        for band, (covered, count) in row["bands"].items():
            sums = everyone.setdefault(band, [0, 0])
            sums[0], sums[1] = sums[0] + covered, sums[1] + count
    frames = sum(row["frames"] for row in found.values())
    false = sum(row["false_area"] * row["frames"] for row in found.values()) / frames
    return {"videos": found, "bands": everyone, "false_area": round(false, 5)}


def people_score(tracks: Tracks, marked: dict[int, list[list[float]]]) -> dict[str, Any]:
    """bands: [covered, marked] person-frames by the height of the box."""
    bands = {band_of(low, BANDS): [0, 0] for low, _ in BANDS}
    uncovered = []
    false = []
    for frame, boxes in marked.items():
        hidden = tracks.mask(frame)
        next_to = hidden.copy()
        for x0, y0, x1, y1 in boxes:
            row = bands[band_of(y1 - y0, BANDS)]
            row[1] += 1
            share = float(hidden[round(y0) : round(y1), round(x0) : round(x1)].mean())
            if share >= ENOUGH:
                row[0] += 1
            else:
                uncovered.append([frame, [x0, y0, x1, y1], round(share, 3)])
            more_x, more_y = (x1 - x0) * (GROWN - 1) / 2, (y1 - y0) * (GROWN - 1) / 2
            top, left = max(0, round(y0 - more_y)), max(0, round(x0 - more_x))
            next_to[top : round(y1 + more_y), left : round(x1 + more_x)] = False
        false.append(float(next_to.mean()))
    return {"frames": len(marked), "bands": bands, "false_area": float(np.mean(false)), "uncovered": uncovered}


def people_table(part: dict[str, Any]) -> str:
    if "skipped" in part:
        return f"people: skipped, {part['skipped']}"
    rows = [
        [band, f"{covered} of {count}", f"{covered / count:.1%}"]
        for band, (covered, count) in part["bands"].items()
        if count
    ]
    covered, count = (sum(row[i] for row in part["bands"].values()) for i in range(2))
    rows.append(["all", f"{covered} of {count}", f"{covered / max(1, count):.1%}"])
    return f"{table(('person px', 'covered', 'recall'), rows)}\nfalse area: {part['false_area']:.2%}"
