"""Real videos: faces by a second network, people by hand; see detection.py.

people_labels.json has {video: {frame: [[left, top, right, bottom], ...]}}: of everybody who is recognizable as a person
the visible part, hands and feet included. Blurs behind a railing that may or may not be somebody are left out.
"""

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from auditor import Auditor, fetch
from contestants import Deface, vidveil_tracks
from numpy.typing import NDArray
from people import Ellipse
from scoring import ENOUGH, Mask, Tracks, band_of, share_covered
from video_speed import say, table

LABELS = Path(__file__).parent / "people_labels.json"
FACE_BANDS = ((0, 16), (16, 32), (32, 64), (64, 1000))
PEOPLE_BANDS = ((0, 80), (80, 160), (160, 320), (320, 2000))
SETS = {"videos": None, "ucf101_5": 40, "weizmann": 18}  # how many clips of each; None is all
SHRINK = 0.9  # of an auditor's box: its corners and a margin are no face
GROWN = 1.25  # of a marked box: what is hidden within that is hidden for this person


def data_folder() -> Path | None:
    folder = Path(os.environ.get("VIDVEIL_DATA", ""))
    return folder if os.environ.get("VIDVEIL_DATA") and folder.is_dir() else None


def frames_of(path: Path) -> Iterator[NDArray[np.uint8]]:
    """RGB."""
    import av

    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            yield np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)


def chosen(data: Path, quick: bool) -> list[tuple[str, Path]]:
    found = []
    for name, count in SETS.items():
        paths = sorted((data / name).rglob("*.mp4"))
        count = min(len(paths), 1 if quick else count or len(paths))
        found += [(name, paths[len(paths) * i // count]) for i in range(count)]  # spread over classes and people
    return found


def real_part(options: argparse.Namespace, deface: Deface) -> dict[str, Any]:
    data = data_folder()
    if data is None:
        return {"skipped": "VIDVEIL_DATA names no folder"}
    auditor = Auditor(fetch(options.cache / "weights"))
    rows: list[dict[str, Any]] = []
    for name, path in chosen(data, options.quick):
        say(f"real: {name}/{path.name}")
        both = {"vidveil": vidveil_tracks(path), "deface": deface.tracks(path, options.cache / "masks")}
        rows.append({"set": name, "clip": path.stem, **audit(auditor, frames_of(path), both)})
    return {"sets": {name: added([row for row in rows if row["set"] == name]) for name in SETS}, "clips": rows}


def audit(auditor: Auditor, frames: Iterator[NDArray[np.uint8]], tools: dict[str, Tracks]) -> dict[str, Any]:
    """Faces that the auditor sees, and how many of them each tool leaves uncovered, by size."""
    bands = {band_of(low, FACE_BANDS): {"faces": 0} | dict.fromkeys(tools, 0) for low, _ in FACE_BANDS}
    uncovered: dict[str, list[int]] = {name: [] for name in tools}
    area = dict.fromkeys(tools, 0.0)
    count = 0
    for number, picture in enumerate(frames):
        count += 1
        masks = {name: tracks.mask(number) for name, tracks in tools.items()}
        for name, mask in masks.items():
            area[name] += float(mask.mean())
        for x0, y0, x1, y1, _ in auditor.faces(picture).tolist():
            wanted = _ellipse(picture.shape, (x0, y0, x1, y1))
            row = bands[band_of(float(np.sqrt((x1 - x0) * (y1 - y0))), FACE_BANDS)]
            row["faces"] += 1
            for name, mask in masks.items():
                if share_covered(mask, wanted) < ENOUGH:
                    row[name] += 1
                    uncovered[name].append(number)
    for name, tracks in tools.items():
        if tracks.frames != count:
            raise ValueError(f"{name} saw {tracks.frames} frames of {count}")
    shares = {name: round(value / max(1, count), 5) for name, value in area.items()}
    listed = {name: sorted(set(frames_)) for name, frames_ in uncovered.items()}
    return {"frames": count, "bands": bands, "hidden_area": shares, "frames_with_uncovered": listed}


def _ellipse(shape: tuple[int, ...], box: Sequence[float]) -> Mask:
    x0, y0, x1, y1 = box
    ellipse = Ellipse((x0 + x1) / 2, (y0 + y1) / 2, (x1 - x0) / 2, (y1 - y0) / 2).grown(SHRINK)
    return ellipse.mask(0, 0, shape[1], shape[0])


def added(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A set's clips together."""
    frames = sum(row["frames"] for row in rows)
    bands: dict[str, dict[str, int]] = {}
    for row in rows:
        for band, counts in row["bands"].items():
            for key, value in counts.items():
                bands.setdefault(band, {}).setdefault(key, 0)
                bands[band][key] += value
    tools = rows[0]["hidden_area"] if rows else {}
    area = {name: round(sum(row["hidden_area"][name] * row["frames"] for row in rows) / frames, 5) for name in tools}
    return {"clips": len(rows), "frames": frames, "bands": bands, "hidden_area": area}


def real_table(part: dict[str, Any]) -> str:
    if "skipped" in part:
        return f"real: skipped, {part['skipped']}"
    rows = []
    for name, found in part["sets"].items():
        for band, counts in found["bands"].items():
            if counts["faces"]:
                rows.append([name, band, *(str(counts[key]) for key in ("faces", "vidveil", "deface")), "", ""])
        rows.append(
            [
                name,
                "all",
                *(str(sum(c[key] for c in found["bands"].values())) for key in ("faces", "vidveil", "deface")),
            ]
        )
        rows[-1] += [f"{found['hidden_area'].get(tool, 0):.2%}" for tool in ("vidveil", "deface")]
    header = ("videos", "face px", "faces seen", "uncovered", "by deface", "hidden", "by deface")
    return table(header, rows)


# ---- people -------------------------------------------------------------------------------------------------------


def people_part(options: argparse.Namespace) -> dict[str, Any]:
    data = data_folder()
    if data is None:
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
    bands = {band_of(low, PEOPLE_BANDS): [0, 0] for low, _ in PEOPLE_BANDS}
    uncovered = []
    false = []
    for frame, boxes in marked.items():
        hidden = tracks.mask(frame)
        next_to = hidden.copy()
        for x0, y0, x1, y1 in boxes:
            row = bands[band_of(y1 - y0, PEOPLE_BANDS)]
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
