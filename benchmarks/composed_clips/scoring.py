"""How well faces are covered: tracks files against the truth of composed clips.

A face-frame counts if the truth says so. It is covered if at least 90 % of what is seen of its ellipse is hidden.

    recall       covered / counted face-frames
    false area   mean share of the picture that is hidden outside of every head; a head is a face ellipse grown by 1.5
    mask size    of the region that hides most of a covered face: square root of its area by the face's, the median
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from composed_clips.people import Ellipse
from composed_clips.stage import BANDS

Mask = NDArray[np.bool_]
Box = tuple[float, float, float, float]
ENOUGH = 0.9
HEAD = 1.5


@dataclass(frozen=True)
class Hidden:
    """What is hidden by one region; without a box the whole frame."""

    box: Box | None
    shape: str


@dataclass(frozen=True)
class Tracks:
    width: int
    height: int
    frames: int
    pixels: str
    """Which pixels belong to a shape: those `touched` by it, after its box is widened to even numbers (vidveil, since
    colours are stored by twos), or those whose `centres` are inside (deface)."""
    regions: dict[int, list[Hidden]]

    @staticmethod
    def read(path: Path) -> "Tracks":
        with path.open(encoding="utf-8") as file:
            header = json.loads(file.readline())
            regions: dict[int, list[Hidden]] = {}
            for line in file:
                found = json.loads(line)
                box = found["box"] and tuple(map(float, found["box"]))
                shape = found.get("shape") or header.get("shape", "box")
                regions.setdefault(found["frame"], []).append(Hidden(box, shape))
        size = header["width"], header["height"], header["frames"]
        return Tracks(*size, header.get("pixels", "touched"), regions)

    def masks(self, frame: int) -> list[tuple[int, int, Mask]]:
        """Of each region the pixels inside the picture: left, top, which."""
        return [self._mask(region) for region in self.regions.get(frame, [])]

    def mask(self, frame: int) -> Mask:
        """All that is hidden of a frame."""
        whole = np.zeros((self.height, self.width), np.bool_)
        for left, top, part in self.masks(frame):
            whole[top : top + part.shape[0], left : left + part.shape[1]] |= part
        return whole

    def _mask(self, region: Hidden) -> tuple[int, int, Mask]:
        if region.box is None:
            return 0, 0, np.ones((self.height, self.width), np.bool_)
        x0, y0, x1, y1 = region.box
        if self.pixels == "touched":
            x0, y0, x1, y1 = x0 // 2 * 2, y0 // 2 * 2, -(-x1 // 2) * 2, -(-y1 // 2) * 2
        left, top = max(0, int(np.floor(x0))), max(0, int(np.floor(y0)))
        right, bottom = min(self.width, int(np.ceil(x1))), min(self.height, int(np.ceil(y1)))
        if right <= left or bottom <= top:
            return 0, 0, np.zeros((0, 0), np.bool_)
        if region.shape == "box":
            return left, top, np.ones((bottom - top, right - left), np.bool_)
        slack = 0.5 if self.pixels == "touched" else 0.0
        across = np.maximum(np.abs(np.arange(left, right) + 0.5 - (x0 + x1) / 2) - slack, 0) / ((x1 - x0) / 2)
        down = np.maximum(np.abs(np.arange(top, bottom) + 0.5 - (y0 + y1) / 2) - slack, 0) / ((y1 - y0) / 2)
        squares = down[:, None] ** 2 + across[None, :] ** 2
        return left, top, np.asarray(squares <= 1 if slack else squares < 1)


def share_covered(hidden: Mask, wanted: Mask) -> float:
    """Share of the wanted pixels that are hidden; nothing wanted is all covered."""
    count = int(wanted.sum())
    return float((hidden & wanted).sum() / count) if count else 1.0


def band_of(size: float, bands: Sequence[tuple[int, int]] = BANDS) -> str:
    for low, high in bands:
        if low <= size < high:
            return f"{low}-{high}"
    return f"<{bands[0][0]}" if size < bands[0][0] else f">={bands[-1][1]}"


# ---- clips --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FaceFrame:
    clip: str
    frame: int
    face: int
    kind: str
    behaviour: str
    size: float
    share: float
    mask_size: float | None

    @property
    def covered(self) -> bool:
        return self.share >= ENOUGH


@dataclass(frozen=True)
class Score:
    faces: list[FaceFrame]
    false_area: list[float]
    """Of each frame."""


def score(folder: Path, tracks: Tracks) -> Score:
    """One clip: `folder` has truth.json and seen.npz."""
    truth = json.loads((folder / "truth.json").read_text("utf-8"))
    size = (truth["width"], truth["height"], truth["frames"])
    if (tracks.width, tracks.height, tracks.frames) != size:
        raise ValueError(
            f"{truth['clip']}: tracks are of another clip ({tracks.width} x {tracks.height}, {tracks.frames})"
        )
    seen = np.load(folder / "seen.npz")["seen"]
    by_frame: dict[int, list[dict[str, Any]]] = {}
    for one in truth["faces"]:
        by_frame.setdefault(one["frame"], []).append(one)
    faces, false = [], []
    for frame in range(truth["frames"]):
        hidden, regions = tracks.mask(frame), tracks.masks(frame)
        next_to = hidden.copy()
        for one in by_frame.get(frame, []):
            ellipse = Ellipse(*one["ellipse"])
            window, head = _inside(ellipse.grown(HEAD), hidden.shape)
            next_to[window] &= ~head
            if one["counts"]:
                window, _ = _inside(ellipse, hidden.shape)
                wanted = seen[frame][window] == one["face"]
                share = share_covered(hidden[window], wanted)
                mask_size = _mask_size(regions, window, wanted, ellipse) if share >= ENOUGH else None
                about = (truth["clip"], frame, one["face"], one["kind"], one["behaviour"], ellipse.size)
                faces.append(FaceFrame(*about, round(share, 4), mask_size))
        false.append(float(next_to.mean()))
    return Score(faces, false)


def _inside(ellipse: Ellipse, shape: tuple[int, ...]) -> tuple[tuple[slice, slice], Mask]:
    """The part of a picture around an ellipse, and which pixels of it are inside."""
    x0, y0, x1, y1 = ellipse.box()
    left, top = max(0, int(np.floor(x0))), max(0, int(np.floor(y0)))
    right, bottom = max(left, min(shape[1], int(np.ceil(x1)))), max(top, min(shape[0], int(np.ceil(y1))))
    return (slice(top, bottom), slice(left, right)), ellipse.mask(left, top, right - left, bottom - top)


def _mask_size(
    regions: list[tuple[int, int, Mask]], window: tuple[slice, slice], wanted: Mask, face: Ellipse
) -> float | None:
    best, area = 0, 0
    rows, columns = np.nonzero(wanted)
    rows, columns = rows + window[0].start, columns + window[1].start
    for left, top, part in regions:
        y, x = rows - top, columns - left
        there = (y >= 0) & (x >= 0) & (y < part.shape[0]) & (x < part.shape[1])
        shared = int(part[y[there], x[there]].sum())
        if shared > best:
            best, area = shared, int(part.sum())
    return round(float(np.sqrt(area / (np.pi * face.rx * face.ry))), 3) if best else None


# ---- sums ---------------------------------------------------------------------------------------------------------


def tally(faces: Sequence[FaceFrame]) -> dict[str, Any]:
    covered = [face for face in faces if face.covered]
    sizes = [face.mask_size for face in covered if face.mask_size is not None]
    return {
        "face_frames": len(faces),
        "uncovered": len(faces) - len(covered),
        "recall": round(len(covered) / len(faces), 4) if faces else None,
        "mask_size": round(median(sizes), 3) if sizes else None,
    }


def summary(scores: Iterable[Score]) -> dict[str, Any]:
    scores = list(scores)
    faces = [face for one in scores for face in one.faces]
    false = [share for one in scores for share in one.false_area]
    return {
        "all": tally(faces),
        "false_area": round(float(np.mean(false)), 5) if false else None,
        "bands": grouped(faces, lambda face: band_of(face.size), ["<16", *(band_of(low) for low, _ in BANDS)]),
        "behaviours": grouped(faces, lambda face: face.behaviour),
        "kinds": grouped(faces, lambda face: face.kind),
        "clips_with_an_uncovered_face": sorted({face.clip for face in faces if not face.covered}),
        "uncovered": stretches(face for face in faces if not face.covered),
    }


def grouped(
    faces: Sequence[FaceFrame], key: Callable[[FaceFrame], str], order: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    names = list(dict.fromkeys([*order, *sorted({key(face) for face in faces})]))
    return {name: tally([face for face in faces if key(face) == name]) for name in names}


def stretches(faces: Iterable[FaceFrame]) -> list[list[Any]]:
    """Frames in a row: [clip, face, first, last]."""
    found: list[list[Any]] = []
    for face in sorted(faces, key=lambda one: (one.clip, one.face, one.frame)):
        if found and found[-1][:2] == [face.clip, face.face] and found[-1][3] == face.frame - 1:
            found[-1][3] = face.frame
        else:
            found.append([face.clip, face.face, face.frame, face.frame])
    return found


def paired(ours: Sequence[FaceFrame], theirs: Sequence[FaceFrame]) -> dict[str, dict[str, Any]]:
    """Face-frame by face-frame: who covers it."""
    other = {(face.clip, face.frame, face.face): face.covered for face in theirs}
    rows: dict[str, dict[str, Any]] = {}
    for band in [
        *dict.fromkeys(["<16", *(band_of(low) for low, _ in BANDS), *(band_of(one.size) for one in ours)]),
        "all",
    ]:
        pairs = [
            (face.covered, other[face.clip, face.frame, face.face])
            for face in ours
            if band in ("all", band_of(face.size))
        ]
        if pairs:
            row: dict[str, Any] = {"face_frames": len(pairs), "both": pairs.count((True, True))}
            row |= {"only_ours": pairs.count((True, False)), "only_theirs": pairs.count((False, True))}
            row |= {"neither": pairs.count((False, False))}
            row["difference"] = round((row["only_ours"] - row["only_theirs"]) / len(pairs), 4)
            rows[band] = row
    return rows
